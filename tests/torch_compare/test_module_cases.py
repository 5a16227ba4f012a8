"""A part of module_cases.py: modules of every family, forward, gradients, repr, state and wrong input."""
import pytest

pytest.importorskip("torch")
from module_cases import rows, torch

MODULES = """nn.AdaptiveAvgPool2d nn.BatchNorm2d nn.Bilinear nn.CircularPad2d nn.Conv2d nn.ConvTranspose2d nn.CTCLoss nn.Embedding nn.FractionalMaxPool2d nn.GaussianNLLLoss nn.GELU
nn.GroupNorm nn.GRU nn.HuberLoss nn.LayerNorm nn.LazyConv2d nn.LazyConvTranspose1d nn.Linear nn.LSTM nn.LSTMCell nn.MaxPool2d nn.MultiheadAttention nn.NLLLoss nn.PReLU nn.RNN
nn.RReLU nn.Softmax nn.Transformer nn.TransformerDecoderLayer nn.TransformerEncoderLayer nn.TripletMarginLoss nn.Upsample""".split()


def test_modules_do_the_same():
    found = list(rows(MODULES, [torch.float32]))
    different = [f"{name} {what}: {error}" for name, what, error in found if error is not None and not what.startswith("wrong")]
    wrong = [f"{name} {what}: {error}" for name, what, error in found if error is not None and what.startswith("wrong")]
    assert len(found) > 400
    assert len(different) <= 0.02 * len(found), "\n".join(different)
    assert len(wrong) <= 2, "\n".join(wrong)
