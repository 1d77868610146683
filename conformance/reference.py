#!/usr/bin/env python3
"""Computes the `expected.bin` of the cases that have one, in plain Python: double precision, no GPU, none of Shoal's code.

    python3 conformance/reference.py [CASE...]

Cases of `outside/` are computed from what the kernels' own comments say they do.
"""
import json
import math
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent
MASK = (1 << 64) - 1


def split_mix(state):
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return state, z ^ (z >> 31)


def array(spec):
    """The numbers of an input, rounded to what its type holds."""
    if "values" in spec:
        numbers = spec["values"]
    elif "ramp" in spec:
        ramp = spec["ramp"]
        numbers = [ramp["start"] + i * ramp["step"] for i in range(ramp["count"])]
    else:
        random, numbers, state = spec["random"], [], spec["random"]["seed"]
        for _ in range(random["count"]):
            state, word = split_mix(state)
            number = random["low"] + (word >> 40) / (1 << 24) * (random["high"] - random["low"])
            numbers.append(number if spec["type"] == "f32" else math.floor(number))
    if spec["type"] == "f32":
        return [f32(number) for number in numbers]
    return [int(number) for number in numbers]


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def i32(number):
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def u32(number):
    return number % (1 << 32)


def chunks(numbers, size):
    return [numbers[at:at + size] for at in range(0, len(numbers), size)]


def bits(x):
    reverse = int(f"{x:032b}"[::-1], 2)
    value = x.bit_count() + (reverse ^ u32(x << 3)) + ((x | 1).bit_length() - 1) * 1000 + (x >> 4 & 255)
    return u32(value)


def arithmetic(x):
    quotient = abs(x) // 7 * (1 if x >= 0 else -1)
    remainder = x - quotient * 7
    return i32(quotient * 1000 + remainder * 10 + max(-5, min(5, x)) + (x >> 2) - abs(x))


def mix(x):
    x ^= x >> 16
    x = u32(x * 0x7FEB352D)
    x ^= x >> 15
    x = u32(x * 0x846CA68B)
    return x ^ x >> 16


def collatz(n):
    count = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def normalize(vector):
    size = math.sqrt(sum(x * x for x in vector))
    return [x / size for x in vector]


def by_unit(case, numbers, size, function):
    """Applies a function to each workgroup of `size`; units start new workgroups."""
    result = []
    for unit in chunks(numbers, case.get("unit", len(numbers))):
        for group in chunks(unit, size):
            result += function(group)
    return result


def place(case):
    result = []
    for start in range(0, case["items"], case["unit"]):
        length = min(case["unit"], case["items"] - start)
        result += [x for i in range(length) for x in (start + i, start, length, case["items"])]
    return result


def matmul(case, a, b):
    inner, columns = case["params"]["inner"], case["params"]["columns"]
    return [sum(row[k] * b[k * columns + c] for k in range(inner))
            for row in chunks(a, inner) for c in range(columns)]


def transcendental(x):
    return math.exp(-x) + math.log2(x) * math.tanh(x) + x ** 1.5 + math.atan2(x, 2) + 1 / math.sqrt(x)


def picture(case, pixel):
    result = []
    for y in range(case["height"]):
        for x in range(case["width"]):
            value = pixel(x, y)
            result += value if isinstance(value, list) else [value]
    return result


def params_pixel(case):
    columns, rows = -(-case["width"] // case["tile"]), -(-case["height"] // case["tile"])

    def pixel(x, y):
        tile = y // case["tile"] * columns + x // case["tile"]
        parts = [case["samples"] / 255, tile / (columns * rows), case["params"]["tint"][2], 1]
        return sum(int(0.5 + 255 * part) << 8 * at for at, part in enumerate(parts))
    return pixel


def mandelbrot(x, y):
    c, z, n = complex(x / 16 - 2, y / 16 - 1), 0j, 0
    while n < 30 and z.real * z.real + z.imag * z.imag <= 4:
        z = complex(z.real * z.real - z.imag * z.imag, 2 * z.real * z.imag) + c
        n += 1
    return n


def rmsnorm(case, x, weight):
    size, eps = case["params"]["D"], case["params"]["eps"]
    rows = chunks(x, size)
    return [v * w / math.sqrt(sum(u * u for u in row) / size + eps)
            for row in rows for v, w in zip(row, weight)]


def softmax(case, x):
    result = []
    for row in chunks(x, case["params"]["D"]):
        powers = [math.exp(v - max(row)) for v in row]
        result += [power / sum(powers) for power in powers]
    return result


def rope(case, x):
    p = case["params"]
    result = []
    for at, head in enumerate(chunks(x, p["head_dim"])):
        position = at // p["num_heads"] + p["pos_offset"]
        for pair in range(p["head_dim"] // 2):
            angle = position * p["theta_base"] ** (-2 * pair / p["head_dim"])
            a, b = head[2 * pair], head[2 * pair + 1]
            result += [a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)]
    return result


def halves(words):
    """f16 pairs packed in u32, low half first."""
    return [h for word in words for h in struct.unpack("<ee", struct.pack("<I", word))]


def embedding(case, tokens, table):
    size, values = case["params"]["D"], halves(table)
    rows = case["params"]["V"]
    return [values[t * size + d] if t < rows else 0.0 for t in tokens for d in range(size)]


def logits(case, hidden, embed):
    size, rows = case["params"]["D"], case["params"]["V"]
    values = halves(embed)
    found = [sum(a * b for a, b in zip(row, values[v * size:(v + 1) * size]))
             for row in chunks(hidden, size) for v in range(rows)]
    return found + [0.0] * (case["items"] - len(found))


def round_half_even(x):
    return int(round(x))


def edge(rule, at, count):
    if rule == "wrap":
        return at % count
    if rule == "mirror":
        at %= 2 * count
        return min(at, 2 * count - 1 - at)
    return max(0, min(at, count - 1))


def stencil(case, x):
    look = lambda at: x[edge(case.get("edge", "clamp"), at, len(x))]
    return [sum(look(i + k - 2) * (k + 1) for k in range(5)) for i in range(len(x))]


def near(x, at):
    return x[edge("clamp", at, len(x))]


EXPECTED = {
    "kernels/next-element": lambda c, x: [v + near(x, i + 1) for i, v in enumerate(x)],
    "kernels/element-before": lambda c, x: [v - (x[i - 1] if i else 0.0) for i, v in enumerate(x)],
    "kernels/stencil": stencil,
    "kernels/stencil-wrap": stencil,
    "kernels/stencil-mirror": stencil,
    "kernels/overlap-said": lambda c, x: [near(x, i + round_half_even(v) * 3) for i, v in enumerate(x)],
    "kernels/permutation": lambda c, x: [x[v % len(x)] for v in x],
    "kernels/workgroup-number": lambda c: [i // 32 * 100 + -(-c["items"] // 32) for i in range(c["items"])],
    "kernels/neighbour-sum": lambda c, x: [near(x, i - 1) + v + near(x, i + 1) for i, v in enumerate(x)],
    "kernels/wave-units": lambda c, x: [math.sin(v) * 0.5 + 0.5 for v in x],
    "kernels/saxpy": lambda c, x, y: [c["params"]["a"] * a + b for a, b in zip(x, y)],
    "kernels/place": place,
    "kernels/bits-u32": lambda c, x: [bits(v) for v in x],
    "kernels/arithmetic-i32": lambda c, x: [arithmetic(v) for v in x],
    "kernels/wrapping-u32": lambda c, x: [u32(v * 2654435761 + 12345) for v in x],
    "kernels/complex-vec2": lambda c, x: [p for a, b in chunks(x, 2) for p in (a * a - b * b, 2 * a * b)],
    "kernels/normalize-vec4": lambda c, x: [p for v in chunks(x, 4) for p in normalize(v)],
    "kernels/struct-elements": lambda c, x: [
        p for a, b, m, s in chunks(x, 4) for p in (0.5 * m * s * s, math.hypot(a, b))],
    "kernels/several-out": lambda c, x: [v ** power for v in x for power in range(4)],
    "kernels/several-in": lambda c, x: [sum(v) for v in chunks(x, 8)],
    "kernels/lookup": lambda c, i, t: [t[v % len(t)] for v in i],
    "kernels/matmul": matmul,
    "kernels/hash": lambda c: [mix(i) for i in range(c["items"])],
    "kernels/workgroup-sum": lambda c, x: by_unit(c, x, 64, lambda g: [sum(g)] * len(g)),
    "kernels/workgroup-histogram": lambda c, x: by_unit(
        c, x, 64, lambda g: [sum(v % 8 == i % 8 for v in g) for i in range(len(g))]),
    "kernels/unwritten-is-zero": lambda c, x: [v if i % 2 == 0 else 0 for i, v in enumerate(x)],
    "kernels/collatz": lambda c, x: [collatz(v) for v in x],
    "kernels/transcendental": lambda c, x: [transcendental(v) for v in x],
    "kernels/builtins-in-struct": lambda c: [i // 32 * 100 + 3 for i in range(c["items"])],
    "kernels/render-gradient": lambda c: picture(c, lambda x, y: x | y << 8 | 0x80 << 16 | 0xFF << 24),
    "kernels/render-odd-tile": lambda c: picture(c, lambda x, y: x * 1000 + y),
    "kernels/render-float": lambda c: picture(
        c, lambda x, y: [x / c["width"], y / c["height"], x / c["width"] * y / c["height"], 1.0]),
    "kernels/render-params": lambda c: picture(c, params_pixel(c)),
    "kernels/render-mandelbrot": lambda c: picture(c, mandelbrot),
    "outside/oxbitnet-activation-relu2": lambda c, x: [max(0.0, v) ** 2 for v in x],
    "outside/oxbitnet-activation-silu": lambda c, x: [v / (1 + math.exp(-v)) for v in x],
    "outside/oxbitnet-elementwise": lambda c, a, b: [x * y for x, y in zip(a, b)],
    "outside/oxbitnet-rmsnorm": rmsnorm,
    "outside/oxbitnet-softmax": softmax,
    "outside/oxbitnet-rope": rope,
    "outside/oxbitnet-embedding": embedding,
    "outside/oxbitnet-logits": logits,
}
CODES = {"f32": "f", "u32": "I", "i32": "i"}


def main():
    for name in sys.argv[1:] or EXPECTED:
        folder = ROOT / name
        case = json.loads((folder / "case.json").read_text())
        numbers = EXPECTED[name](case, *map(array, case.get("inputs", [])))
        code = CODES[case["expect"]["type"]]
        (folder / case["expect"]["file"]).write_bytes(struct.pack(f"<{len(numbers)}{code}", *numbers))
        print(f"{name}: {len(numbers)} values")


if __name__ == "__main__":
    main()
