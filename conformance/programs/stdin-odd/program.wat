(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    ;; No piece at all, and an empty one: nothing is read, which is no error.
    (i32.store (i32.const 1024) (call $fd_read (i32.const 0) (i32.const 4096) (i32.const 0) (i32.const 8)))
    (i32.store (i32.const 1028) (call $fd_read (i32.const 0) (i32.const 4096) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 1032) (i32.load (i32.const 8)))
    ;; More empty pieces than are looked at.
    (i32.store (i32.const 1036) (call $fd_read (i32.const 0) (i32.const 4096) (i32.const 2000) (i32.const 8)))
    ;; Pieces outside the memory, and a piece that reaches out of it.
    (i32.store (i32.const 1040) (call $fd_read (i32.const 0) (i32.const 65532) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 0) (i32.const 65000))
    (i32.store (i32.const 4) (i32.const 1000))
    (i32.store (i32.const 1044) (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    ;; All is still there.
    (i32.store (i32.const 0) (i32.const 1052))
    (i32.store (i32.const 4) (i32.const 4))
    (i32.store (i32.const 1048) (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 0) (i32.const 1024))
    (i32.store (i32.const 4) (i32.const 32))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
