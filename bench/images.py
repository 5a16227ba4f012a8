"""Training steps of small image models beside PyTorch's, by one thread's processor time and by peak memory, with images in either memory format.

    python bench/images.py [--only ResNet] [--seconds 2]

A step is forward, backward and the optimiser's step, everything eager. ResNet-18, a small vision transformer and a U-Net are written here as their papers describe
them. Memory is counted as in memory.py.
"""
import argparse
import time

import memory
import torch

import strided


def resnet18(lib, classes=10):
    """He et al. 2015: a 7 × 7 stem and four stages of two basic blocks."""
    nn, F = lib.nn, lib.nn.functional

    class Basic(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
            self.short = None if stride == 1 and inputs == width else nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

        def forward(self, x):
            y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
            return F.relu(y + (x if self.short is None else self.short(x)))

    stages, inputs = [], 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        stages += [Basic(inputs, width, stride), Basic(width, width, 1)]
        inputs = width
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def vit(lib, size=64, patch=8, width=192, heads=3, layers=4, classes=10):
    """Dosovitskiy et al. 2020: patches as tokens, a class token, pre-norm encoder layers."""
    nn = lib.nn

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.token = nn.Parameter(lib.zeros(1, 1, width))
            self.places = nn.Parameter(lib.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
            self.layers = nn.Sequential(*(nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)  # [N, tokens, width]
            x = lib.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.head(self.norm(self.layers(x))[:, 0])

    return ViT()


def unet(lib, width=16, depth=3, classes=2):
    """Ronneberger et al. 2015, padded: two convolutions a level, down by maxima, up by transposed convolutions, joined across."""
    nn = lib.nn

    def level(inputs, outputs):
        pair = []
        for i in (inputs, outputs):
            pair += [nn.Conv2d(i, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        return nn.Sequential(*pair)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            sizes = [width << d for d in range(depth + 1)]
            self.down = nn.ModuleList([level(i, o) for i, o in zip([3, *sizes], sizes)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(2 * o, o, 2, 2) for o in reversed(sizes[:-1])])
            self.join = nn.ModuleList([level(2 * o, o) for o in reversed(sizes[:-1])])
            self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(width, classes, 1)

        def forward(self, x):
            kept = []
            for i, down in enumerate(self.down):
                x = down(x if i == 0 else self.pool(x))
                kept.append(x)
            for up, join in zip(self.up, self.join):
                kept.pop()
                x = join(lib.cat([kept[-1], up(x)], 1))
            return self.head(x)

    return UNet()


def task(lib, build, batch, size, last, dense=False):
    """(network, function of its loss): what memory.py's `step_of` takes."""
    net, x = build(lib), lib.randn(batch, 3, size, size)
    if last:
        net, x = net.to(memory_format=lib.channels_last), x.contiguous(memory_format=lib.channels_last)
    classes = lib.randint(0, 2, (batch, size, size) if dense else (batch,))
    return net, lambda: lib.nn.functional.cross_entropy(net(x), classes)


MODELS = {
    f"{name}{', channels last' if last else ''}": lambda lib, build=build, arguments=arguments, last=last: task(lib, build, *arguments[:2], last, *arguments[2:])
    for name, build, arguments in (("ResNet-18, 4 x 64 x 64", resnet18, (4, 64)), ("ViT, 8 x 64 x 64", vit, (8, 64)), ("U-Net, 2 x 64 x 64", unet, (2, 64, True)))
    for last in (False, True)
}


def timed(step, seconds):
    """The least processor time of a step, in seconds."""
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.thread_time()
        step()
        best = min(best, time.thread_time() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose name has this in it")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each side is measured")
    options = parser.parse_args()
    strided.set_num_threads(1)
    torch.set_num_threads(1)
    print(f"{'training step':40} {'strided':>10} {'PyTorch':>10}  ratio   {'peak':>10} {'PyTorch':>10}  ratio")
    for name, make in MODELS.items():
        if options.only in name:
            ours, theirs = (timed(memory.step_of(lib, make, None, False), options.seconds) for lib in (strided, torch))
            a, b = memory.ours(make, None, False), memory.theirs(make, None, False)
            print(f"{name:40} {ours * 1e3:7.1f} ms {theirs * 1e3:7.1f} ms  {ours / theirs:5.2f}   {a / 1e6:7.1f} MB {b / 1e6:7.1f} MB  {a / b:5.2f}", flush=True)


if __name__ == "__main__":
    main()
