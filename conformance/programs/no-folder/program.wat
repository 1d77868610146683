(module
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    ;; 8 is `bad file descriptor`.
    (if (i32.ne (call $fd_prestat_get (i32.const 3) (i32.const 64)) (i32.const 8)) (then (unreachable)))))
