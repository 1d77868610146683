(module
  (memory (export "memory") 1)
  (func (export "_start")
    (v128.store (i32.const 0)
      (f32x4.relaxed_madd (v128.load (i32.const 0)) (v128.load (i32.const 16)) (v128.load (i32.const 32))))))
