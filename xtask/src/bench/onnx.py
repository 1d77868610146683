"""Asks a model through Shoal and directly, in turn.

    onnx.py FILE NAME SIDE RUNS THREADS URL KEY

SIDE is the pictures' height and width where the model leaves them open. Prints the median milliseconds of each as one
JSON object, and the largest difference of the answers.
"""

import http.client
import json
import statistics
import sys
import time
from urllib.parse import urlparse

import numpy
import onnxruntime


def main():
    file, name, side, runs, threads, url, key = sys.argv[1:]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    # One picture, as large as it is said.
    opened = [1] + [int(side)] * (len(given.shape) - 1)
    shape = [known if isinstance(known, int) else side for known, side in zip(given.shape, opened)]
    image = numpy.random.default_rng(7).random(shape, dtype=numpy.float32)
    # The client adds no copies of its own: the tensor is sent from where it lies, and the answer read to where it stays.
    answers = bytearray(1 << 24)
    connection = http.client.HTTPConnection(urlparse(url).netloc)

    def direct():
        return session.run(None, {given.name: image})[0]

    def through():
        tensor = {"name": given.name, "shape": shape, "datatype": "FP32"}
        tensor["parameters"] = {"binary_data_size": image.nbytes}
        asked = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
        head = json.dumps(asked).encode()
        connection.putrequest("POST", f"/v2/models/{name}/infer")
        connection.putheader("Authorization", "Bearer " + key)
        connection.putheader("Inference-Header-Content-Length", str(len(head)))
        connection.putheader("Content-Length", str(len(head) + image.nbytes))
        connection.endheaders(head)
        connection.send(memoryview(image).cast("B"))
        answer = connection.getresponse()
        body, size = memoryview(answers), 0
        while read := answer.readinto(body[size:]):
            size += read
        if answer.status != 200:
            raise SystemExit(f"{answer.status}: {bytes(body[:size])[:500]!r}")
        length = int(answer.headers["Inference-Header-Content-Length"])
        output = json.loads(bytes(body[:length]))["outputs"][0]
        return numpy.frombuffer(body[length:size], numpy.float32).reshape(output["shape"])

    def timed(run):
        began = time.perf_counter()
        answer = run()
        return (time.perf_counter() - began) * 1e3, answer

    times = {"direct": [], "through": []}
    difference = 0.0
    for run in range(int(runs) + 2):
        (a, right), (b, found) = timed(direct), timed(through)
        difference = max(difference, float(numpy.abs(right - found).max()))
        # Both are warm from the third on.
        if run > 1:
            times["direct"].append(a)
            times["through"].append(b)
    medians = {what: statistics.median(all) for what, all in times.items()}
    print(json.dumps({**medians, "difference": difference}))


main()
