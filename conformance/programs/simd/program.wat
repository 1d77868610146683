(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  ;; Four vectors, one after the other, at 64.
  (func (export "_start")
    ;; Products of 16 bits, added in pairs.
    (v128.store (i32.const 64)
      (i32x4.dot_i16x8_s
        (v128.const i16x8 256 256 1 2 4 2 -1 0)
        (v128.const i16x8 256 256 2 2 3 4 1 9)))
    ;; 16 bits narrowed to 8, as far as they go.
    (v128.store (i32.const 80)
      (i8x16.narrow_i16x8_s
        (v128.const i16x8 300 -300 -1 0 0 0 0 0)
        (v128.const i16x8 0 0 0 0 0 0 0 0)))
    ;; Bytes of each word turned round.
    (v128.store (i32.const 96)
      (i8x16.shuffle 3 2 1 0 7 6 5 4 11 10 9 8 15 14 13 12
        (v128.const i8x16 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
        (v128.const i64x2 0 0)))
    (v128.store (i32.const 112)
      (f32x4.div
        (v128.const f32x4 1 1 3 1)
        (v128.const f32x4 4 2 2 3)))
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const 64))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
