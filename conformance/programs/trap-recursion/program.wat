(module
  (memory (export "memory") 1)
  (func $deep (param i32) (result i32)
    (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
  (func (export "_start")
    (drop (call $deep (i32.const 0)))))
