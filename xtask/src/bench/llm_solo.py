"""llama.cpp at the same work: `llm_solo.py MODEL.gguf THREADS PROMPT FOLLOW VOCAB`. Prints one JSON object."""

import json
import sys

import xllamacpp

path, threads, prompt, follow, vocab = sys.argv[1], *map(int, sys.argv[2:])
params = xllamacpp.CommonParams()
params.model.path = path
params.n_ctx, params.n_batch, params.n_ubatch, params.n_parallel = prompt + follow + 64, 512, 512, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(params)
ask = {
    "prompt": [(at * 7919 + 13) % vocab for at in range(prompt)],
    "n_predict": follow,
    "temperature": 0,
    "cache_prompt": False,
    "ignore_eos": True,
}
timings = server.handle_completions(ask)["timings"]
print(json.dumps({"prefill": timings["prompt_per_second"], "decode": timings["predicted_per_second"]}))
