"""Makes the tiny models: drawn weights, one of each architecture with all that is particular to it, and what numpy says.

Run with the packages `gguf` 0.19 and `numpy`: `python tiny.py`. Writes NAME.gguf and NAME.json beside itself.
"""

import json
import pathlib

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter

from reference import Model

HERE = pathlib.Path(__file__).parent
WIDTH, FF, HEADS, KV, VOCAB = 32, 48, 4, 2, 40
TOKENS = [3, 17, 39, 0, 22, 8, 8, 31, 5, 12, 27, 1, 36, 19, 4, 30, 11, 2, 25, 9]

MODELS = {
    "llama": dict(arch="llama", head=8, layers=2, factors=True, untied=True),
    "qwen2": dict(arch="qwen2", head=8, layers=2, bias=True),
    "qwen3": dict(arch="qwen3", head=20, layers=2, norms=True, linear=2.0),
    "gemma3": dict(arch="gemma3", head=16, layers=3, norms=True, post=True, caps=True),
}


def make(name, arch, head, layers, **has):
    random = np.random.default_rng(sum(map(ord, name)))
    writer = GGUFWriter(HERE / f"{name}.gguf", arch)
    writer.add_block_count(layers)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FF)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(500.0)
    if has.get("linear"):
        writer.add_rope_scaling_type(__import__("gguf").RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(has["linear"])
    if arch == "gemma3":
        writer.add_sliding_window(5)
        writer.add_uint32("gemma3.attention.sliding_window_pattern", 2)
    if has.get("caps"):
        writer.add_attn_logit_softcapping(3.0)
        writer.add_final_logit_softcapping(5.0)

    def matrix(name, columns, rows):
        numbers = random.normal(0, columns**-0.5, (rows, columns)).astype(np.float16)
        writer.add_tensor(name, numbers)

    def vector(name, length, around=1.0):
        writer.add_tensor(name, (around + random.normal(0, 0.2, length)).astype(np.float32))

    matrix("token_embd.weight", WIDTH, VOCAB)
    vector("output_norm.weight", WIDTH)
    if has.get("untied"):
        matrix("output.weight", WIDTH, VOCAB)
    if has.get("factors"):
        vector("rope_freqs.weight", head // 2, 2.0)
    for layer in range(layers):
        at = f"blk.{layer}."
        vector(at + "attn_norm.weight", WIDTH)
        matrix(at + "attn_q.weight", WIDTH, HEADS * head)
        matrix(at + "attn_k.weight", WIDTH, KV * head)
        matrix(at + "attn_v.weight", WIDTH, KV * head)
        matrix(at + "attn_output.weight", HEADS * head, WIDTH)
        vector(at + "ffn_norm.weight", WIDTH)
        matrix(at + "ffn_gate.weight", WIDTH, FF)
        matrix(at + "ffn_up.weight", WIDTH, FF)
        matrix(at + "ffn_down.weight", FF, WIDTH)
        if has.get("bias"):
            vector(at + "attn_q.bias", HEADS * head, 0.0)
            vector(at + "attn_k.bias", KV * head, 0.0)
            vector(at + "attn_v.bias", KV * head, 0.0)
        if has.get("norms"):
            vector(at + "attn_q_norm.weight", head)
            vector(at + "attn_k_norm.weight", head)
        if has.get("post"):
            vector(at + "post_attention_norm.weight", WIDTH)
            vector(at + "post_ffw_norm.weight", WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    logits = Model(HERE / f"{name}.gguf").logits(TOKENS)
    rows = [[round(float(n), 6) for n in row] for row in logits[[0, 7, len(TOKENS) - 1]]]
    case = {"tokens": TOKENS, "rows": [0, 7, len(TOKENS) - 1], "logits": rows, "tolerance": 2e-3}
    (HERE / f"{name}.json").write_text(json.dumps(case) + "\n")


for name, model in MODELS.items():
    make(name, **model)
