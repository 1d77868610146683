(module
  (memory (export "memory") 2048)
  (func (export "_start")
    (nop)))
