#!/usr/bin/env python3
"""Runs an ONNX classifier over the 10,000 test pictures with onnxruntime and prints one JSON object.

    python3 evaluate.py cifar10.onnx
    python3 evaluate.py cifar10-uint8.onnx --save DIR
    python3 evaluate.py cifar10.onnx --logits logits.npy

`--save` writes the test pictures as arrays, so that others can be given the same ones: `test_images.npy` (uint8
[10000, 32, 32, 3]) and `test_labels.npy` (uint8 [10000]). `--logits` writes what the model says of each (float32
[10000, 10]). `--against` compares with such a file, or with a training checkpoint (`checkpoint.pt`, by PyTorch).
"""
import argparse
import json
import pathlib

import numpy
import onnxruntime

import data

BATCH = 500


def main():
    args = arguments()
    images, labels = data.load(args.cache)[1]
    if args.save:
        args.save.mkdir(parents=True, exist_ok=True)
        numpy.save(args.save / "test_images.npy", images)
        numpy.save(args.save / "test_labels.npy", labels)
    logits = run(args.model, images, args.threads)
    if args.logits:
        numpy.save(args.logits, logits)
    found = {"model": args.model.name, **score(logits, labels)}
    if args.against:
        other = by_pytorch if args.against.suffix == ".pt" else stored
        found["against"] = compare(logits, other(args.against, images), labels)
    print(json.dumps(found, indent=1))


def arguments():
    parser = argparse.ArgumentParser(description="Tests a CIFAR-10 classifier.")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--cache", type=pathlib.Path, default=data.CACHE,
                        help="folder for the pictures")
    parser.add_argument("--save", type=pathlib.Path, help="folder for the test pictures")
    parser.add_argument("--logits", type=pathlib.Path, help="file for what the model says")
    parser.add_argument("--against", type=pathlib.Path, help="logits.npy or checkpoint.pt")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def run(path, images, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    takes_bytes = session.get_inputs()[0].type == "tensor(uint8)"
    return numpy.concatenate([
        session.run(["logits"], {"image": part if takes_bytes else floats(part)})[0]
        for part in numpy.split(images, range(BATCH, len(images), BATCH))
    ])


def floats(images):
    """uint8 [n, h, w, 3] as float32 [n, 3, h, w] in 0..1."""
    return images.transpose(0, 3, 1, 2).astype(numpy.float32) / numpy.float32(255)


def score(logits, labels):
    right = logits.argmax(1) == labels
    return {
        "correct": int(right.sum()),
        "of": len(labels),
        "accuracy": round(float(right.mean()), 4),
        "by_class": {
            name: round(float(right[labels == index].mean()), 3)
            for index, name in enumerate(data.NAMES)
        },
    }


def compare(logits, other, labels):
    return {
        "correct": int((other.argmax(1) == labels).sum()),
        "other_class": int((other.argmax(1) != logits.argmax(1)).sum()),
        "largest_difference": float(numpy.abs(other - logits).max()),
        "largest_logit": float(numpy.abs(logits).max()),
    }


def stored(path, images):
    return numpy.load(path)


def by_pytorch(path, images):
    """The network as it was trained: BatchNorm not folded, averaged weights."""
    # Only here, so that testing a model does not need PyTorch.
    import torch

    from network import Network

    prefix = "module."
    state = torch.load(path, weights_only=True)["average"]
    network = Network().eval()
    network.load_state_dict(
        {name.removeprefix(prefix): v for name, v in state.items() if name.startswith(prefix)}
    )
    with torch.no_grad():
        return numpy.concatenate([
            network(torch.from_numpy(floats(part))).numpy()
            for part in numpy.split(images, range(BATCH, len(images), BATCH))
        ])


if __name__ == "__main__":
    main()
