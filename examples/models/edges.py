"""Makes edges.onnx: how strongly each pixel of a picture differs from its neighbours (the Sobel operator).

Run it with: pip install onnx && python3 edges.py
"""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

across = numpy.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], numpy.float32) / 4
grey = numpy.array([0.299, 0.587, 0.114], numpy.float32).reshape(3, 1, 1)
weights = numpy.stack([across * grey, across.T * grey])

graph = helper.make_graph(
    [
        helper.make_node("Conv", ["image", "weights"], ["slopes"], "slopes", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
        helper.make_node("ReduceL2", ["slopes"], ["edges"], "length", axes=[1], keepdims=1),
    ],
    "edges",
    [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "height", "width"])],
    [helper.make_tensor_value_info("edges", TensorProto.FLOAT, ["n", 1, "height", "width"])],
    [numpy_helper.from_array(weights, "weights")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, "edges.onnx")
