(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 32)
  (data (i32.const 64) "a")
  ;; Writes bytes to a descriptor; the piece's address and length lie at 0, what was written at 8.
  (func $put (param $fd i32) (param $at i32) (param $len i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $len))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  ;; Traps unless a call went well.
  (func $well (param $error i32)
    (if (local.get $error) (then unreachable)))
  ;; Makes a file (1) with the rights to read (2) and to write (64); its descriptor lies at 16.
  (func $make (param $folder i32) (param $path i32) (param $len i32)
    (call $well (call $path_open
      (local.get $folder) (i32.const 0) (local.get $path) (local.get $len)
      (i32.const 1) (i64.const 66) (i64.const 0) (i32.const 0) (i32.const 16))))
  ;; A file that just fits into a mebibyte, and what stdin holds to stdout: with one byte there it is too much.
  (func (export "_start")
    (call $make (i32.const 5) (i32.const 64) (i32.const 1))
    (call $put (i32.load (i32.const 16)) (i32.const 1024) (i32.const 1048567))
    (i32.store (i32.const 0) (i32.const 80))
    (i32.store (i32.const 4) (i32.const 16))
    (call $well (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $put (i32.const 1) (i32.const 80) (i32.load (i32.const 8)))))
