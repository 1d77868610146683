(module
  (import "env" "gpu_draw" (func))
  (import "wasi_snapshot_preview1" "fd_paint" (func))
  (import "wasi_unstable" "fd_write" (func))
  (memory (export "memory") 1)
  (func (export "_start")))
