"""Makes a model with 8-bit numbers, by onnxruntime's own quantiser, and compares the two. Called by `shoal model quantize`.

The only argument is JSON: the model, where the new one goes, the arrays (name, file, whether the model has an axis for
items), how many items to calibrate with and to compare. The last line printed is JSON too.
"""
import json
import logging
import sys
import time

import numpy
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

# Per-channel scales came with this version of ONNX's operators.
PER_CHANNEL_SINCE = 13
# Convolutions with integers are padded wrongly by Shoal's engine, and slow in others: static quantisation is for them.
DYNAMIC = ["MatMul", "Gemm", "Gather", "LSTM", "EmbedLayerNormalization", "Attention"]


def main():
    logging.disable(logging.WARNING)
    asked = json.loads(sys.argv[1])
    arrays = {one["name"]: (numpy.load(one["file"], mmap_mode="r"), one["leads"]) for one in asked["inputs"]}

    def item(at):
        return {name: numpy.ascontiguousarray(a[at : at + 1] if leads else a[at]) for name, (a, leads) in arrays.items()}

    model, out = asked["model"], asked["out"]
    if asked["dynamic"]:
        quantize_dynamic(model, out, weight_type=QuantType.QInt8, op_types_to_quantize=DYNAMIC)
    else:
        quantize_static(
            model,
            out,
            Items(item, asked["calibrate"]),
            quant_format=QuantFormat.QDQ,
            per_channel=opset(model) >= PER_CHANNEL_SINCE,
            weight_type=QuantType.QInt8,
            activation_type=QuantType.QUInt8,
        )
    told = {"version": onnxruntime.__version__}
    if asked["compare"] > 0:
        told.update(compare(model, out, [item(at) for at in range(asked["compare"])]))
    print(json.dumps(told))


class Items(CalibrationDataReader):
    def __init__(self, item, count):
        self.items = (item(at) for at in range(count))

    def get_next(self):
        return next(self.items, None)


def opset(path):
    model = onnx.load(path, load_external_data=False)
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def compare(before, after, items):
    sessions = [session(path) for path in (before, after)]
    seconds, outputs = [0.0, 0.0], [[], []]
    # In turn, so that a busy moment of the machine is not one model's alone.
    for item in items:
        for at, one in enumerate(sessions):
            began = time.perf_counter()
            answer = one.run(None, item)
            seconds[at] += time.perf_counter() - began
            outputs[at].append(answer)
    floats = [(a, b) for one, other in zip(*outputs) for a, b in zip(one, other) if a.dtype == numpy.float32]
    apart = max((float(numpy.nanmax(numpy.abs(a - b))) for a, b in floats if a.size), default=0.0)
    first = [(one[0], other[0]) for one, other in zip(*outputs)]
    same = sum(int(numpy.argmax(a) == numpy.argmax(b)) for a, b in first if a.size)
    before_ms, after_ms = (1000 * one / len(items) for one in seconds)
    return {"beforeMs": before_ms, "afterMs": after_ms, "difference": apart, "agreement": same / len(items)}


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


main()
