/** What a program sees as files: stdin, stdout, stderr and a folder it may read. */

import { Directory, Fd, File, PreopenDirectory, wasi } from "@bjorn3/browser_wasi_shim";

const ALL_RIGHTS = 0xffff_ffff_ffff_ffffn;
const OFLAGS_WRITING = wasi.OFLAGS_CREAT | wasi.OFLAGS_TRUNC;

/** Standard input: the item's bytes, once, from front to back. */
export class Stdin extends Fd {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {
    super();
  }

  override fd_read(size: number): { ret: number; data: Uint8Array } {
    const data = this.bytes.subarray(this.at, this.at + size);
    this.at += data.length;
    return { ret: wasi.ERRNO_SUCCESS, data };
  }

  override fd_fdstat_get() {
    return stream(wasi.RIGHTS_FD_READ);
  }

  override fd_filestat_get() {
    return streamStat();
  }

  override fd_seek() {
    return { ret: wasi.ERRNO_SPIPE, offset: 0n };
  }
}

/** Standard output or error; what is written never comes here. */
export class Stream extends Fd {
  override fd_fdstat_get() {
    return stream(wasi.RIGHTS_FD_WRITE);
  }

  override fd_filestat_get() {
    return streamStat();
  }

  override fd_read() {
    return { ret: wasi.ERRNO_BADF, data: new Uint8Array(0) };
  }

  override fd_seek() {
    return { ret: wasi.ERRNO_SPIPE, offset: 0n };
  }
}

function stream(rights: number) {
  const fdstat = new wasi.Fdstat(wasi.FILETYPE_UNKNOWN, 0);
  fdstat.fs_rights_base = BigInt(rights);
  return { ret: wasi.ERRNO_SUCCESS, fdstat };
}

function streamStat() {
  return { ret: wasi.ERRNO_SUCCESS, filestat: new wasi.Filestat(0n, wasi.FILETYPE_UNKNOWN, 0n) };
}

/** Files by name, `/` between folders. */
export type Folder = ReadonlyMap<string, Uint8Array>;

/** A preopened folder in which nothing can be changed. */
export class ReadOnlyFolder extends PreopenDirectory {
  constructor(name: string, files: Folder) {
    super(name, tree(files));
  }

  override fd_fdstat_get() {
    const fdstat = new wasi.Fdstat(wasi.FILETYPE_DIRECTORY, 0);
    // Old C libraries look at these before they try.
    fdstat.fs_rights_base = ALL_RIGHTS;
    fdstat.fs_rights_inherited = ALL_RIGHTS;
    return { ret: wasi.ERRNO_SUCCESS, fdstat };
  }

  override path_open(
    dirflags: number,
    path: string,
    oflags: number,
    rights: bigint,
    inheriting: bigint,
    flags: number,
  ): ReturnType<PreopenDirectory["path_open"]> {
    const writes = (oflags & OFLAGS_WRITING) !== 0 || (rights & BigInt(wasi.RIGHTS_FD_WRITE)) !== 0n;
    if (writes && (oflags & wasi.OFLAGS_DIRECTORY) === 0) return { ret: wasi.ERRNO_PERM, fd_obj: null };
    const opened = super.path_open(dirflags, path, oflags & ~OFLAGS_WRITING, rights, inheriting, flags);
    // Where a path leads out of the folder, native engines say "not permitted".
    return opened.ret === wasi.ERRNO_NOTCAPABLE ? { ret: wasi.ERRNO_PERM, fd_obj: null } : opened;
  }

  override path_create_directory(): number {
    return wasi.ERRNO_PERM;
  }

  override path_link(): number {
    return wasi.ERRNO_PERM;
  }

  override path_unlink() {
    return { ret: wasi.ERRNO_PERM, inode_obj: null };
  }

  override path_unlink_file(): number {
    return wasi.ERRNO_PERM;
  }

  override path_remove_directory(): number {
    return wasi.ERRNO_PERM;
  }
}

function tree(files: Folder): Map<string, File | Directory> {
  const root = new Map<string, File | Directory>();
  // Sorted, so that listing the folder gives the same everywhere.
  for (const [path, bytes] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const names = path.split("/");
    const last = names.pop() ?? path;
    let folder = root;
    for (const name of names) {
      let next = folder.get(name);
      if (!(next instanceof Directory)) {
        next = new Directory(new Map());
        folder.set(name, next);
      }
      folder = next.contents as Map<string, File | Directory>;
    }
    folder.set(last, new SharedFile(bytes));
  }
  return root;
}

/** A file whose bytes are not copied: many runs share them, and none can write. */
class SharedFile extends File {
  constructor(bytes: Uint8Array) {
    super([], { readonly: true });
    this.data = bytes;
  }
}
