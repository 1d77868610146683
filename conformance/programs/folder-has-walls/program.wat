(module
  (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 128) "../../secret")
  ;; Opens the file whose name lies at 128 in the folder, and shows the error number.
  (func $open (param $len i32) (param $oflags i32) (param $rights i64) (result i32)
    (call $path_open (i32.const 3) (i32.const 0) (i32.const 128) (local.get $len) (local.get $oflags)
      (local.get $rights) (local.get $rights) (i32.const 0) (i32.const 96)))
  (func (export "_start")
    (if (i32.eqz (call $open (i32.const 11) (i32.const 0) (i64.const 2))) (then (unreachable)))))
