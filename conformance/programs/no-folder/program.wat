(module
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_dir_name" (func $fd_prestat_dir_name (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (if (call $fd_prestat_get (i32.const 3) (i32.const 64)) (then (unreachable)))
    (if (i32.ne (i32.load (i32.const 68)) (i32.const 4)) (then (unreachable)))
    (if (call $fd_prestat_dir_name (i32.const 3) (i32.const 128) (i32.const 4)) (then (unreachable)))
    ;; `/tmp`
    (if (i32.ne (i32.load (i32.const 128)) (i32.const 0x706d742f)) (then (unreachable)))
    ;; Behind it and `.` there is nothing: 8 is `bad file descriptor`.
    (if (i32.ne (call $fd_prestat_get (i32.const 5) (i32.const 64)) (i32.const 8)) (then (unreachable)))))
