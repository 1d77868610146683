(module
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (loop $for_ever
      (drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 0)))
      (br $for_ever))))
