"""A classifier of drawn digits whose images are made by DataLoader workers as they are needed.

    strided run examples/digits.py                     # a few seconds for 2 epochs
    python examples/digits.py                          # the same file on an installed PyTorch: the same losses

--workers 0 makes the images in this process, with the same result.
"""
import argparse
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, random_split

SHAPES = (  # segments of a seven-segment display: top, upper left, upper right, middle, lower left, lower right, bottom
    "1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011",
)  # fmt: skip
SEGMENTS = ((2, 4, 1, 8), (2, 3, 6, 1), (2, 9, 6, 1), (8, 4, 1, 8), (8, 3, 6, 1), (8, 9, 6, 1), (14, 4, 1, 8))  # row, column, height, width


class Digits(Dataset):
    """Image i is always the same: a digit of bars, moved a little, under noise. [1, 20, 16] and its class."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        place = random.Random(i)
        digit, down, right = i % 10, place.randint(0, 3), place.randint(0, 3)
        image = torch.zeros(20, 16)
        for on, (row, column, height, width) in zip(SHAPES[digit], SEGMENTS):
            if on == "1":
                image[row + down : row + down + height + 1, column + right - 2 : column + right - 1 + width] = 1.0
        noise = torch.randn(20, 16, generator=torch.Generator().manual_seed(i))
        return (image + 0.4 * noise).unsqueeze(0), digit


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),       # [B, 8, 10, 8]
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),     # [B, 16, 5, 4]
        )  # fmt: skip
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(16 * 5 * 4, 10))

    def forward(self, x):
        return self.classify(self.features(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    training, held_out = random_split(Digits(1200), [1000, 200])
    loader = DataLoader(training, batch_size=50, shuffle=True, num_workers=options.workers)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=options.epochs * len(loader))
    for epoch in range(options.epochs):
        model.train()
        for i, (images, classes) in enumerate(loader):
            loss = F.cross_entropy(model(images), classes, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if i % 5 == 0:
                print(f"epoch {epoch}   batch {i:2d}   loss {loss.item():.3f}")
        model.eval()
        with torch.no_grad():
            right = sum((model(images).argmax(1) == classes).sum().item() for images, classes in DataLoader(held_out, batch_size=100))
        print(f"epoch {epoch}   {right} of {len(held_out)} held-out digits are right")


if __name__ == "__main__":  # workers may import this file
    main()
