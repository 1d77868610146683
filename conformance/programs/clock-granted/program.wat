(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
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
  (func (export "_start")
    ;; A subscription to the monotonic clock: 20 ms from now.
    (i64.store (i32.const 256) (i64.const 77))
    (i32.store (i32.const 272) (i32.const 1))
    (i64.store (i32.const 280) (i64.const 20000000))
    (drop (call $poll_oneoff (i32.const 256) (i32.const 512) (i32.const 1) (i32.const 640)))
    (call $hex (i64.load32_u (i32.const 640)))
    (call $hex (i64.load (i32.const 512)))
    (drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 64)))
    
    ;; At least 20 ms have passed, and it is later than 2020.
    (call $hex (i64.extend_i32_u (i64.ge_u (i64.load (i32.const 64)) (i64.const 20000000))))
    (drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 64)))
    (call $hex (i64.extend_i32_u (i64.gt_u (i64.load (i32.const 64)) (i64.const 1577836800000000000))))))
