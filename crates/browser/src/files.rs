//! The files of programs for JavaScript: the WASI calls on them, each with the program's own arguments behind what the
//! run lends for it. By the same code as the native engine's, so that programs find the same everywhere.

use std::sync::Arc;

use js_sys::Uint8Array;
use shoal_engine::files::{Errno, Files as Tree, Guest, Opening, Pieces, Shared, Stream, Text};
use shoal_kinds::exec::files_room;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What a run lends with each call: the program's memory, its clock, its stdin, and the bytes of the files that its job brought. */
export interface Lent {
  readonly memory: Uint8Array;
  /** The time of a change, in nanoseconds. */
  stamp(): bigint;
  /** Bytes of stdin that were not read yet. */
  readonly stdinLeft: number;
  /** Moves the next bytes of stdin to the program's memory. */
  stdin(at: number, len: number): void;
  /** Copies a piece of a file in `/data`, by its place in the list, to the program's memory. */
  copy(file: number, from: number, at: number, len: number): void;
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "Lent")]
    pub type Lent;
    #[wasm_bindgen(method, structural, getter)]
    fn memory(this: &Lent) -> Uint8Array;
    #[wasm_bindgen(method, structural)]
    fn stamp(this: &Lent) -> u64;
    #[wasm_bindgen(method, structural, getter, js_name = stdinLeft)]
    fn stdin_left(this: &Lent) -> f64;
    #[wasm_bindgen(method, structural)]
    fn stdin(this: &Lent, at: u32, len: u32);
    #[wasm_bindgen(method, structural)]
    fn copy(this: &Lent, file: u32, from: f64, at: u32, len: u32);
}

/// A folder that all runs of a job find as `/data`.
#[wasm_bindgen]
pub struct SharedFolder(Arc<Shared>);

#[wasm_bindgen]
impl SharedFolder {
    #[wasm_bindgen(constructor)]
    pub fn new(names: Vec<String>, sizes: Vec<f64>) -> SharedFolder {
        let files = names.iter().map(String::as_str).zip(sizes.into_iter().map(|size| size as u64));
        SharedFolder(Arc::new(Shared::new(files)))
    }
}

/// The files of one run.
#[wasm_bindgen]
pub struct Files(Tree);

#[wasm_bindgen]
impl Files {
    /// Of a run whose job allows it so many bytes of memory.
    pub fn empty(memory: f64) -> Files {
        Files(Tree::new(files_room(memory as u64), None))
    }

    /// The same, with a folder.
    pub fn with(memory: f64, folder: &SharedFolder) -> Files {
        Files(Tree::new(files_room(memory as u64), Some(folder.0.clone())))
    }

    /// The same, with `/out`.
    #[wasm_bindgen(js_name = withOut)]
    pub fn with_out(self) -> Files {
        Files(self.0.with_out())
    }

    /// What is in `/out`, packed as answers carry it; nothing if that takes more than so many bytes.
    pub fn left(&self, most: f64) -> Option<Vec<u8>> {
        self.0.left(most as u64)
    }

    /// 0, 1 or 2 of what is stdin, stdout or stderr now, -1 of all else.
    pub fn stream(&self, fd: u32) -> i32 {
        match self.0.stream(fd) {
            Some(Stream::In) => 0,
            Some(Stream::Out) => 1,
            Some(Stream::Err) => 2,
            None => -1,
        }
    }
}

struct Program<'a> {
    lent: &'a Lent,
    memory: Uint8Array,
    size: u64,
}

impl<'a> Program<'a> {
    fn new(lent: &'a Lent) -> Program<'a> {
        let memory = lent.memory();
        let size = u64::from(memory.length());
        Program { lent, memory, size }
    }

    fn place(&self, at: u32, len: usize) -> Result<Uint8Array, Errno> {
        let end = u64::from(at) + len as u64;
        if end > self.size {
            return Err(Errno::FAULT);
        }
        Ok(self.memory.subarray(at, at.wrapping_add(len as u32)))
    }
}

impl Guest for Program<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, at: u32, into: &mut [u8]) -> Result<(), Errno> {
        self.place(at, into.len())?.copy_to(into);
        Ok(())
    }

    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno> {
        self.place(at, bytes.len())?.copy_from(bytes);
        Ok(())
    }

    fn copy(&mut self, file: u32, from: u64, at: u32, len: u32) -> Result<(), Errno> {
        self.lent.copy(file, from as f64, at, len);
        Ok(())
    }

    fn stdin_left(&self) -> u64 {
        self.lent.stdin_left() as u64
    }

    fn stdin(&mut self, at: u32, len: u32) -> Result<(), Errno> {
        self.lent.stdin(at, len);
        Ok(())
    }

    fn stamp(&mut self) -> u64 {
        self.lent.stamp()
    }
}

impl Files {
    fn on(
        &mut self,
        lent: &Lent,
        call: impl FnOnce(&mut Tree, &mut Program<'_>) -> Result<(), Errno>,
    ) -> i32 {
        Errno::of(call(&mut self.0, &mut Program::new(lent)))
    }
}

/// The calls, as preview1 has them.
macro_rules! calls {
    ($($name:ident($($arg:ident: $kind:ty),*) = |$files:ident, $program:ident| $body:expr;)*) => {
        #[wasm_bindgen]
        #[allow(clippy::too_many_arguments, reason = "preview1 has so many")]
        impl Files {
            $(pub fn $name(&mut self, lent: &Lent, $($arg: $kind),*) -> i32 {
                self.on(lent, |$files, $program| $body)
            })*
        }
    };
}

#[rustfmt::skip]
mod made {
use super::*;

calls! {
    fd_advise(fd: u32, offset: u64, len: u64, advice: u32) = |files, _it| files.fd_advise(fd, offset, len, advice);
    fd_allocate(fd: u32, _offset: u64, _len: u64) = |files, _it| files.fd_allocate(fd);
    fd_close(fd: u32) = |files, _it| files.fd_close(fd);
    fd_datasync(fd: u32) = |files, _it| files.fd_sync(fd);
    fd_sync(fd: u32) = |files, _it| files.fd_sync(fd);
    fd_fdstat_get(fd: u32, out: u32) = |files, it| files.fd_fdstat_get(it, fd, out);
    fd_fdstat_set_flags(fd: u32, flags: u32) = |files, _it| files.fd_fdstat_set_flags(fd, flags);
    fd_fdstat_set_rights(fd: u32, base: u64, inheriting: u64) = |files, _it| files.fd_fdstat_set_rights(fd, base, inheriting);
    fd_filestat_get(fd: u32, out: u32) = |files, it| files.fd_filestat_get(it, fd, out);
    fd_filestat_set_size(fd: u32, size: u64) = |files, it| files.fd_filestat_set_size(it, fd, size);
    fd_filestat_set_times(fd: u32, accessed: u64, modified: u64, flags: u32)
        = |files, it| files.fd_filestat_set_times(it, fd, (accessed, modified, flags));
    fd_prestat_get(fd: u32, out: u32) = |files, it| files.fd_prestat_get(it, fd, out);
    fd_prestat_dir_name(fd: u32, out: u32, most: u32) = |files, it| files.fd_prestat_dir_name(it, fd, out, most);
    fd_renumber(from: u32, to: u32) = |files, _it| files.fd_renumber(from, to);
    fd_read(fd: u32, at: u32, count: u32, out: u32) = |files, it| files.fd_read(it, fd, Pieces { at, count }, out);
    fd_pread(fd: u32, at: u32, count: u32, offset: u64, out: u32)
        = |files, it| files.fd_pread(it, fd, Pieces { at, count }, (offset, out));
    fd_write(fd: u32, at: u32, count: u32, out: u32) = |files, it| files.fd_write(it, fd, Pieces { at, count }, out);
    fd_pwrite(fd: u32, at: u32, count: u32, offset: u64, out: u32)
        = |files, it| files.fd_pwrite(it, fd, Pieces { at, count }, (offset, out));
    fd_seek(fd: u32, offset: i64, whence: u32, out: u32) = |files, it| files.fd_seek(it, fd, (offset, whence), out);
    fd_tell(fd: u32, out: u32) = |files, it| files.fd_tell(it, fd, out);
    fd_readdir(fd: u32, buffer: u32, most: u32, cookie: u64, out: u32)
        = |files, it| files.fd_readdir(it, fd, (buffer, most), (cookie, out));
    path_open(fd: u32, lookup: u32, at: u32, len: u32, flags: u32, rights: u64, inheriting: u64, fd_flags: u32, out: u32)
        = |files, it| files.path_open(it, fd, Text { at, len }, Opening { lookup, flags, rights, inheriting, fd_flags }, out);
    path_filestat_get(fd: u32, lookup: u32, at: u32, len: u32, out: u32)
        = |files, it| files.path_filestat_get(it, fd, (lookup, Text { at, len }), out);
    path_filestat_set_times(fd: u32, lookup: u32, at: u32, len: u32, accessed: u64, modified: u64, flags: u32)
        = |files, it| files.path_filestat_set_times(it, fd, (lookup, Text { at, len }), (accessed, modified, flags));
    path_readlink(fd: u32, at: u32, len: u32, buffer: u32, most: u32, out: u32)
        = |files, it| files.path_readlink(it, fd, Text { at, len }, (buffer, most), out);
    path_create_directory(fd: u32, at: u32, len: u32) = |files, it| files.path_create_directory(it, fd, Text { at, len });
    path_remove_directory(fd: u32, at: u32, len: u32) = |files, it| files.path_remove_directory(it, fd, Text { at, len });
    path_unlink_file(fd: u32, at: u32, len: u32) = |files, it| files.path_unlink_file(it, fd, Text { at, len });
    path_symlink(to: u32, to_len: u32, fd: u32, at: u32, len: u32)
        = |files, it| files.path_symlink(it, Text { at: to, len: to_len }, fd, Text { at, len });
    path_link(old_fd: u32, lookup: u32, old: u32, old_len: u32, new_fd: u32, at: u32, len: u32)
        = |files, it| files.path_link(it, (old_fd, lookup, Text { at: old, len: old_len }), (new_fd, Text { at, len }));
    path_rename(old_fd: u32, old: u32, old_len: u32, new_fd: u32, at: u32, len: u32)
        = |files, it| files.path_rename(it, (old_fd, Text { at: old, len: old_len }), (new_fd, Text { at, len }));
    sock_accept(fd: u32) = |files, _it| files.sock(fd);
    sock_recv(fd: u32) = |files, _it| files.sock(fd);
    sock_send(fd: u32) = |files, _it| files.sock(fd);
    sock_shutdown(fd: u32) = |files, _it| files.sock(fd);
}
}
