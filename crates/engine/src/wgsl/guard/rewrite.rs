//! A kernel with a watch at its end.

use std::borrow::Cow;

use wgpu::naga::proc::Emitter;
use wgpu::naga::{
    AddressSpace, Arena, BinaryOperator, Block, EntryPoint, Expression, Function, GlobalVariable,
    Handle, Literal, LocalVariable, MemoryDecorations, Module, ResourceBinding, Scalar,
    ShaderStage, Span, Statement, StorageAccess, Type, TypeInner, front,
};
use wgpu::{BindGroupLayout, Device, ShaderSource};

use super::flag::layout;

/// The flag's bind group; kernels have only the first.
pub(super) const GROUP: u32 = 1;
/// Turns of the watching loop. A loop always turns once; only what goes on may have been ended.
const TURNS: u32 = 2;
/// The words a loop begins with.
const LOOPS: [&str; 3] = ["for", "while", "loop"];

/// A kernel that sets a flag if its loops were cut short.
pub(in crate::wgsl) struct Watched(pub(super) Module);

impl Watched {
    /// Of the bind group the flag is in.
    pub(in crate::wgsl) fn layout(&self, device: &Device) -> BindGroupLayout {
        layout(device)
    }

    pub(in crate::wgsl) fn source(self) -> ShaderSource<'static> {
        ShaderSource::Naga(Cow::Owned(self.0))
    }
}

/// None if there is nothing to watch. An error if the kernel cannot be read.
pub(in crate::wgsl) fn watch(source: &str, entry: &str) -> Result<Option<Watched>, String> {
    // Found in other words too, which only costs the watch.
    if !LOOPS.iter().any(|word| source.contains(word)) {
        return Ok(None);
    }
    let mut module = front::wgsl::parse_str(source).map_err(|error| error.to_string())?;
    let main = module
        .entry_points
        .iter()
        .position(|it| it.name == entry && it.stage == ShaderStage::Compute)
        .ok_or_else(|| format!("the kernel has no compute entry point {entry:?}"))?;
    let word = module
        .types
        .insert(Type { name: None, inner: TypeInner::Scalar(Scalar::U32) }, Span::UNDEFINED);
    let flag = flag(&mut module, word);
    wrap(&mut module, main, flag, word);
    Ok(Some(Watched(module)))
}

fn flag(module: &mut Module, word: Handle<Type>) -> Handle<GlobalVariable> {
    let variable = GlobalVariable {
        name: None,
        space: AddressSpace::Storage { access: StorageAccess::LOAD | StorageAccess::STORE },
        binding: Some(ResourceBinding { group: GROUP, binding: 0 }),
        ty: word,
        init: None,
        memory_decorations: MemoryDecorations::empty(),
    };
    module.global_variables.append(variable, Span::UNDEFINED)
}

/// The entry point becomes a function, which a new one calls before it watches: so the watch comes
/// last wherever the kernel returns.
fn wrap(module: &mut Module, main: usize, flag: Handle<GlobalVariable>, word: Handle<Type>) {
    let EntryPoint { function, .. } = &mut module.entry_points[main];
    let arguments = function.arguments.clone();
    let mut inner = std::mem::take(function);
    for argument in &mut inner.arguments {
        argument.binding = None;
    }
    let inner = module.functions.append(inner, Span::UNDEFINED);
    let mut outer = Function { arguments, ..Function::default() };
    let given = (0..outer.arguments.len() as u32)
        .map(|at| outer.expressions.append(Expression::FunctionArgument(at), Span::UNDEFINED))
        .collect();
    let call = Statement::Call { function: inner, arguments: given, result: None };
    outer.body.push(call, Span::UNDEFINED);
    let turn = LocalVariable { name: None, ty: word, init: None };
    let turn = outer.local_variables.append(turn, Span::UNDEFINED);
    watching(&mut outer, flag, turn);
    module.entry_points[main].function = outer;
}

/// ```wgsl
/// let wanted = flag + 2u;    // the flag is zero, but the compiler does not know
/// var turn = 0u;
/// loop { if turn >= wanted { break; } turn = turn + 1u; }
/// if turn != wanted { flag = 1u; }
/// ```
fn watching(main: &mut Function, flag: Handle<GlobalVariable>, turn: Handle<LocalVariable>) {
    let mut write = Write { arena: &mut main.expressions, emitter: Emitter::default() };
    let flag = write.add(Expression::GlobalVariable(flag));
    let turn = write.add(Expression::LocalVariable(turn));
    let [one, turns] = [1, TURNS].map(|it| write.add(Expression::Literal(Literal::U32(it))));

    let wanted = write.emitted(&mut main.body, |write| {
        let seen = write.load(flag);
        write.binary(BinaryOperator::Add, seen, turns)
    });
    let mut body = Block::new();
    let [now, through] = write.emitted(&mut body, |write| {
        let now = write.load(turn);
        [now, write.binary(BinaryOperator::GreaterEqual, now, wanted)]
    });
    body.push(when(through, Statement::Break), Span::UNDEFINED);
    let next = write.emitted(&mut body, |write| write.binary(BinaryOperator::Add, now, one));
    body.push(Statement::Store { pointer: turn, value: next }, Span::UNDEFINED);
    let turning = Statement::Loop { body, continuing: Block::new(), break_if: None };
    main.body.push(turning, Span::UNDEFINED);
    let cut = write.emitted(&mut main.body, |write| {
        let reached = write.load(turn);
        write.binary(BinaryOperator::NotEqual, reached, wanted)
    });
    let raise = Statement::Store { pointer: flag, value: one };
    main.body.push(when(cut, raise), Span::UNDEFINED);
}

fn when(condition: Handle<Expression>, then: Statement) -> Statement {
    let accept = Block::from_vec(vec![then]);
    Statement::If { condition, accept, reject: Block::new() }
}

/// Expressions on their way into a function.
struct Write<'a> {
    arena: &'a mut Arena<Expression>,
    emitter: Emitter,
}

impl Write<'_> {
    fn add(&mut self, expression: Expression) -> Handle<Expression> {
        self.arena.append(expression, Span::UNDEFINED)
    }

    fn load(&mut self, pointer: Handle<Expression>) -> Handle<Expression> {
        self.add(Expression::Load { pointer })
    }

    fn binary(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Handle<Expression> {
        self.add(Expression::Binary { op, left, right })
    }

    /// What `write` adds is computed at the end of `block`.
    fn emitted<T>(&mut self, block: &mut Block, write: impl FnOnce(&mut Self) -> T) -> T {
        self.emitter.start(self.arena);
        let value = write(self);
        block.extend(self.emitter.finish(self.arena));
        value
    }
}
