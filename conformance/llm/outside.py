"""Makes a case of a published model: what numpy and llama.cpp say after some prompts whose ends are plain.

Run with the packages `gguf` 0.19, `numpy` and `xllamacpp`: `python outside.py MODEL.gguf CASE.json`.
"""

import json
import pathlib
import sys

import xllamacpp

from reference import Model

PROMPTS = {
    "gpt2": [
        "The capital of France is",
        "Monday, Tuesday, Wednesday, Thursday, Friday,",
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,",
        "a b c d e f g h i j k l m n o",
        "The cat sat on the mat. The cat sat on the mat. The cat sat on the mat. The cat",
    ],
    "llama": [
        "Once upon a time, there was a little girl named",
        "Tom and Tim were friends. Tom and Tim liked to play. Tom and Tim",
        "The cat sat on the mat. The cat sat on the mat. The cat sat on the mat. The cat",
    ],
}
# Every so many of numpy's logits are kept.
STEP = 97
GREEDY = 12


def cut(text, tokens, space):
    """The longest pieces first: not what a tokenizer would do, but pieces of the text all the same."""
    known, out, at = {piece: i for i, piece in enumerate(tokens)}, [], 0
    text = text.replace(" ", space)
    while at < len(text):
        end = next(end for end in range(len(text), at, -1) if text[at:end] in known)
        out.append(known[text[at:end]])
        at = end
    return out


def main(path, case):
    model = Model(path)
    kind = model.keys["tokenizer.ggml.model"]
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx = path, 256
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    prompts = []
    for text in PROMPTS[kind]:
        tokens = cut(text, model.keys["tokenizer.ggml.tokens"], "Ġ" if kind == "gpt2" else "▁")
        if kind == "llama":
            tokens = [1] + tokens
        ask = {"prompt": tokens, "n_predict": GREEDY, "temperature": 0, "n_probs": 8, "cache_prompt": False}
        said = server.handle_completions(ask)["choices"][0]["logprobs"]["content"]
        logits = model.logits(tokens)[-1]
        prompts.append({
            "text": text,
            "tokens": tokens,
            "logits": [round(float(n), 3) for n in logits[::STEP]],
            "top": [top["id"] for top in said[0]["top_logprobs"]],
            "logprobs": [round(top["logprob"], 4) for top in said[0]["top_logprobs"]],
            "greedy": [one["id"] for one in said],
            "margin": [round(one["top_logprobs"][0]["logprob"] - one["top_logprobs"][1]["logprob"], 2) for one in said],
        })
    pathlib.Path(case).write_text(json.dumps({"step": STEP, "prompts": prompts}) + "\n")


main(*sys.argv[1:])
