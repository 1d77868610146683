(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    ;; 8 is `bad file descriptor`.
    (if (i32.ne (call $fd_write (i32.const 9) (i32.const 64) (i32.const 1) (i32.const 8)) (i32.const 8)) (then (unreachable)))))
