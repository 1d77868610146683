"""Language models in plain numpy: what the engine is held against. Nothing is quantised on the way, nothing is fast."""

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize


class Model:
    def __init__(self, path):
        reader = GGUFReader(path)
        self.keys = {name: field.contents() for name, field in reader.fields.items()}
        self.tensors = {t.name: t for t in reader.tensors}
        self.arch = self.keys["general.architecture"]
        self.layers = self.key("block_count")
        self.width = self.key("embedding_length")
        self.heads = self.key("attention.head_count")
        self.kv = self.key("attention.head_count_kv", self.heads)
        self.head = self.key("attention.key_length", self.width // self.heads)
        self.eps = self.key("attention.layer_norm_rms_epsilon")
        self.kept = {}

    def key(self, name, default=None):
        return self.keys.get(f"{self.arch}.{name}", default)

    def weight(self, name):
        """As float32, rows first; None if the file has no such tensor."""
        if name not in self.kept and name in self.tensors:
            t = self.tensors[name]
            shape = [int(n) for n in reversed(t.shape)]
            self.kept[name] = dequantize(t.data, t.tensor_type).reshape(shape).astype(np.float32)
        return self.kept.get(name)

    def norm(self, x, weight):
        return x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + self.eps) * weight

    def rope(self, x, positions, is_global):
        """x: rows, heads, elements."""
        dims = self.key("rope.dimension_count", self.head)
        gemma = self.arch == "gemma3"
        base = self.key("rope.freq_base", 1e6 if gemma else 1e4) if is_global else 1e4
        scale = 1 / self.key("rope.scaling.factor", 1.0) if is_global else 1.0
        freq = base ** (-np.arange(0, dims, 2) / dims) * scale
        if (factors := self.weight("rope_freqs.weight")) is not None:
            freq = freq / factors
        angle = positions[:, None, None] * freq
        cos, sin = np.cos(angle), np.sin(angle)
        out = x.astype(np.float64).copy()
        if self.arch == "llama":
            a, b = x[..., 0:dims:2], x[..., 1:dims:2]
            out[..., 0:dims:2], out[..., 1:dims:2] = a * cos - b * sin, a * sin + b * cos
        else:
            a, b = x[..., : dims // 2], x[..., dims // 2 : dims]
            out[..., : dims // 2], out[..., dims // 2 : dims] = a * cos - b * sin, a * sin + b * cos
        return out

    def layer(self, at, x):
        rows = len(x)
        w = lambda name: self.weight(f"blk.{at}.{name}")
        linear = lambda x, name: x @ w(f"{name}.weight").T + (0 if w(f"{name}.bias") is None else w(f"{name}.bias"))
        pattern = self.key("attention.sliding_window_pattern", 6)
        is_global = self.arch != "gemma3" or at % pattern == pattern - 1
        h = self.norm(x, w("attn_norm.weight"))
        q = linear(h, "attn_q").reshape(rows, self.heads, self.head)
        k = linear(h, "attn_k").reshape(rows, self.kv, self.head)
        v = linear(h, "attn_v").reshape(rows, self.kv, self.head)
        if w("attn_q_norm.weight") is not None:
            q, k = self.norm(q, w("attn_q_norm.weight")), self.norm(k, w("attn_k_norm.weight"))
        positions = np.arange(rows)
        q, k = self.rope(q, positions, is_global), self.rope(k, positions, is_global)
        k, v = (np.repeat(t, self.heads // self.kv, axis=1) for t in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(self.head)
        if cap := self.key("attn_logit_softcapping"):
            scores = cap * np.tanh(scores / cap)
        behind = positions[:, None] - positions[None, :]
        seen = behind >= 0
        if not is_global:
            seen &= behind < self.key("attention.sliding_window")
        scores = np.where(seen, scores, -np.inf)
        share = np.exp(scores - scores.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        found = np.einsum("hij,jhd->ihd", share, v).reshape(rows, -1)
        added = linear(found, "attn_output")
        if w("post_attention_norm.weight") is not None:
            added = self.norm(added, w("post_attention_norm.weight"))
        x = x + added
        h = self.norm(x, w("ffn_norm.weight"))
        gate = linear(h, "ffn_gate")
        if self.arch == "gemma3":
            gate = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        else:
            gate = gate / (1 + np.exp(-gate))
        added = linear(gate * linear(h, "ffn_up"), "ffn_down")
        if w("post_ffw_norm.weight") is not None:
            added = self.norm(added, w("post_ffw_norm.weight"))
        return x + added

    def hidden(self, tokens):
        """Rows: what stands behind each token before words are chosen from it."""
        x = self.weight("token_embd.weight")[tokens].astype(np.float64)
        if self.arch == "gemma3":
            x = x * np.sqrt(self.width)
        for at in range(self.layers):
            x = self.layer(at, x)
        return self.norm(x, self.weight("output_norm.weight"))

    def logits(self, tokens):
        """Rows: for each token, what may follow it."""
        x = self.hidden(tokens)
        head = self.weight("output.weight")
        logits = x @ (self.weight("token_embd.weight") if head is None else head).T
        if cap := self.key("final_logit_softcapping"):
            logits = cap * np.tanh(logits / cap)
        return logits
