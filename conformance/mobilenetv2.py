"""Makes MobileNetV2 as ONNX from the weights that torchvision published, with nothing but Python itself.

    python3 mobilenetv2.py WEIGHTS.pth MODEL.onnx

The weights are read from PyTorch's old file format: a few pickles, then the numbers of each storage. The graph is torchvision's
mobilenet_v2: 17 inverted residuals, every BatchNorm as a node of its own. Input `image` is float32 [n, 3, height, width],
normalised as ImageNet's; output `logits` is float32 [n, 1000].
"""
import pickle
import struct
import sys
from collections import OrderedDict
from types import SimpleNamespace

OPSET = 17
IR_VERSION = 8
# Expansion, channels, blocks, stride of the first block.
STAGES = [
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
]
FLOAT, INT64 = 1, 7


# PyTorch's file.

class Reader(pickle.Unpickler):
    """Takes tensors apart and calls nothing else, whatever the file names."""

    KNOWN = {
        ("collections", "OrderedDict"): OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): lambda storage, at, dims, *rest: (storage, at, dims),
        ("torch", "FloatStorage"): "<f",
        ("torch", "LongStorage"): "<q",
    }

    def find_class(self, module, name):
        return self.KNOWN[(module, name)]

    def persistent_load(self, saved):
        _, kind, key, _, count, *_ = saved
        return SimpleNamespace(kind=kind, key=key, count=count)


def weights(path):
    """Name to (dimensions, little-endian bytes), of all that is float."""
    with open(path, "rb") as file:
        magic, _, _ = (pickle.load(file) for _ in range(3))
        if magic != 0x1950A86A20F9469CFC6C:
            raise SystemExit(f"{path} is no file of PyTorch's old format")
        named = Reader(file).load()
        storages = {}
        kinds = {storage.key: struct.calcsize(storage.kind) for storage, _, _ in named.values()}
        for key in pickle.load(file):
            (count,) = struct.unpack("<q", file.read(8))
            storages[key] = file.read(count * kinds[key])
    found = {}
    for name, (storage, at, dims) in named.items():
        if storage.kind == "<f":
            count = 1
            for dim in dims:
                count *= dim
            found[name] = (dims, storages[storage.key][at * 4:(at + count) * 4])
    return found


# Protobuf, as far as ONNX needs it.

def varint(number):
    number &= (1 << 64) - 1
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    return field(1, name) + b"".join(field(8, number) for number in value) + field(20, 7)


def tensor(name, kind, dims, raw):
    return b"".join(field(1, dim) for dim in dims) + field(2, kind) + field(8, name) + field(9, raw)


def value(name, dims):
    dims = [field(1, dim) if isinstance(dim, int) else field(2, dim) for dim in dims]
    shape = b"".join(field(1, dim) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, shape)))


class Graph:
    def __init__(self, held):
        self.held, self.nodes, self.weights = held, [], []
        self.constant("zero", FLOAT, [], struct.pack("<f", 0.0))
        self.constant("six", FLOAT, [], struct.pack("<f", 6.0))
        x = self.layer("image", "features.0", stride=2)
        at, channels = 1, 32
        for expansion, outputs, count, stride in STAGES:
            for index in range(count):
                x = self.block(x, f"features.{at}.conv", channels, outputs, expansion, stride if index == 0 else 1)
                at, channels = at + 1, outputs
        x = self.layer(x, f"features.{at}")
        x = self.node("GlobalAveragePool", [x], "pool")
        x = self.node("Flatten", [x], "flat", axis=1)
        self.node("Gemm", [x, *self.own("classifier.1", "weight", "bias")], "logits", transB=1)

    def block(self, x, name, inputs, outputs, expansion, stride):
        y, at, wide = x, 0, inputs * expansion
        if expansion > 1:
            y, at = self.layer(y, f"{name}.0"), 1
        y = self.layer(y, f"{name}.{at}", stride=stride, groups=wide)
        y = self.narrow(y, f"{name}.{at + 1}", f"{name}.{at + 2}")
        return self.node("Add", [x, y], f"{name}.sum") if stride == 1 and inputs == outputs else y

    def layer(self, x, name, stride=1, groups=1):
        x = self.narrow(x, f"{name}.0", f"{name}.1", stride, groups)
        return self.node("Clip", [x, "zero", "six"], f"{name}.relu6")

    def narrow(self, x, convolution, norm, stride=1, groups=1):
        (weight,) = self.own(convolution, "weight")
        size = self.held[weight][0][2]
        x = self.node(
            "Conv", [x, weight], f"{convolution}.conv",
            kernel_shape=[size, size], strides=[stride, stride], pads=[size // 2] * 4, group=groups,
        )
        numbers = self.own(norm, "weight", "bias", "running_mean", "running_var")
        return self.node("BatchNormalization", [x, *numbers], f"{norm}.norm", epsilon=1e-5)

    def own(self, name, *which):
        names = [f"{name}.{one}" for one in which]
        for name in names:
            self.constant(name, FLOAT, *self.held[name])
        return names

    def constant(self, name, kind, dims, raw):
        self.weights.append(tensor(name, kind, dims, raw))

    def node(self, op, inputs, output, **attributes):
        made = b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, output) + field(4, op)
        made += b"".join(field(5, attribute(*one)) for one in sorted(attributes.items()))
        self.nodes.append(made)
        return output

    def model(self):
        graph = b"".join(field(1, node) for node in self.nodes) + field(2, "mobilenetv2")
        graph += b"".join(field(5, weight) for weight in self.weights)
        graph += field(11, value("image", ["n", 3, "height", "width"])) + field(12, value("logits", ["n", 1000]))
        return field(1, IR_VERSION) + field(2, "shoal") + field(7, graph) + field(8, field(1, "") + field(2, OPSET))


if __name__ == "__main__":
    source, target = sys.argv[1:]
    made = Graph(weights(source)).model()
    with open(target, "wb") as file:
        file.write(made)
