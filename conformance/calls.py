"""Programs that make calls on files and say what each came to, for `files.py`, as WebAssembly text."""


import json

TMP, DOT = 3, 4
FOLLOW = 1
CREAT, DIR, EXCL, TRUNC = 1, 2, 4, 8
READ, WRITE = 2, 64
RW = READ | WRITE
APPEND, DSYNC, NONBLOCK, RSYNC, SYNC = 1, 2, 4, 8, 16
SET, CUR, END = 0, 1, 2
ATIM, ATIM_NOW, MTIM, MTIM_NOW = 1, 2, 4, 8

# Parameters of each call: a path is an address and a length, `out` the place of what comes back.
CALLS = {
    "fd_advise": "fd u64 u64 u32",
    "fd_allocate": "fd u64 u64",
    "fd_close": "fd",
    "fd_datasync": "fd",
    "fd_sync": "fd",
    "fd_fdstat_get": "fd out",
    "fd_fdstat_set_flags": "fd u32",
    "fd_fdstat_set_rights": "fd u64 u64",
    "fd_filestat_get": "fd out",
    "fd_filestat_set_size": "fd u64",
    "fd_filestat_set_times": "fd u64 u64 u32",
    "fd_pread": "fd pieces u64 out",
    "fd_prestat_get": "fd out",
    "fd_prestat_dir_name": "fd buffer",
    "fd_pwrite": "fd pieces u64 out",
    "fd_read": "fd pieces out",
    "fd_readdir": "fd buffer u64 out",
    "fd_renumber": "fd u32",
    "fd_seek": "fd u64 u32 out",
    "fd_tell": "fd out",
    "fd_write": "fd pieces out",
    "path_create_directory": "fd path",
    "path_filestat_get": "fd u32 path out",
    "path_filestat_set_times": "fd u32 path u64 u64 u32",
    "path_link": "fd u32 path fd path",
    "path_open": "fd u32 path u32 u64 u64 u32 out",
    "path_readlink": "fd path buffer out",
    "path_remove_directory": "fd path",
    "path_rename": "fd path fd path",
    "path_symlink": "path fd path",
    "path_unlink_file": "fd path",
}
WIDE = {"u64"}
PAIRS = {"path", "pieces", "buffer"}

# Places in the program's memory: pieces of a read or write, what comes back, bytes read, a number's digits, texts.
PIECES, BACK, BUFFER, DIGITS, TEXTS = 16, 64, 4096, 32, 131072
BUFFER_BYTES = 65536

PRELUDE = """  (global $errno (mut i32) (i32.const 0))
  ;; Writes a text to stdout.
  (func $say (param $at i32) (param $len i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $len))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
  ;; Writes a number.
  (func $number (param $value i64)
    (local $at i32)
    (local.set $at (i32.const 60))
    (loop $next
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $value) (i64.const 10)))))
      (local.set $value (i64.div_u (local.get $value) (i64.const 10)))
      (br_if $next (i64.ne (local.get $value) (i64.const 0))))
    (call $say (local.get $at) (i32.sub (i32.const 60) (local.get $at))))
  ;; Writes the error number of a call, and keeps it.
  (func $came (param $errno i32)
    (global.set $errno (local.get $errno))
    (call $number (i64.extend_i32_u (local.get $errno))))
"""

ENTRIES = """  ;; Writes the entries of a listing: where it goes on, kind and name.
  (func $entries (param $used i32)
    (local $at i32) (local $len i32)
    (loop $next
      (if (i32.gt_u (i32.add (local.get $at) (i32.const 24)) (local.get $used)) (then (return)))
      (local.set $len (i32.load (i32.add (i32.const %(buffer)d) (i32.add (local.get $at) (i32.const 16)))))
      (if (i32.gt_u (i32.add (i32.add (local.get $at) (i32.const 24)) (local.get $len)) (local.get $used)) (then (return)))
      (call $say (i32.const 12) (i32.const 1))
      (call $number (i64.load (i32.add (i32.const %(buffer)d) (local.get $at))))
      (call $say (i32.const 13) (i32.const 1))
      (call $number (i64.load8_u (i32.add (i32.const %(buffer)d) (i32.add (local.get $at) (i32.const 20)))))
      (call $say (i32.const 13) (i32.const 1))
      (call $say (i32.add (i32.const %(buffer)d) (i32.add (local.get $at) (i32.const 24))) (local.get $len))
      (local.set $at (i32.add (i32.add (local.get $at) (i32.const 24)) (local.get $len)))
      (br $next)))
""" % {"buffer": BUFFER}


class Program:
    def __init__(self):
        self.texts, self.used, self.body, self.end = {}, set(), [], TEXTS
        self.lists = False

    def text(self, text):
        data = text.encode() if isinstance(text, str) else text
        if data not in self.texts:
            self.texts[data] = self.end
            self.end += len(data)
        return self.texts[data], len(data)

    def say(self, text):
        at, size = self.text(text)
        self.body.append(f"    (call $say (i32.const {at}) (i32.const {size}))")

    def number(self, load):
        self.body.append(f"      (call $say (i32.const 12) (i32.const 1)) (call $number ({load}))")

    def call(self, name, *args, label=None, show=None):
        """One call. `show` are the parts of what comes back that are written if all went well."""
        self.used.add(name)
        shown = ", ".join(json.dumps(a, ensure_ascii=False) if isinstance(a, str) else str(a) for a in args)
        self.say((label or f"{name}({shown})") + " = ")
        words, given = [], list(args)
        before = []
        for kind in CALLS[name].split():
            if kind == "out":
                words.append(f"(i32.const {BACK})")
                continue
            value = given.pop(0)
            if kind == "path":
                at, size = self.text(value)
                words.append(f"(i32.const {at}) (i32.const {size})")
            elif kind == "buffer":
                words.append(f"(i32.const {BUFFER}) (i32.const {value})")
            elif kind == "pieces":
                pieces = value if isinstance(value, list) else [value]
                for index, piece in enumerate(pieces):
                    at, size = (BUFFER, piece) if isinstance(piece, int) else self.text(piece)
                    before.append(f"    (i32.store (i32.const {PIECES + index * 8}) (i32.const {at}))")
                    before.append(f"    (i32.store (i32.const {PIECES + index * 8 + 4}) (i32.const {size}))")
                words.append(f"(i32.const {PIECES}) (i32.const {len(pieces)})")
            else:
                words.append(f"({'i64' if kind in WIDE else 'i32'}.const {value})")
        assert not given, (name, given)
        self.body += before
        self.body.append(f"    (call $came (call ${name} {' '.join(words)}))")
        if show:
            self.body.append("    (if (i32.eqz (global.get $errno)) (then")
            for part in show:
                part(self)
            self.body.append("    ))")
        at, size = self.text("\n")
        self.body.append(f"    (call $say (i32.const {at}) (i32.const {size}))")

    def wat(self):
        imports = []
        for name in sorted(self.used | {"fd_write"}):
            kinds = []
            for kind in CALLS[name].split():
                kinds += ["i32", "i32"] if kind in PAIRS else ["i64" if kind in WIDE else "i32"]
            imports.append(
                f'  (import "wasi_snapshot_preview1" "{name}" (func ${name} (param {" ".join(kinds)}) (result i32)))'
            )
        data = ['  (data (i32.const 12) " :")']
        for text, at in self.texts.items():
            escaped = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02x}" for b in text)
            data.append(f'  (data (i32.const {at}) "{escaped}")')
        parts = ["(module", *imports, '  (memory (export "memory") 4)', *data, PRELUDE.rstrip("\n")]
        if self.lists:
            parts.append(ENTRIES.rstrip("\n"))
        return "\n".join([*parts, '  (func (export "_start")', *self.body, "  ))", ""]).replace("\n  ))\n", "))\n")


def word(at, size=8):
    load = {8: "i64.load", 4: "i64.load32_u", 2: "i64.load16_u", 1: "i64.load8_u"}[size]
    return lambda p: p.number(f"{load} (i32.const {BACK + at})")


def bytes_read(p):
    p.body.append("      (call $say (i32.const 12) (i32.const 1))")
    p.body.append(f"      (call $say (i32.const {BUFFER}) (i32.load (i32.const {BACK})))")


def entries(p):
    p.lists = True
    p.body.append(f"      (call $entries (i32.load (i32.const {BACK})))")


NEW = [word(0, 4)]
COUNT = [word(0, 4)]
WIDE_COUNT = [word(0)]
TEXT = [word(0, 4), bytes_read]
FILE = [word(16, 1), word(24), word(32)]
KIND = [word(16, 1)]
TIMES = [word(40), word(48)]
RIGHTS = [word(0, 1), word(2, 2), word(8), word(16)]


class Case(Program):
    def open(self, path, flags=0, rights=READ, fdflags=0, at=TMP, lookup=0):
        self.call("path_open", at, lookup, path, flags, rights, 0, fdflags, show=NEW)

    def write(self, fd, text):
        self.call("fd_write", fd, text, show=COUNT)

    def read(self, fd, size):
        self.call("fd_read", fd, size, show=TEXT)

    def close(self, fd):
        self.call("fd_close", fd)

    def file(self, path, text="", fd=5, at=TMP):
        """A closed file with these bytes."""
        self.open(path, CREAT | TRUNC, RW, at=at)
        if text:
            self.write(fd, text)
        self.close(fd)

    def folder(self, path, at=TMP):
        self.call("path_create_directory", at, path)

    def link(self, target, path, at=TMP):
        self.call("path_symlink", target, at, path)

    def stat(self, path, lookup=0, at=TMP, show=FILE):
        self.call("path_filestat_get", at, lookup, path, show=show)

    def unlink(self, path, at=TMP):
        self.call("path_unlink_file", at, path)

    def rmdir(self, path, at=TMP):
        self.call("path_remove_directory", at, path)

    def rename(self, old, new, at=TMP, to=TMP):
        self.call("path_rename", at, old, to, new)

    def show(self, path, size=64, fd=5):
        """What a file holds."""
        self.open(path)
        self.read(fd, size)
        self.close(fd)


MADE = {}


def case(name, about, **more):
    def make(fill):
        program = Case()
        fill(program)
        MADE[name] = (about, program, more)
    return make
