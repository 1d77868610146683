(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_create_directory" (func $path_create_directory (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_rename" (func $path_rename (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_symlink" (func $path_symlink (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "a")
  (data (i32.const 65) "d/b")
  (data (i32.const 68) "there")
  (data (i32.const 73) "kept")
  (data (i32.const 77) "done")
  (data (i32.const 81) "d-")
  (data (i32.const 83) "../etc/passwd")
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
  ;; 3 is /tmp, 4 is the same folder, 5 is /out.
  (func (export "_start")
    (call $well (call $path_create_directory (i32.const 5) (i32.const 65) (i32.const 1)))
    (call $well (call $path_create_directory (i32.const 5) (i32.const 77) (i32.const 4)))
    (call $make (i32.const 5) (i32.const 65) (i32.const 3))
    (call $put (i32.load (i32.const 16)) (i32.const 68) (i32.const 5))
    (call $make (i32.const 5) (i32.const 81) (i32.const 2))
    (call $put (i32.load (i32.const 16)) (i32.const 68) (i32.const 5))
    (call $make (i32.const 3) (i32.const 64) (i32.const 1))
    (call $put (i32.load (i32.const 16)) (i32.const 73) (i32.const 4))
    (call $well (call $path_rename
      (i32.const 3) (i32.const 64) (i32.const 1) (i32.const 5) (i32.const 64) (i32.const 1)))
    (call $well (call $path_symlink
      (i32.const 83) (i32.const 13) (i32.const 5) (i32.const 73) (i32.const 4)))
    (call $put (i32.const 1) (i32.const 77) (i32.const 4))))
