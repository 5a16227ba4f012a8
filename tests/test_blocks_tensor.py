"""What a block tensor does by its rows: indexing, slices, joins, look-ups, printing, saving; and that everything else says so."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import strided
import strided.nn.functional as F
from strided.block_tensor import BlockTensor, rebuild_block_tensor
from strided.dispatch import listen
from support import run_strided

W = strided.quantize(strided.randn(5, 4, 96, generator=strided.Generator().manual_seed(1)), "mxfp4")
D = W.dequantize()
KEYS = [0, -1, slice(1, 3), slice(None, None, 2), (slice(None), 2), (1, slice(0, 3)), Ellipsis, (Ellipsis, slice(32, 96)), (Ellipsis, 2, slice(None)), [4, 0, 0], None,
        (None, 2), strided.tensor([[0, 1], [2, 3]]), (slice(None), strided.tensor([1, 1])), strided.tensor([True, False, True, False, True]), (3, 2, slice(0, 64)),
        (slice(None), slice(None), slice(0, 0)), (slice(None), slice(None), slice(64, None)), np.int64(2), (0, 0)]  # fmt: skip


def same(a, b):
    return a.shape == b.shape and (a.dequantize() == b).all().item()


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indexing(key):
    got = W[key]
    assert isinstance(got, BlockTensor) and same(got, D[key])


def test_views_share_bytes():
    w = W.clone()
    assert w[2].parts[0].data_ptr() == w.parts[0][2].data_ptr() and w[1:3, :, 32:].parts[1].data_ptr() == w.parts[1][1, 0, 1].data_ptr()
    w[0].copy_(w[1])
    assert same(w[0], D[1])
    with pytest.raises(NotImplementedError, match="own format and shape"):
        w[0].copy_(strided.randn(4, 96))


def test_refused_indices():
    for key in ((0, 0, 3), (Ellipsis, 5), (Ellipsis, slice(1, 33)), (Ellipsis, slice(0, 40)), (Ellipsis, slice(None, None, 2))):
        with pytest.raises(NotImplementedError, match="dequantize"):
            W[key]
    for key in ((0, 0, 0, 0), 9, (0, 7)):
        with pytest.raises(IndexError):
            W[key]


def test_along_rows():
    assert same(W.narrow(1, 1, 2), D.narrow(1, 1, 2)) and same(W.select(0, 3), D.select(0, 3)) and same(W.index_select(1, strided.tensor([3, 1])), D[:, [3, 1]])
    assert all(same(a, b) for a, b in zip(W.unbind(), D.unbind())) and all(same(a, b) for a, b in zip(W.split(2), D.split(2))) and len(list(W)) == 5
    assert same(W.transpose(0, 1), D.transpose(0, 1)) and same(W.mT.mT, D) and W.mT.shape == (5, 96, 4) and (W.mT.dequantize() == D.mT).all()
    assert (W[:, 1].dequantize() == D[:, 1]).all() and (W.transpose(0, 1)[1:, 2:4].dequantize() == D.transpose(0, 1)[1:, 2:4]).all()
    assert len(W) == 5 and W.numel() == 1920 and W.ndim == W.dim() == 3 and W.size(-1) == 96 and W.size() == W.shape and W.nbytes == 60 * 17
    with pytest.raises(NotImplementedError, match="last dimension"):
        W.narrow(2, 0, 32)


def test_cat():
    assert same(strided.cat([W, W[:2]]), strided.cat([D, D[:2]])) and same(strided.cat([W, W], 1), strided.cat([D, D], 1)) and same(strided.cat([W, W], -1), strided.cat([D, D], -1))
    with pytest.raises(NotImplementedError, match="own format"):
        strided.cat([W, D])
    with pytest.raises(NotImplementedError, match="own format"):
        strided.cat([W, strided.quantize(D, "mxfp8_e4m3")])
    with pytest.raises(IndexError):
        strided.cat([W, W], 3)
    with pytest.raises(RuntimeError):
        strided.cat([W, W[:, :2]])
    a, b = (strided.quantize(strided.randn(2, 32) * s, "nvfp4") for s in (1, 5))
    with pytest.raises(NotImplementedError, match="tensor scales"):
        strided.cat([a, b])
    b = strided.quantize(b.dequantize(), "nvfp4", tensor_scale=a.tensor_scale)
    assert strided.cat([a, b]).shape == (4, 32)


def test_embedding():
    w, d = W[0], D[0]
    index = strided.tensor([[3, 0], [1, 1]])
    got = F.embedding(index, w)
    assert got.dtype is strided.float32 and (got == d[index]).all()
    with pytest.raises(IndexError):
        F.embedding(strided.tensor([4]), w)


def test_conversions():
    assert W.to(strided.mxfp4) is W and W.to("cpu") is W and W.float().dtype is strided.float32 and W.to(strided.bfloat16).dtype is strided.bfloat16
    assert W.to(strided.float64).dtype is strided.float64 and W.half().dtype is strided.float16 and strided.dequantize(W).dtype is strided.float32
    assert W.to(strided.mxfp8_e4m3).dtype == strided.mxfp8_e4m3 and same(strided.quantize(W, "mxint8"), strided.quantize(D, "mxint8").dequantize())
    assert D.to(dtype=strided.mxfp4).dtype == strided.mxfp4
    assert strided.dequantize(strided.ones(2, dtype=strided.float16)).dtype is strided.float32 and [t.dtype for t in strided.dequantize([W, D])] == [strided.float32] * 2
    assert W.detach().parts == W.parts and not W.requires_grad and W.is_leaf and W.grad is None and not W.is_floating_point()
    meta = W.to("meta")
    assert meta.is_meta and meta.dequantize().is_meta and meta.shape == W.shape and "meta" in repr(meta)


def test_printed():
    assert repr(strided.quantize(strided.tensor([[1.0] * 16 + [-6.0] * 16]), "mxfp4")[0]).startswith("tensor([ 1.,  1.,  1.") and repr(W[0, 0]).endswith("dtype=torch.mxfp4)")
    assert repr(W).replace(",\n       dtype=torch.mxfp4)", ")") == repr(D)
    big = strided.quantize(strided.randn(300, 7, 64), "int8_g64")
    assert repr(big).replace(",\n       dtype=torch.int8_g64)", ")") == repr(big.dequantize())
    assert repr(W[0].T).replace(", dtype=torch.mxfp4)", ")") == repr(D[0].T)
    assert repr(W[:0]) == "tensor([], size=(0, 4, 96), dtype=torch.mxfp4)"


def test_saved():
    for t in (W, W[1:3], strided.quantize(D[0], "nvfp4"), strided.quantize(D, "int4_g32_zero"), W[0].T):
        file = io.BytesIO()
        strided.save({"t": t, "u": [t]}, file)
        file.seek(0)
        loaded = strided.load(file)
        assert loaded["t"].dtype == t.dtype and (loaded["t"].dequantize() == t.dequantize()).all() and loaded["u"][0].turned == t.turned
        again = pickle.loads(pickle.dumps(t))
        assert isinstance(again, BlockTensor) and (again.dequantize() == t.dequantize()).all()
        assert (copy.deepcopy(t).dequantize() == t.dequantize()).all() and copy.copy(t).shape == t.shape


@pytest.mark.parametrize("change", [
    lambda s: ("mxfp9", *s[1:]), lambda s: (3, *s[1:]), lambda s: (s[0], s[1][:1], *s[2:]), lambda s: (s[0], (1, 2), *s[2:]), lambda s: (*s[:2], (5, 4, 10**9), *s[3:]),
    lambda s: (*s[:2], (-1,), *s[3:]), lambda s: (*s[:2], (), *s[3:]), lambda s: (*s[:3], strided.tensor(1.0), s[4]), lambda s: (*s[:4], 3), lambda s: (s[0], (s[1][0].float(), s[1][1]), *s[2:]),
    lambda s: ("nvfp4", *s[1:]), lambda s: (s[0], (s[1][0][..., :8], s[1][1]), *s[2:]), lambda s: (*s[:2], 7, *s[3:]), lambda s: (s[0], (W, W), *s[2:]),
])  # fmt: skip
def test_a_file_cannot_lie(change):
    with pytest.raises((ValueError, TypeError)):
        rebuild_block_tensor(*change(W.state()))

    class Lie:
        def __reduce__(self):
            return rebuild_block_tensor, change(W.state())

    file = io.BytesIO()
    try:
        strided.save(Lie(), file)
    except Exception:
        return
    file.seek(0)
    with pytest.raises(Exception, match="."):
        strided.load(file)


OTHERS = {
    "add": lambda w: w + 1, "radd": lambda w: strided.ones(96) + w, "sum": lambda w: w.sum(), "relu": lambda w: strided.relu(w), "view": lambda w: w.view(-1), "numpy": lambda w: w.numpy(),
    "tolist": lambda w: w.tolist(), "item": lambda w: w[0, 0].item(), "stack": lambda w: strided.stack([w, w]), "softmax": lambda w: w.softmax(-1), "equal": lambda w: strided.equal(w, w),
    "eq": lambda w: w == 0, "zero_": lambda w: w.zero_(), "mul_": lambda w: w.mul_(2), "stride": lambda w: w.stride(), "empty_like": lambda w: strided.empty_like(w),
    "einsum": lambda w: strided.einsum("ijk->i", w), "copy_": lambda w: strided.zeros(5, 4, 96).copy_(w), "where": lambda w: strided.where(strided.ones(96) > 0, w, w),
    "reshape": lambda w: w.reshape(20, 96), "permute": lambda w: w.permute(2, 0, 1), "storage": lambda w: w.untyped_storage(), "out": lambda w: strided.add(strided.ones(1), 1, out=w),
    "array": lambda w: np.asarray(w), "setitem": lambda w: w.__setitem__(0, 1.0), "layer_norm": lambda w: F.layer_norm(w, (96,)),
    "attention": lambda w: F.scaled_dot_product_attention(w, w, w), "sort": lambda w: w.sort(), "bmm": lambda w: strided.bmm(w, w.mT), "T of three": lambda w: w.permute(2, 1, 0),
    "contiguous": lambda w: w[0].T.contiguous(), "flatten": lambda w: w.flatten(), "dlpack": lambda w: w.__dlpack__(), "bool": lambda w: bool(w), "abs": lambda w: abs(w), "neg": lambda w: -w,
    "safetensors": lambda w: __import__("strided.io.safetensors").io.safetensors.save({"w": w}),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_everything_else_says_so(name):
    before = [part.clone() for part in W.parts]
    with pytest.raises(NotImplementedError, match="dequantize|own format|save"):
        OTHERS[name](W)
    assert all((a == b).all() for a, b in zip(W.parts, before))


def test_lens():
    w, x = W[0], strided.randn(2, 96)
    seen = []
    with listen(seen.append):
        y = F.linear(x, w)
        w.dequantize()
        F.embedding(strided.tensor([1]), w)
    linear, dequantize, embedding = seen[0], seen[1], seen[-1]
    assert (linear.op, linear.kind, linear.flops, linear.bytes_read, linear.bytes_written) == ("linear", "compute", 2 * 2 * 4 * 96, x.nbytes + w.nbytes, y.nbytes)
    assert repr(linear.inputs[1]) == "torch.mxfp4[4, 96] strides (96, 1)" and dequantize.op == "dequantize" and dequantize.bytes_read == w.nbytes
    assert embedding.op == "embedding"


def test_inference_and_no_grad():
    with strided.inference_mode():
        assert strided.quantize(strided.ones(2, 32), "mxfp4").dequantize().is_inference()
    x = strided.ones(2, 32, requires_grad=True)
    assert not strided.quantize(x, "mxfp4").requires_grad


def test_annotate_and_watch(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, torch.nn as nn\n"
        "w = torch.quantize(torch.randn(64, 128), 'mxfp4')\n"
        "layer = nn.Linear(128, 64)\n"
        "layer.weight = nn.Parameter(w, requires_grad=False)\n"
        "optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)\n"
        "for _ in range(3):\n"
        "    layer(torch.randn(2, 128)).pow(2).mean().backward()\n"
        "    optimizer.step()\n"
    )
    code, out, err = run_strided("annotate", script)
    assert code == 0 and "mxfp4" in out and "linear" in out, err
    code, out, err = run_strided("run", "--watch", script)
    assert code == 0 and "3 steps" in out + err, err


def test_compiled():
    w, x = W[0], strided.randn(2, 96)
    f = strided.compile(lambda x: F.linear(x, w).relu() + 1)
    g = strided.compile(lambda x, w: F.linear(x, w) + 1)
    for _ in range(3):  # such calls run as they are
        assert (f(x) == F.linear(x, w).relu() + 1).all() and (g(x, w) == F.linear(x, w) + 1).all()


@pytest.mark.parametrize("call, name", [(lambda: W.numpy(), "numpy"), (lambda: bool(W), "bool"), (lambda: W.untyped_storage(), "untyped_storage"), (lambda: W + 1, "add"), (lambda: W.reshape(-1), "reshape")])
def test_what_blocks_cannot_do_is_named(call, name):
    with pytest.raises(NotImplementedError, match=rf"^{name}: not implemented for torch.mxfp4") as caught:
        call()
    assert caught.type.__qualname__ == "NotOfBlocks"
