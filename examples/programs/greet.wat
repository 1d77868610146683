;; A WASI program without a compiler: writes "hello\n" to stdout. `cargo xtask programs` assembles it.
;;
;;   shoal exec examples/programs/target/greet.wasm < /dev/null
(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "hello\n")
  (func (export "_start")
    ;; One piece: six bytes at 16. The count written goes to 8.
    (i32.store (i32.const 0) (i32.const 16))
    (i32.store (i32.const 4) (i32.const 6))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
