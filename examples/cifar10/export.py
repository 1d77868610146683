"""Writes a trained network as ONNX, in two forms that give the same numbers.

`cifar10.onnx` takes `image` as float32 [n, 3, 32, 32] in 0..1. `cifar10-uint8.onnx` takes it as uint8 [n, 32, 32, 3], as
pictures lie in memory. Both give `logits` as float32 [n, 10]. Every BatchNorm is folded into the convolution before it.
"""
import json

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
# The oldest file format that may hold opset 17, so that old readers take it too.
IR_VERSION = 8


def write(network, names, folder):
    for file, from_bytes in [("cifar10.onnx", False), ("cifar10-uint8.onnx", True)]:
        model = Graph(network, from_bytes).model(names)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, folder / file)


class Graph:
    """Nodes and weights, written in the order in which the network computes."""

    def __init__(self, network, from_bytes):
        self.nodes, self.weights = [], []
        self.from_bytes = from_bytes
        self.constant("zero", numpy.float32(0))
        self.constant("six", numpy.float32(6))
        x = self.pixels() if from_bytes else "image"
        x = self.layer(x, "first", network.first)
        for index, block in enumerate(network.blocks):
            x = self.block(x, f"block{index}", block)
        x = self.layer(x, "last", network.last)
        x = self.node("GlobalAveragePool", [x], "pool")
        x = self.node("Flatten", [x], "flat", axis=1)
        self.constant("classes.weight", network.classes.weight)
        self.constant("classes.bias", network.classes.bias)
        self.node("Gemm", [x, "classes.weight", "classes.bias"], "logits", transB=1)

    def pixels(self):
        self.constant("scale", numpy.float32(1 / 255))
        x = self.node("Cast", ["image"], "numbers", to=TensorProto.FLOAT)
        x = self.node("Mul", [x, "scale"], "scaled")
        return self.node("Transpose", [x], "planes", perm=[0, 3, 1, 2])

    def layer(self, x, name, layer):
        weight, bias = layer.folded()
        self.constant(f"{name}.weight", weight)
        self.constant(f"{name}.bias", bias)
        convolution = layer[0]
        x = self.node(
            "Conv",
            [x, f"{name}.weight", f"{name}.bias"],
            f"{name}.conv",
            kernel_shape=list(convolution.kernel_size),
            strides=list(convolution.stride),
            pads=list(convolution.padding) * 2,
            group=convolution.groups,
        )
        return self.node("Clip", [x, "zero", "six"], f"{name}.relu6") if layer.relu else x

    def block(self, x, name, block):
        y = x
        for index, layer in enumerate(block.layers):
            y = self.layer(y, f"{name}.{index}", layer)
        return self.node("Add", [x, y], f"{name}.sum") if block.shortcut else y

    def node(self, operator, inputs, output, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def constant(self, name, value):
        array = value if isinstance(value, numpy.float32) else value.detach().numpy()
        self.weights.append(numpy_helper.from_array(numpy.asarray(array), name))

    def model(self, names):
        if self.from_bytes:
            image = helper.make_tensor_value_info("image", TensorProto.UINT8, ["n", 32, 32, 3])
        else:
            image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 32, 32])
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", len(names)])
        graph = helper.make_graph(self.nodes, "cifar10", [image], [logits], self.weights)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        helper.set_model_props(model, {"names": json.dumps(names)})
        return model
