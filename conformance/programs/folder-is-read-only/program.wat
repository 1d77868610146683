(module
  (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_unlink_file" (func $path_unlink_file (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 128) "a.txt")
  ;; Opens the file whose name lies at 128 in the folder, and shows the error number.
  (func $open (param $len i32) (param $oflags i32) (param $rights i64) (result i32)
    (call $path_open (i32.const 3) (i32.const 0) (i32.const 128) (local.get $len) (local.get $oflags)
      (local.get $rights) (local.get $rights) (i32.const 0) (i32.const 96)))
  (func (export "_start")
    ;; To create, to truncate, to write, to remove: all must fail.
    (i32.store8 (i32.const 128) (i32.const 110))
    (if (i32.eqz (call $open (i32.const 5) (i32.const 1) (i64.const 66))) (then (unreachable)))
    (i32.store8 (i32.const 128) (i32.const 97))
    (if (i32.eqz (call $open (i32.const 5) (i32.const 8) (i64.const 66))) (then (unreachable)))
    (if (i32.eqz (call $path_unlink_file (i32.const 3) (i32.const 128) (i32.const 5))) (then (unreachable)))
    ;; To read still works.
    (if (call $open (i32.const 5) (i32.const 0) (i64.const 2)) (then (unreachable)))))
