(module
  (memory (export "memory") 1)
  (func (export "_start")
    (loop $for_ever (br $for_ever))))
