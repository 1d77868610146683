"""A MobileNetV2 for pictures of 32 x 32 pixels.

The pixels go in as 0..1 with no mean taken off: the first BatchNorm does that just as well, and only a scale can be folded
into a convolution that pads with zeros.
"""
import torch
from torch import nn

FIRST = 24
LAST = 256
CLASSES = 10
# Expansion, channels out, blocks, stride of the first block. Only the first layer works at 32 x 32: that many pixels take
# most of the time in training and add little to the accuracy.
STAGES = [
    (1, 24, 1, 2),
    (3, 24, 2, 1),
    (4, 48, 3, 2),
    (4, 80, 3, 2),
]


class Layer(nn.Sequential):
    """Convolution, BatchNorm and, unless it is the narrow end of a block, ReLU6."""

    def __init__(self, inputs, outputs, size=1, stride=1, groups=1, relu=True):
        convolution = nn.Conv2d(
            inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False
        )
        nn.init.kaiming_normal_(convolution.weight, mode="fan_out")
        rest = [nn.ReLU6(inplace=True)] if relu else []
        super().__init__(convolution, nn.BatchNorm2d(outputs), *rest)
        self.relu = relu

    def folded(self):
        """Weight and bias of one convolution that does what convolution and BatchNorm do once trained."""
        convolution, norm = self[0], self[1]
        scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
        weight = convolution.weight.double() * scale.view(-1, 1, 1, 1)
        bias = norm.bias.double() - norm.running_mean.double() * scale
        return weight.float().detach().contiguous(), bias.float().detach()


class Block(nn.Module):
    """An inverted residual: widen, look at the neighbours channel by channel, narrow again."""

    def __init__(self, inputs, outputs, expansion, stride):
        super().__init__()
        wide = inputs * expansion
        layers = [Layer(inputs, wide)] if expansion > 1 else []
        layers.append(Layer(wide, wide, size=3, stride=stride, groups=wide))
        layers.append(Layer(wide, outputs, relu=False))
        self.layers = nn.Sequential(*layers)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.layers(x)
        return x + y if self.shortcut else y


class Network(nn.Module):
    """Pictures [n, 3, 32, 32] in 0..1 to one number per class [n, 10]."""

    def __init__(self):
        super().__init__()
        self.first = Layer(3, FIRST, size=3)
        blocks, width = [], FIRST
        for expansion, outputs, count, stride in STAGES:
            for index in range(count):
                blocks.append(Block(width, outputs, expansion, stride if index == 0 else 1))
                width = outputs
        self.blocks = nn.Sequential(*blocks)
        self.last = Layer(width, LAST)
        self.classes = nn.Linear(LAST, CLASSES)

    def forward(self, x):
        x = self.last(self.blocks(self.first(x)))
        return self.classes(x.mean(dim=(2, 3)))


def multiply_adds(network, side=32):
    """Multiplications with additions for one picture."""
    total = 0

    def count(layer, inputs, output):
        nonlocal total
        if isinstance(layer, nn.Conv2d):
            total += layer.weight.numel() * output.shape[2] * output.shape[3]
        else:
            total += layer.weight.numel()

    kinds = (nn.Conv2d, nn.Linear)
    hooks = [m.register_forward_hook(count) for m in network.modules() if isinstance(m, kinds)]
    training = network.training
    with torch.no_grad():
        network.eval()(torch.zeros(1, 3, side, side))
    network.train(training)
    for hook in hooks:
        hook.remove()
    return total
