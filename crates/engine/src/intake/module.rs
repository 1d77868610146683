//! WASI programs: what they import, what they export, and how much memory they start with.

use wasmparser::{
    BinaryReaderError, ExternalKind, Parser, Payload, TypeRef, Validator, WasmFeatures,
};

use super::IntakeError;

const WASI: &str = "wasi_snapshot_preview1";
pub(super) const PAGE: u64 = 64 << 10;
/// What Rust, C, Go and Zig compile to, SIMD of 128 bits too, and every engine has. Relaxed SIMD and threads are left out
/// because their results differ from node to node.
pub(super) const FEATURES: WasmFeatures =
    WasmFeatures::WASM2.union(WasmFeatures::EXTENDED_CONST).union(WasmFeatures::TAIL_CALL);
/// Unknown imports named in one error.
const MOST_NAMED: usize = 8;

/// All functions of WASI preview1.
const CALLS: &[&str] = &[
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_advise",
    "fd_allocate",
    "fd_close",
    "fd_datasync",
    "fd_fdstat_get",
    "fd_fdstat_set_flags",
    "fd_fdstat_set_rights",
    "fd_filestat_get",
    "fd_filestat_set_size",
    "fd_filestat_set_times",
    "fd_pread",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_pwrite",
    "fd_read",
    "fd_readdir",
    "fd_renumber",
    "fd_seek",
    "fd_sync",
    "fd_tell",
    "fd_write",
    "path_create_directory",
    "path_filestat_get",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_readlink",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
    "poll_oneoff",
    "proc_exit",
    "proc_raise",
    "random_get",
    "sched_yield",
    "sock_accept",
    "sock_recv",
    "sock_send",
    "sock_shutdown",
];

pub(super) fn check(wasm: &[u8], memory_limit: u64) -> Result<(), IntakeError> {
    is_module(wasm)?;
    Validator::new_with_features(FEATURES).validate_all(wasm).map_err(invalid)?;
    let outline = Outline::read(wasm).map_err(invalid)?;
    outline.check(memory_limit)
}

pub(super) fn knows_paths(wasm: &[u8]) -> bool {
    let imports = Parser::new(0).parse_all(wasm).find_map(|payload| match payload {
        Ok(Payload::ImportSection(imports)) => Some(imports),
        _ => None,
    });
    let names = imports.into_iter().flat_map(|imports| imports.into_imports());
    names.flatten().any(|import| import.name.starts_with("path_"))
}

fn is_module(wasm: &[u8]) -> Result<(), IntakeError> {
    if Parser::is_core_wasm(wasm) {
        return Ok(());
    }
    let problem = if wasm.is_empty() {
        "the program is empty"
    } else if wasm.trim_ascii_start().starts_with(b"(") {
        "the program is WebAssembly text; expected the binary form (convert it with wat2wasm)"
    } else {
        "the program is no WebAssembly module: it does not start with \\0asm"
    };
    Err(bad(problem))
}

/// What a module shows to the outside.
#[derive(Default)]
struct Outline {
    unknown: Vec<String>,
    unknown_count: usize,
    has_memory: bool,
    /// Bytes of memory it starts with.
    memory: u64,
    start: Option<u32>,
    /// The type of each function, imported ones first.
    functions: Vec<u32>,
    /// Of each function type, whether it takes and gives nothing.
    plain: Vec<bool>,
}

impl Outline {
    fn read(wasm: &[u8]) -> Result<Outline, BinaryReaderError> {
        let mut outline = Outline::default();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(types) => {
                    for ty in types.into_iter_err_on_gc_types() {
                        let ty = ty?;
                        outline.plain.push(ty.params().is_empty() && ty.results().is_empty());
                    }
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let import = import?;
                        outline.import(import.module, import.name, import.ty);
                    }
                }
                Payload::FunctionSection(functions) => {
                    for ty in functions {
                        outline.functions.push(ty?);
                    }
                }
                Payload::MemorySection(memories) => {
                    for memory in memories {
                        outline.memory += memory?.initial.saturating_mul(PAGE);
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        match (export.name, export.kind) {
                            ("memory", ExternalKind::Memory) => outline.has_memory = true,
                            ("_start", ExternalKind::Func) => outline.start = Some(export.index),
                            _ => (),
                        }
                    }
                }
                _ => (),
            }
        }
        Ok(outline)
    }

    fn import(&mut self, module: &str, name: &str, ty: TypeRef) {
        if let TypeRef::Func(ty) | TypeRef::FuncExact(ty) = ty {
            self.functions.push(ty);
            if module == WASI && CALLS.contains(&name) {
                return;
            }
        }
        self.unknown_count += 1;
        if self.unknown.len() < MOST_NAMED {
            self.unknown.push(format!("{module}.{name}"));
        }
    }

    fn check(&self, memory_limit: u64) -> Result<(), IntakeError> {
        if self.unknown_count > 0 {
            let more = match self.unknown_count - self.unknown.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let names = self.unknown.join(", ");
            return Err(bad(format!(
                "the program imports what no node offers: {names}{more}; only functions of {WASI} \
                 are known"
            )));
        }
        let Some(start) = self.start else {
            return Err(bad(
                "the program exports no function `_start`: it is a library, not a WASI command",
            ));
        };
        let ty = self.functions.get(start as usize).and_then(|ty| self.plain.get(*ty as usize));
        if ty != Some(&true) {
            return Err(bad("the program's `_start` takes or gives values; expected neither"));
        }
        if !self.has_memory {
            return Err(bad("the program exports no memory called `memory`, which WASI needs"));
        }
        if self.memory > memory_limit {
            return Err(too_large(self.memory, memory_limit));
        }
        Ok(())
    }
}

pub(super) fn too_large(memory: u64, limit: u64) -> IntakeError {
    let (needs, allowed) = (memory.div_ceil(1 << 20), limit >> 20);
    bad(format!("the program starts with {needs} MiB of memory; the job allows {allowed} MiB"))
}

pub(super) fn invalid(error: BinaryReaderError) -> IntakeError {
    let (message, at) = (error.message(), error.offset());
    bad(format!("the program is not valid WebAssembly: {message} (at byte {at})"))
}

pub(super) fn bad(message: impl Into<String>) -> IntakeError {
    IntakeError::plain("bad_module", message)
}
