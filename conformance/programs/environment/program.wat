(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  ;; Writes bytes to a stream; the piece's address and length lie at 0, what was written at 8.
  (func $put (param $fd i32) (param $at i32) (param $len i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $len))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  ;; Writes each of the texts whose addresses lie at 1024, and a line end behind it.
  (func $list (param $count i32)
    (local $at i32) (local $text i32) (local $end i32)
    (block $done
      (loop $next
        (br_if $done (i32.eq (local.get $at) (local.get $count)))
        (local.set $text (i32.load (i32.add (i32.const 1024) (i32.mul (local.get $at) (i32.const 4)))))
        (local.set $end (local.get $text))
        (loop $seek
          (if (i32.load8_u (local.get $end))
            (then
              (local.set $end (i32.add (local.get $end) (i32.const 1)))
              (br $seek))))
        (i32.store8 (local.get $end) (i32.const 10))
        (call $put (i32.const 1) (local.get $text)
          (i32.add (i32.sub (local.get $end) (local.get $text)) (i32.const 1)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))))
  (func (export "_start")
    (drop (call $environ_sizes_get (i32.const 16) (i32.const 20)))
    (drop (call $environ_get (i32.const 1024) (i32.const 4096)))
    (call $list (i32.load (i32.const 16)))))
