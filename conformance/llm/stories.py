"""Makes a GGUF file, Q8_0, of stories15M, which others published as one file of weights and tokenizer.

`python3 stories.py llama2.data OUT.gguf`, with nothing but what Python has.
"""

import array
import pathlib
import struct
import sys

F32, Q8_0 = 0, 8


def text(words):
    raw = words if isinstance(words, bytes) else words.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def quantised(numbers):
    """Blocks of 32 with a scale each."""
    out = bytearray()
    for at in range(0, len(numbers), 32):
        block = numbers[at : at + 32]
        most = max(max(block), -min(block))
        by = 127 / most if most else 0.0
        out += struct.pack("<e", most / 127)
        out += struct.pack("<32b", *[round(x * by) for x in block])
    return bytes(out)


def pieces(data, at, vocab):
    """The tokenizer: a score and a text for each piece; control pieces and bytes are not texts."""
    texts, scores, kinds = [], [], []
    for index in range(vocab):
        score, length = struct.unpack_from("<fi", data, at)
        piece = data[at + 8 : at + 8 + length].replace(b" ", "\u2581".encode())
        at += 8 + length
        if index < 3:
            piece = (b"<unk>", b"<s>", b"</s>")[index]
        elif index < 259:
            piece = b"<0x%02X>" % (index - 3)
        texts.append(text(piece))
        scores.append(score)
        kinds.append((2, 3, 3)[index] if index < 3 else 6 if index < 259 else 1)
    listed = lambda of, body: struct.pack("<IQ", of, vocab) + body
    return [
        key("tokenizer.ggml.model", 8, text("llama")),
        key("tokenizer.ggml.tokens", 9, listed(8, b"".join(texts))),
        key("tokenizer.ggml.scores", 9, listed(6, struct.pack(f"<{vocab}f", *scores))),
        key("tokenizer.ggml.token_type", 9, listed(5, struct.pack(f"<{vocab}i", *kinds))),
        key("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", 1)),
        key("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 2)),
    ]


def main(source, target):
    data = pathlib.Path(source).read_bytes()
    width, ff, layers, heads, kv, vocab, context = struct.unpack("<7i", data[:28])
    head, at = width // heads, 28
    tensors = []

    def take(name, *dims):
        nonlocal at
        count = dims[0] * (dims[1] if len(dims) > 1 else 1)
        numbers = array.array("f", data[at : at + count * 4])
        at += count * 4
        is_matrix = len(dims) > 1
        body = quantised(numbers) if is_matrix else numbers.tobytes()
        tensors.append((name, dims, Q8_0 if is_matrix else F32, body))

    take("token_embd.weight", width, vocab)
    parts = [
        ("attn_norm", (width,)), ("attn_q", (width, width)), ("attn_k", (width, kv * head)),
        ("attn_v", (width, kv * head)), ("attn_output", (width, width)), ("ffn_norm", (width,)),
        ("ffn_gate", (width, ff)), ("ffn_down", (ff, width)), ("ffn_up", (width, ff)),
    ]
    for name, dims in parts:
        for layer in range(layers):
            take(f"blk.{layer}.{name}.weight", *dims)
    take("output_norm.weight", width)
    # Two tables of angles, which nobody needs, then the longest piece's length.
    at += context * head * 4 + 4
    count = lambda name, value: key(f"llama.{name}", 4, struct.pack("<I", value))
    real = lambda name, value: key(f"llama.{name}", 6, struct.pack("<f", value))
    keys = [
        key("general.architecture", 8, text("llama")), key("general.name", 8, text("stories15M")),
        count("block_count", layers), count("context_length", context), count("embedding_length", width),
        count("feed_forward_length", ff), count("attention.head_count", heads),
        count("attention.head_count_kv", kv), count("rope.dimension_count", head),
        real("attention.layer_norm_rms_epsilon", 1e-5), real("rope.freq_base", 10000.0),
    ] + pieces(data, at, vocab)
    out = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys))
    place = 0
    for name, dims, kind, body in tensors:
        out += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, place)
        place += -(-len(body) // 32) * 32
    for _, _, _, body in tensors:
        out += b"\0" * (-len(out) % 32) + body
    pathlib.Path(target).write_bytes(out)


main(*sys.argv[1:])
