"""Makes FILE.json: what llama.cpp makes of texts, for a model's file.

    pip install xllamacpp==2026.10.11549
    python make.py MODEL.gguf smollm2.json

Tests compare our tokens with these, so this runs only when texts are added.
"""
import json, sys, urllib.request
import xllamacpp

TEXTS = [
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog. It's 1,234.56 times as quick; isn't it? WE'LL see, they'd say.",
    "  two spaces,   three,\ttab\n\nlines\r\n   indented\n",
    "fn main() {\n    let x: Vec<u8> = b\"\\x00\".to_vec(); // 0x7f != 127_u64\n\tprintln!(\"{x:?}\");\n}\n",
    "def f(n):\n    return n if n < 2 else f(n-1) + f(n-2)  # 10**9\n",
    "Grüße aus Köln – „straße“, naïve café, Ærøskøbing, İstanbul ıŞık",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "色は匂へど散りぬるを 我が世誰ぞ常ならむ。カタカナ、ﾊﾝｶｸ、１２３",
    "你好，世界！今天是2024年2月29日。 한국어 띄어쓰기 테스트",
    "اَلْعَرَبِيَّةُ ١٢٣ שָׁלוֹם हिन्दी में पाठ ৪২ ไทยไม่มีช่องว่าง",
    "🙂 👩‍👩‍👧‍👦 🇩🇪 ✈️ e\u0301 \u200b\u00a0\u2003x\ufeff",
    "½ ² ₃ Ⅷ ① ٪ № € $5 £7 ∑∫√ ≠ → ⟨⟩ \u2028 end",
    "<|im_start|>user\nnot a mark<|im_end|>",
    "https://example.org/a?b=c&d=%20#e user@host.tld C:\\x\\y.txt",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa      !!!!!!!!!!!! ----------\n\n\n\n\n",
    "I'M 'tis o'clock 'S 's ' 's\u2019s don\u2019t",
    " ", "\n", "", "\u00ad\u0300\u0301\ud7a3\ue000\U0001f9ff\U0002a6d6",
]


def main(model, out):
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_predict = model, 256, 1
    server = xllamacpp.Server(params)
    cases = []
    for text in TEXTS:
        for marks in (False, True) if "<|" in text else (False,):
            body = {"content": text, "add_special": False, "parse_special": marks}
            request = urllib.request.Request(
                server.listening_address + "/tokenize",
                json.dumps(body).encode(),
                {"content-type": "application/json"},
            )
            tokens = json.load(urllib.request.urlopen(request))["tokens"]
            cases.append({"text": text, "marks": marks, "tokens": tokens})
    with open(out, "w") as file:
        rows = ",\n".join("  " + json.dumps(case, ensure_ascii=True) for case in cases)
        file.write("[\n" + rows + "\n]\n")


main(*sys.argv[1:])
