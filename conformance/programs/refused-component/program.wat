(component
  (import "wasi:cli/environment@0.2.0" (instance))
  (import "wasi:sockets/tcp@0.2.0" (instance))
  (import "wasi:http/outgoing-handler@0.2.0" (instance))
  (core module $m (func (export "run") (result i32) i32.const 0))
  (core instance $i (instantiate $m))
  (func $run (result (result)) (canon lift (core func $i "run")))
  (instance (export "wasi:cli/run@0.2.0") (export "run" (func $run))))
