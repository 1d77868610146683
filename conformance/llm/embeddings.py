"""Makes embeddings.json: texts as numbers, by the mean of all tokens and by the last one, as numpy computes them.

Run with the packages `gguf` 0.19 and `numpy`: `python embeddings.py stories15M-q8_0.gguf`. The other models and all tokens
are those of the cases beside it.
"""

import json
import pathlib
import sys

import numpy as np

from reference import Model

HERE = pathlib.Path(__file__).parent


def case(name):
    return json.loads((HERE / f"{name}.json").read_text())


def unit(row):
    return [round(float(number), 6) for number in row / np.sqrt((row**2).sum())]


def texts(path, all_tokens):
    model = Model(path)
    rows = [(tokens, model.hidden(tokens)) for tokens in all_tokens]
    return [{"tokens": tokens, "mean": unit(row.mean(0)), "last": unit(row[-1])} for tokens, row in rows]


made = {name: texts(HERE / f"{name}.gguf", [case(name)["tokens"]]) for name in ("llama", "qwen2", "qwen3", "gemma3")}
made["stories15m"] = texts(sys.argv[1], [prompt["tokens"] for prompt in case("stories15m")["prompts"]])
(HERE / "embeddings.json").write_text(json.dumps(made) + "\n")
