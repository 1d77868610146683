#!/usr/bin/env python3
"""Trains the CIFAR-10 classifier and writes it as `cifar10.onnx` and `cifar10-uint8.onnx`.

    python3 train.py
    python3 train.py --resume          # go on after an interruption
    python3 train.py --epochs 0        # only write the models of the last checkpoint

A checkpoint is written after each epoch, into the cache folder. The models are those of the last epoch, whatever the
accuracies printed on the way: nothing is chosen by looking at the test pictures.
"""
import argparse
import json
import pathlib
import sys
import time

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import data
import export
from network import Network, multiply_adds

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 128
# The learning rate rises in the first epoch, stays, and falls to zero in the last seven tenths. Until the fall begins the
# run does not depend on how many epochs there will be, so it can be resumed with fewer or more.
RATE = 0.15
WARM = 1
FALL = 0.7
MOMENTUM = 0.9
WEIGHT_DECAY = 3e-4
SMOOTHING = 0.1
# The weights that are tested and written are a mean over about the last 500 steps.
AVERAGE = 0.998
# Pictures are moved by up to this many pixels, mirrored at the edge.
MOVE = 4


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    run = Run(args)
    if args.resume or args.epochs == 0:
        run.restore()
    train, test = data.load(args.cache)
    pictures = padded(torch.from_numpy(train[0]))
    labels = torch.from_numpy(train[1]).long()
    while run.epoch < min(args.epochs, args.stop):
        run.one_epoch(pictures, labels)
        run.report(*test)
        run.save()
    network = run.average.module.eval().to(memory_format=torch.contiguous_format)
    export.write(network, data.NAMES, args.out)
    print(json.dumps({
        "parameters": sum(p.numel() for p in network.parameters()),
        "multiply_adds": multiply_adds(network),
        "epochs": run.epoch,
        "minutes": round(run.seconds / 60, 1),
        "cpu_minutes": round(run.cpu / 60, 1),
        "correct": correct(network, *test),
        "of": len(test[1]),
    }))


def arguments():
    parser = argparse.ArgumentParser(description="Trains the CIFAR-10 classifier.")
    parser.add_argument("--cache", type=pathlib.Path, default=data.CACHE,
                        help="folder for the pictures and the checkpoint")
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="folder for the models")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--stop", type=int, default=sys.maxsize,
                        help="stop after this many epochs, without planning for fewer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    return parser.parse_args()


class Run:
    """One training: the network, the mean of its weights, and how far it is."""

    def __init__(self, args):
        self.checkpoint = args.cache / "checkpoint.pt"
        self.epochs = args.epochs
        self.epoch = 0
        self.seconds = 0.0
        self.cpu = 0.0
        self.network = Network().to(memory_format=torch.channels_last)
        self.average = AveragedModel(
            self.network, multi_avg_fn=get_ema_multi_avg_fn(AVERAGE), use_buffers=True
        )
        self.optimizer = optimizer(self.network)
        self.loss = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)

    def one_epoch(self, pictures, labels):
        started, cpu = time.monotonic(), time.process_time()
        self.network.train()
        order = torch.randperm(len(labels)).split(BATCH)
        total = 0.0
        for step, chosen in enumerate(order):
            rate = RATE * share(self.epoch + step / len(order), self.epochs)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            loss = self.loss(self.network(varied(pictures, chosen)), labels[chosen])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.epoch < WARM:
                # The mean is only the latest as yet, so that nothing of the random beginning is in it.
                self.average.n_averaged.zero_()
            self.average.update_parameters(self.network)
            total += loss.item() * len(chosen)
        self.epoch += 1
        self.seconds += time.monotonic() - started
        self.cpu += time.process_time() - cpu
        self.mean_loss = total / len(labels)

    def report(self, images, labels):
        print(json.dumps({
            "epoch": self.epoch,
            "loss": round(self.mean_loss, 4),
            "correct": correct(self.average.module, images, labels),
            "seconds": round(self.seconds),
            "cpu_seconds": round(self.cpu),
        }), flush=True)

    def save(self):
        state = {
            "epoch": self.epoch,
            "seconds": self.seconds,
            "cpu": self.cpu,
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }
        # Written beside and renamed: an interruption leaves the checkpoint before.
        half = self.checkpoint.with_suffix(".half")
        torch.save(state, half)
        half.replace(self.checkpoint)

    def restore(self):
        state = torch.load(self.checkpoint, weights_only=True)
        self.epoch, self.seconds, self.cpu = state["epoch"], state["seconds"], state["cpu"]
        self.network.load_state_dict(state["network"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])


def optimizer(network):
    """Weights are pulled to zero; biases and the few numbers of each BatchNorm are not."""
    pulled = [p for p in network.parameters() if p.dim() > 1]
    free = [p for p in network.parameters() if p.dim() <= 1]
    groups = [{"params": pulled, "weight_decay": WEIGHT_DECAY}, {"params": free}]
    return torch.optim.SGD(groups, lr=RATE, momentum=MOMENTUM, nesterov=True)


def share(epoch, epochs):
    """Which share of the full learning rate is used, `epoch` epochs into the run."""
    rise = (epoch + 0.01) / WARM
    fall = (epochs - epoch) / (epochs * FALL)
    return min(rise, 1.0, fall)


def padded(images):
    """Pictures with `MOVE` mirrored pixels on every side, as uint8 [n, 40, 40, 3]."""
    channels = images.permute(0, 3, 1, 2)
    parts = [
        nn.functional.pad(part.float(), [MOVE] * 4, mode="reflect").byte()
        for part in channels.split(10_000)
    ]
    return torch.cat(parts).permute(0, 2, 3, 1).contiguous()


def varied(pictures, chosen):
    """The chosen pictures, each moved by some pixels and half of them mirrored, as floats in 0..1."""
    count, pixels = len(chosen), torch.arange(data.SIDE)
    rows = pixels + torch.randint(0, 2 * MOVE + 1, (count, 1))
    columns = pixels + torch.randint(0, 2 * MOVE + 1, (count, 1))
    mirrored = torch.rand(count, 1) < 0.5
    columns = torch.where(mirrored, columns.flip(1), columns)
    return floats(pictures[chosen[:, None, None], rows[:, :, None], columns[:, None, :]])


def floats(pictures):
    """uint8 [n, h, w, 3] as float32 [n, 3, h, w] in 0..1; the bytes keep their order (channels last)."""
    return pictures.permute(0, 3, 1, 2).float().div_(255)


def correct(network, images, labels):
    """How many of the pictures get their own label."""
    network.eval()
    images, labels = torch.from_numpy(images), torch.from_numpy(labels).long()
    with torch.no_grad():
        return sum(
            (network(floats(part)).argmax(1) == label).sum().item()
            for part, label in zip(images.split(500), labels.split(500))
        )


if __name__ == "__main__":
    main()
