(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_create_directory" (func $path_create_directory (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  ;; Writes bytes to a stream; the piece's address and length lie at 0, what was written at 8.
  (func $put (param $fd i32) (param $at i32) (param $len i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $len))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  ;; Writes a number to stdout as 16 hexadecimal digits and a line end.
  (func $hex (param $value i64)
    (local $digit i32) (local $at i32)
    (local.set $at (i32.const 15))
    (loop $next
      (local.set $digit (i32.wrap_i64 (i64.and (local.get $value) (i64.const 15))))
      (i32.store8 (i32.add (i32.const 32) (local.get $at))
        (i32.add (local.get $digit)
          (select (i32.const 48) (i32.const 87) (i32.lt_u (local.get $digit) (i32.const 10)))))
      (local.set $value (i64.shr_u (local.get $value) (i64.const 4)))
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (br_if $next (i32.ge_s (local.get $at) (i32.const 0))))
    (i32.store8 (i32.const 48) (i32.const 10))
    (call $put (i32.const 1) (i32.const 32) (i32.const 17)))
  (data (i32.const 64) "a")
  (data (i32.const 65) "d")
  (data (i32.const 66) "there")
  ;; A file and a folder are made in the first folder, where neither may be yet. Then the file is written to.
  (func (export "_start")
    ;; Creates (1), and fails if it is there (4); with the rights to read (2) and to write (64).
    (call $hex (i64.extend_i32_u (call $path_open
      (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 1)
      (i32.const 5) (i64.const 66) (i64.const 0) (i32.const 0) (i32.const 16))))
    (call $hex (i64.extend_i32_u (call $path_create_directory (i32.const 3) (i32.const 65) (i32.const 1))))
    (call $put (i32.load (i32.const 16)) (i32.const 66) (i32.const 5))
    (call $hex (i64.load32_u (i32.const 8)))))
