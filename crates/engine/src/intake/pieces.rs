//! What a run of a component is made of: instances of modules, their memories and tables, counted through all components in
//! it. What it gets from other components as modules counts as one instance that has nothing: how its engine joins
//! them is known to the node alone, which refuses what is too much as well.

use wasmparser::{
    BinaryReaderError, ComponentAlias, ComponentExternalKind, ComponentInstance,
    ComponentOuterAliasKind, ComponentTypeRef, Instance, Payload,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) instances: u64,
    pub(super) memories: u64,
    pub(super) tables: u64,
}

/// A module that nothing is known of.
const UNKNOWN: Count = Count { instances: 1, memories: 0, tables: 0 };

impl Count {
    fn add(&mut self, other: Count) {
        self.instances = self.instances.saturating_add(other.instances);
        self.memories = self.memories.saturating_add(other.memories);
        self.tables = self.tables.saturating_add(other.tables);
    }
}

/// A module or a component while it is read.
#[derive(Default)]
struct Scope {
    is_module: bool,
    /// Of a module what it defines, of a component what its instances are made of.
    own: Count,
    /// What one instance of each module and component in it takes, by their numbers there.
    modules: Vec<Count>,
    components: Vec<Count>,
}

/// Follows a component as it is read, from the outermost in.
pub(super) struct Pieces(Vec<Scope>);

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces(vec![Scope::default()])
    }
}

impl Pieces {
    /// Of the outermost component, when all of it was seen.
    pub(super) fn count(&self) -> Count {
        self.0.first().map_or(Count::default(), |scope| scope.own)
    }

    pub(super) fn see(&mut self, payload: &Payload<'_>) -> Result<(), BinaryReaderError> {
        match payload {
            Payload::ModuleSection { .. } => {
                self.0.push(Scope { is_module: true, own: UNKNOWN, ..Scope::default() });
            }
            Payload::ComponentSection { .. } => self.0.push(Scope::default()),
            Payload::End(_) => self.leave(),
            Payload::MemorySection(memories) => {
                self.here().own.memories += u64::from(memories.count())
            }
            Payload::TableSection(tables) => self.here().own.tables += u64::from(tables.count()),
            Payload::InstanceSection(instances) => {
                for instance in instances.clone() {
                    if let Instance::Instantiate { module_index, .. } = instance? {
                        let here = self.here();
                        let count = found(&here.modules, module_index).unwrap_or(UNKNOWN);
                        here.own.add(count);
                    }
                }
            }
            Payload::ComponentInstanceSection(instances) => {
                for instance in instances.clone() {
                    if let ComponentInstance::Instantiate { component_index, .. } = instance? {
                        let here = self.here();
                        let count = found(&here.components, component_index).unwrap_or_default();
                        here.own.add(count);
                    }
                }
            }
            Payload::ComponentAliasSection(aliases) => {
                for alias in aliases.clone() {
                    self.alias(&alias?);
                }
            }
            Payload::ComponentImportSection(imports) => {
                for import in imports.clone() {
                    match import?.ty {
                        ComponentTypeRef::Module(_) => self.here().modules.push(UNKNOWN),
                        ComponentTypeRef::Component(_) => {
                            self.here().components.push(Count::default())
                        }
                        _ => (),
                    }
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in exports.clone() {
                    let export = export?;
                    self.again(export.kind, export.index);
                }
            }
            _ => (),
        }
        Ok(())
    }

    /// What is exported has a further number.
    fn again(&mut self, kind: ComponentExternalKind, index: u32) {
        let here = self.here();
        match kind {
            ComponentExternalKind::Module => {
                let count = found(&here.modules, index).unwrap_or(UNKNOWN);
                here.modules.push(count);
            }
            ComponentExternalKind::Component => {
                let count = found(&here.components, index).unwrap_or_default();
                here.components.push(count);
            }
            _ => (),
        }
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) {
        match *alias {
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Module, .. } => {
                self.here().modules.push(UNKNOWN);
            }
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => {
                self.here().components.push(Count::default());
            }
            ComponentAlias::Outer { kind, count, index } => {
                let outer = self.0.len().checked_sub(1 + count as usize).map(|at| &self.0[at]);
                match kind {
                    ComponentOuterAliasKind::CoreModule => {
                        let known = outer.and_then(|outer| found(&outer.modules, index));
                        self.here().modules.push(known.unwrap_or(UNKNOWN));
                    }
                    ComponentOuterAliasKind::Component => {
                        let known = outer.and_then(|outer| found(&outer.components, index));
                        self.here().components.push(known.unwrap_or_default());
                    }
                    _ => (),
                }
            }
            _ => (),
        }
    }

    fn here(&mut self) -> &mut Scope {
        if self.0.is_empty() {
            self.0.push(Scope::default());
        }
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    /// The end of what lies in something else; the outermost one stays.
    fn leave(&mut self) {
        if self.0.len() < 2 {
            return;
        }
        let Some(ended) = self.0.pop() else { return };
        let into = self.here();
        let list = if ended.is_module { &mut into.modules } else { &mut into.components };
        list.push(ended.own);
    }
}

fn found(counts: &[Count], index: u32) -> Option<Count> {
    counts.get(index as usize).copied()
}

#[cfg(test)]
mod tests {
    use wasmparser::Parser;

    use super::*;

    fn count(text: &str) -> Count {
        let wasm = wat::parse_str(text).expect("a component");
        let mut pieces = Pieces::default();
        for payload in Parser::new(0).parse_all(&wasm) {
            pieces.see(&payload.expect("valid")).expect("valid");
        }
        pieces.count()
    }

    #[test]
    fn instances_count_however_deep_they_lie() {
        let inner = "(component $c
          (core module $m (memory 1) (table 1 funcref) (table 1 funcref))
          (core instance (instantiate $m)) (core instance (instantiate $m)))";
        let text =
            format!("(component {inner} (instance (instantiate $c)) (instance (instantiate $c)))");
        assert_eq!(count(&text), Count { instances: 4, memories: 4, tables: 8 });
        assert_eq!(count(&format!("(component {inner})")), Count::default(), "nobody made one");
    }

    #[test]
    fn modules_of_outer_components_are_known_within() {
        let text = "(component
          (core module $m (memory 1))
          (component $c (alias outer 1 0 (core module $n)) (core instance (instantiate $n)))
          (instance (instantiate $c)))";
        assert_eq!(count(text), Count { instances: 1, memories: 1, tables: 0 });
    }

    #[test]
    fn instances_of_exports_alone_take_nothing() {
        let text = "(component
          (core module $m (func (export \"f\")))
          (core instance $i (instantiate $m))
          (core instance (export \"g\" (func $i \"f\"))))";
        assert_eq!(count(text), Count { instances: 1, ..Count::default() });
    }
}
