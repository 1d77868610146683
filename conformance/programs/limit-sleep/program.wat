(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    ;; An hour on the monotonic clock.
    (i32.store (i32.const 272) (i32.const 1))
    (i64.store (i32.const 280) (i64.const 3600000000000))
    (drop (call $poll_oneoff (i32.const 256) (i32.const 512) (i32.const 1) (i32.const 640)))))
