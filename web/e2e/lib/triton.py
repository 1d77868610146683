"""What a program written for Triton does with one model. Prints what it got as JSON."""

import json
import sys

import numpy
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

address, key, name = sys.argv[1:]
client = triton.InferenceServerClient(address)


def headers():
    """New ones each time: the client adds its own to them."""
    return {"Authorization": "Bearer " + key}


def tensor(numbers, binary):
    numbers = numpy.array(numbers, numpy.float32)
    given = triton.InferInput("x", list(numbers.shape), "FP32")
    given.set_data_from_numpy(numbers, binary_data=binary)
    return given


def infer(numbers, send_binary, take_binary, **rest):
    outputs = [triton.InferRequestedOutput("y", binary_data=take_binary)]
    return client.infer(name, [tensor(numbers, send_binary)], outputs=outputs, headers=headers(), **rest)


def refusal(ask):
    try:
        ask()
    except InferenceServerException as error:
        return [error.status(), error.message()]
    return "not refused"


rows = [[1.0, -2.0, 0.5], [-3.0, 4.0, -0.25]]
forms = [(True, True), (True, False), (False, True), (False, False)]
answers = [infer(rows, *form).as_numpy("y").tolist() for form in forms]
alone = client.infer(name, [tensor(rows, True)], headers=headers()).as_numpy("y").tolist()
later = [client.async_infer(name, [tensor([[-i, 0, 0]], True)], headers=headers()) for i in range(20)]
large = numpy.full((200_000, 3), -1, numpy.float32)

print(json.dumps({
    "live": client.is_server_live(headers=headers()),
    "ready": client.is_server_ready(headers=headers()),
    "server": client.get_server_metadata(headers=headers()),
    "model": client.get_model_metadata(name, headers=headers()),
    "modelReady": client.is_model_ready(name, headers=headers()),
    "versionReady": client.is_model_ready(name, "1", headers=headers()),
    "answers": answers,
    "alone": alone,
    "version": infer(rows, True, True, model_version="1", request_id="7").get_response(),
    "together": [answer.get_result().as_numpy("y").tolist() for answer in later],
    "large": float(infer(large, True, True).as_numpy("y").sum()),
    "wrongShape": refusal(lambda: infer([[1.0, 2.0]], True, True)),
    "noModel": refusal(lambda: client.get_model_metadata("nobody", headers=headers())),
    "noVersion": refusal(lambda: infer(rows, True, True, model_version="9")),
    "compressed": refusal(lambda: infer(rows, True, True, request_compression_algorithm="gzip")),
    "noKey": refusal(lambda: client.infer(name, [tensor(rows, True)])),
}))
