"""Makes vectors.bin: blocks of every quantisation and what the reference implementation says they mean.

Run with the packages `gguf` 0.19 and `numpy`: `python vectors.py`. For each type twice: its number, the blocks of 256
elements, the 256 numbers as float32. First quantised numbers where the reference quantises, then bytes as drawn.
"""

import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize

NAMES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
# Where halves stand in a block: drawn bytes would make infinities of some.
HALVES = {
    "F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}


def drawn(name, random):
    block, size = GGML_QUANT_SIZES[Type[name]]
    blocks = random.integers(0, 256, (256 // block, size), dtype=np.uint8)
    for at in HALVES.get(name, []):
        halves = random.normal(0, 0.01, 256 // block).astype(np.float16)
        blocks[:, at : at + 2] = halves.view(np.uint8).reshape(-1, 2)
    if name == "F32":
        return random.normal(0, 1, 256).astype(np.float32).view(np.uint8).reshape(1, -1)
    if name == "BF16":
        blocks[:, 1] &= 0xBF
    return blocks.reshape(1, -1)


def main():
    random = np.random.default_rng(1)
    out = bytearray()
    for name in NAMES:
        numbers = random.normal(0, 1, (1, 256)).astype(np.float32)
        try:
            first = quantize(numbers, Type[name]).view(np.uint8).reshape(1, -1)
        except NotImplementedError:
            first = drawn(name, random)
        for blocks in (first, drawn(name, random)):
            out += np.uint32(Type[name]).tobytes()
            out += blocks.tobytes()
            out += dequantize(blocks, Type[name]).astype(np.float32).tobytes()
    pathlib.Path(__file__).with_name("vectors.bin").write_bytes(out)


main()
