//! The WASI calls on files: the program's memory and the run's clock lent to `files`, which decides.

use bytes::Bytes;
use wasmtime::{Caller, Linker};

use super::calls::{EFAULT, MODULE, split, write_out};
use super::folder::Opened;
use super::host::{Chance, Host};
use crate::files::{Errno, Files, Guest, Opening, Pieces, Stream, Text};

type Program<'a> = Caller<'a, Host>;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    add_descriptors(linker)?;
    add_bytes(linker)?;
    add_paths(linker)?;
    add_moves(linker)
}

#[rustfmt::skip]
fn add_descriptors(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker
        .func_wrap(MODULE, "fd_advise", |mut it: Program<'_>, fd: u32, offset: u64, len: u64, advice: u32| {
            on(&mut it, |files, _| files.fd_advise(fd, offset, len, advice))
        })?
        .func_wrap(MODULE, "fd_allocate", |mut it: Program<'_>, fd: u32, _offset: u64, _len: u64| {
            on(&mut it, |files, _| files.fd_allocate(fd))
        })?
        .func_wrap(MODULE, "fd_close", |mut it: Program<'_>, fd: u32| {
            on(&mut it, |files, _| files.fd_close(fd))
        })?
        .func_wrap(MODULE, "fd_datasync", |mut it: Program<'_>, fd: u32| {
            on(&mut it, |files, _| files.fd_sync(fd))
        })?
        .func_wrap(MODULE, "fd_sync", |mut it: Program<'_>, fd: u32| {
            on(&mut it, |files, _| files.fd_sync(fd))
        })?
        .func_wrap(MODULE, "fd_fdstat_get", |mut it: Program<'_>, fd: u32, out: u32| {
            on(&mut it, |files, lent| files.fd_fdstat_get(lent, fd, out))
        })?
        .func_wrap(MODULE, "fd_fdstat_set_flags", |mut it: Program<'_>, fd: u32, flags: u32| {
            on(&mut it, |files, _| files.fd_fdstat_set_flags(fd, flags))
        })?
        .func_wrap(MODULE, "fd_fdstat_set_rights", |mut it: Program<'_>, fd: u32, base: u64, inheriting: u64| {
            on(&mut it, |files, _| files.fd_fdstat_set_rights(fd, base, inheriting))
        })?
        .func_wrap(MODULE, "fd_filestat_get", |mut it: Program<'_>, fd: u32, out: u32| {
            on(&mut it, |files, lent| files.fd_filestat_get(lent, fd, out))
        })?
        .func_wrap(MODULE, "fd_filestat_set_size", |mut it: Program<'_>, fd: u32, size: u64| {
            on(&mut it, |files, lent| files.fd_filestat_set_size(lent, fd, size))
        })?
        .func_wrap(MODULE, "fd_filestat_set_times", |mut it: Program<'_>, fd: u32, accessed: u64, modified: u64, flags: u32| {
            on(&mut it, |files, lent| files.fd_filestat_set_times(lent, fd, (accessed, modified, flags)))
        })?
        .func_wrap(MODULE, "fd_prestat_get", |mut it: Program<'_>, fd: u32, out: u32| {
            on(&mut it, |files, lent| files.fd_prestat_get(lent, fd, out))
        })?
        .func_wrap(MODULE, "fd_prestat_dir_name", |mut it: Program<'_>, fd: u32, out: u32, most: u32| {
            on(&mut it, |files, lent| files.fd_prestat_dir_name(lent, fd, out, most))
        })?
        .func_wrap(MODULE, "fd_renumber", |mut it: Program<'_>, from: u32, to: u32| {
            on(&mut it, |files, _| files.fd_renumber(from, to))
        })?;
    Ok(())
}

#[rustfmt::skip]
fn add_bytes(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker
        .func_wrap(MODULE, "fd_read", |mut it: Program<'_>, fd: u32, at: u32, count: u32, out: u32| {
            on(&mut it, |files, lent| files.fd_read(lent, fd, Pieces { at, count }, out))
        })?
        .func_wrap(MODULE, "fd_pread", |mut it: Program<'_>, fd: u32, at: u32, count: u32, offset: u64, out: u32| {
            on(&mut it, |files, lent| files.fd_pread(lent, fd, Pieces { at, count }, (offset, out)))
        })?
        .func_wrap(MODULE, "fd_write", |mut it: Program<'_>, fd: u32, at: u32, count: u32, out: u32| -> wasmtime::Result<i32> {
            let pieces = Pieces { at, count };
            match it.data().files.stream(fd) {
                Some(Stream::Out) => write_out(&mut it, true, pieces, out),
                Some(Stream::Err) => write_out(&mut it, false, pieces, out),
                Some(Stream::In) | None => Ok(on(&mut it, |files, lent| files.fd_write(lent, fd, pieces, out))),
            }
        })?
        .func_wrap(MODULE, "fd_pwrite", |mut it: Program<'_>, fd: u32, at: u32, count: u32, offset: u64, out: u32| {
            on(&mut it, |files, lent| files.fd_pwrite(lent, fd, Pieces { at, count }, (offset, out)))
        })?
        .func_wrap(MODULE, "fd_seek", |mut it: Program<'_>, fd: u32, offset: i64, whence: u32, out: u32| {
            on(&mut it, |files, lent| files.fd_seek(lent, fd, (offset, whence), out))
        })?
        .func_wrap(MODULE, "fd_tell", |mut it: Program<'_>, fd: u32, out: u32| {
            on(&mut it, |files, lent| files.fd_tell(lent, fd, out))
        })?
        .func_wrap(MODULE, "fd_readdir", |mut it: Program<'_>, fd: u32, buffer: u32, most: u32, cookie: u64, out: u32| {
            on(&mut it, |files, lent| files.fd_readdir(lent, fd, (buffer, most), (cookie, out)))
        })?
        .func_wrap(MODULE, "sock_accept", |mut it: Program<'_>, fd: u32, _flags: u32, _out: u32| {
            on(&mut it, |files, _| files.sock(fd))
        })?
        .func_wrap(MODULE, "sock_recv", |mut it: Program<'_>, fd: u32, _: u32, _: u32, _: u32, _: u32, _: u32| {
            on(&mut it, |files, _| files.sock(fd))
        })?
        .func_wrap(MODULE, "sock_send", |mut it: Program<'_>, fd: u32, _: u32, _: u32, _: u32, _: u32| {
            on(&mut it, |files, _| files.sock(fd))
        })?
        .func_wrap(MODULE, "sock_shutdown", |mut it: Program<'_>, fd: u32, _how: u32| {
            on(&mut it, |files, _| files.sock(fd))
        })?;
    Ok(())
}

#[rustfmt::skip]
fn add_paths(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker
        .func_wrap(MODULE, "path_open",
            |mut it: Program<'_>, fd: u32, lookup: u32, at: u32, len: u32, flags: u32, rights: u64, inheriting: u64, fd_flags: u32, out: u32| {
                let opening = Opening { lookup, flags, rights, inheriting, fd_flags };
                on(&mut it, |files, lent| files.path_open(lent, fd, Text { at, len }, opening, out))
            })?
        .func_wrap(MODULE, "path_filestat_get", |mut it: Program<'_>, fd: u32, lookup: u32, at: u32, len: u32, out: u32| {
            on(&mut it, |files, lent| files.path_filestat_get(lent, fd, (lookup, Text { at, len }), out))
        })?
        .func_wrap(MODULE, "path_filestat_set_times",
            |mut it: Program<'_>, fd: u32, lookup: u32, at: u32, len: u32, accessed: u64, modified: u64, flags: u32| {
                let times = (accessed, modified, flags);
                on(&mut it, |files, lent| files.path_filestat_set_times(lent, fd, (lookup, Text { at, len }), times))
            })?
        .func_wrap(MODULE, "path_readlink", |mut it: Program<'_>, fd: u32, at: u32, len: u32, buffer: u32, most: u32, out: u32| {
            on(&mut it, |files, lent| files.path_readlink(lent, fd, Text { at, len }, (buffer, most), out))
        })?;
    Ok(())
}

#[rustfmt::skip]
fn add_moves(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker
        .func_wrap(MODULE, "path_create_directory", |mut it: Program<'_>, fd: u32, at: u32, len: u32| {
            on(&mut it, |files, lent| files.path_create_directory(lent, fd, Text { at, len }))
        })?
        .func_wrap(MODULE, "path_remove_directory", |mut it: Program<'_>, fd: u32, at: u32, len: u32| {
            on(&mut it, |files, lent| files.path_remove_directory(lent, fd, Text { at, len }))
        })?
        .func_wrap(MODULE, "path_unlink_file", |mut it: Program<'_>, fd: u32, at: u32, len: u32| {
            on(&mut it, |files, lent| files.path_unlink_file(lent, fd, Text { at, len }))
        })?
        .func_wrap(MODULE, "path_symlink", |mut it: Program<'_>, to: u32, to_len: u32, fd: u32, at: u32, len: u32| {
            let target = Text { at: to, len: to_len };
            on(&mut it, |files, lent| files.path_symlink(lent, target, fd, Text { at, len }))
        })?
        .func_wrap(MODULE, "path_link",
            |mut it: Program<'_>, old_fd: u32, lookup: u32, old: u32, old_len: u32, new_fd: u32, at: u32, len: u32| {
                let (old, new) = (Text { at: old, len: old_len }, Text { at, len });
                on(&mut it, |files, lent| files.path_link(lent, (old_fd, lookup, old), (new_fd, new)))
            })?
        .func_wrap(MODULE, "path_rename", |mut it: Program<'_>, old_fd: u32, old: u32, old_len: u32, new_fd: u32, at: u32, len: u32| {
            let (old, new) = (Text { at: old, len: old_len }, Text { at, len });
            on(&mut it, |files, lent| files.path_rename(lent, (old_fd, old), (new_fd, new)))
        })?;
    Ok(())
}

fn on(
    program: &mut Program<'_>,
    call: impl FnOnce(&mut Files, &mut Lent<'_>) -> Result<(), Errno>,
) -> i32 {
    let Some((memory, host)) = split(program) else {
        return EFAULT;
    };
    let Host { files, chance, folder, stdin, .. } = host;
    Errno::of(call(files, &mut Lent { memory, chance, folder, stdin }))
}

/// What a run lends for one call.
struct Lent<'a> {
    memory: &'a mut [u8],
    chance: &'a mut Chance,
    folder: &'a mut Option<Opened>,
    stdin: &'a mut Bytes,
}

impl Lent<'_> {
    fn place(&mut self, at: u32, len: usize) -> Result<&mut [u8], Errno> {
        let at = at as usize;
        self.memory.get_mut(at..at.saturating_add(len)).ok_or(Errno::FAULT)
    }
}

impl Guest for Lent<'_> {
    fn size(&self) -> u64 {
        self.memory.len() as u64
    }

    fn read(&self, at: u32, into: &mut [u8]) -> Result<(), Errno> {
        let at = at as usize;
        into.copy_from_slice(self.memory.get(at..at + into.len()).ok_or(Errno::FAULT)?);
        Ok(())
    }

    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno> {
        self.place(at, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn copy(&mut self, file: u32, from: u64, at: u32, len: u32) -> Result<(), Errno> {
        let at = at as usize;
        let into = self.memory.get_mut(at..at + len as usize).ok_or(Errno::FAULT)?;
        self.folder.as_mut().ok_or(Errno::IO)?.read(file, from, into)
    }

    fn stdin_left(&self) -> u64 {
        self.stdin.len() as u64
    }

    /// The item's bytes, once, from front to back.
    fn stdin(&mut self, at: u32, len: u32) -> Result<(), Errno> {
        let bytes = self.stdin.split_to(len as usize);
        self.write(at, &bytes)
    }

    fn stamp(&mut self) -> u64 {
        self.chance.stamp()
    }
}
