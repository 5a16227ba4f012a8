"""Kernels as they are written for an arm64 host: each family's text compiles for it and gives, run here, what this host's own kernels give.

Texts for NEON are vectors of 128 bits in LLVM's terms, so that any host can run them; those that name its instructions (dot products) are compiled in
test_blocks_products.py and test_matmul_dots.py.
"""
import llvmlite.binding as llvm
import pytest

import strided as torch
import strided.nn.functional as F
from strided.kernels import jit, native

ARM = jit.Host("aarch64-unknown-linux-gnu", "apple-m1", "+neon,+fullfp16")


@pytest.fixture
def arm(monkeypatch):
    """Kernels are written as for arm64, compiled for it, and compiled for this host and run. Gives the families that were."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(ARM.triple).create_target_machine(cpu=ARM.cpu, features=ARM.feature_string, opt=1)
    here, families = jit.host(), set()

    def load(key, build, symbols):
        text = build()
        assert "llvm.x86" not in text and "llvm.aarch64" not in text
        module = llvm.parse_assembly(text)
        module.triple = ARM.triple
        module.data_layout = str(machine.target_data)
        module.verify()
        assert machine.emit_object(module)
        monkeypatch.setattr(jit, "_host", here)
        try:
            blob = jit.target_machine().emit_object(jit.optimise(text))
        finally:
            monkeypatch.setattr(jit, "_host", ARM)
        families.add(key[0])
        return jit._link(blob, symbols)

    monkeypatch.setattr(jit, "_load", load)
    monkeypatch.setattr(jit, "_addresses", {})
    monkeypatch.setattr(jit, "_host", ARM)
    native.clear_plans()
    yield families
    native.clear_plans()


def numbers(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(len(shape))) * 2 - 1


A, B, X, Q = numbers(13, 37), numbers(13, 37), numbers(2, 3, 9, 10), numbers(1, 2, 12, 16)
W, ROWS = numbers(5, 3, 3, 3), torch.tensor([0, 3, 3, 5])
LAST = X.contiguous(memory_format=torch.channels_last)
SEQUENCE = numbers(4, 2, 8)
LAYERS = [layer(8, 6) for layer in (torch.nn.LSTM, torch.nn.GRU)]
BLOCKS = [torch.quantize(numbers(40, 256), name) for name in ("mxfp4", "int8_g32")]


def with_gradients(function, *leaves):
    leaves = [x.detach().clone(memory_format=torch.preserve_format).requires_grad_() for x in leaves]
    out = function(*leaves)
    (out * out.detach()).sum().backward()
    return [out.detach(), *(x.grad for x in leaves)]


# By the families that they use, as kernels' keys name them.
CASES = {
    "map; map walker; copy": lambda: [X[:, :, :8:2, ::3].exp() + X[:, :, 1::2, ::3], *with_gradients(lambda a, b: (a * b).exp().tanh() + a.erf() + a.t().reshape(13, 37), A, B), A.double().sin() + B, A.half() * B.half(), (A * 5).int() // 3],
    "map": lambda: [A.bfloat16() * B.bfloat16(), A.to(torch.float8_e4m3fn).float(), torch.view_as_real(torch.complex(A, B) * torch.complex(B, A))],
    "packed": lambda: [(A * 3).to(torch.int4).to(torch.int32)],
    "fold": lambda: [*with_gradients(lambda a: a.softmax(-1), A), *with_gradients(lambda a: F.layer_norm(a, (37,)), A), A.sum(0), A.argmax(1), A.amax(0), A.half().sum(1)],
    "scan": lambda: [A.cumsum(1), A.cumsum(0), A.cumprod(1)],
    "matmul": lambda: [*with_gradients(lambda a, b: a @ b.t(), A, B), A[:2] @ numbers(37, 90), numbers(20, 70) @ numbers(50, 70).t(), A.bfloat16() @ B.bfloat16().t(), (A * 5).int() @ (B * 5).int().t()],
    "direct convolution; weight gradient": lambda: with_gradients(lambda x, w: F.conv2d(x, w, padding=1), X, W),
    "channels last; channels last, weights": lambda: with_gradients(lambda x, w: F.conv2d(x, w, padding=1), LAST, W),
    "rows_module; rows_gradient_module": lambda: with_gradients(lambda x, w: F.conv2d(x, w, padding=1, groups=3), LAST, W[:3, :1]),
    "maximum of windows; put back": lambda: with_gradients(lambda x: F.max_pool2d(x, 2), X),
    "windows": lambda: with_gradients(lambda x: F.max_pool2d(x, 3, 1, 1), LAST),
    "bands": lambda: with_gradients(lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), X),
    "samples": lambda: with_gradients(lambda x: F.grid_sample(x, numbers(2, 4, 4, 2), align_corners=False), X),
    "sampler_places": lambda: with_gradients(lambda x, g: F.grid_sample(x, g, align_corners=False), X[:, :, None], numbers(2, 1, 4, 4, 3)),
    "attention; attention gradients": lambda: with_gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), Q, Q * 0.5, Q + 1),
    "attention of few": lambda: [F.scaled_dot_product_attention(Q[:, :, :1], numbers(1, 2, 90, 16), numbers(1, 2, 90, 16))],
    "indexed; check": lambda: [*with_gradients(lambda a: a[ROWS], A), A.gather(1, A.argsort(1)), torch.zeros(13, 37).scatter_add(0, ROWS[:, None].expand(4, 37), B[:4])],
    "bags": lambda: with_gradients(lambda w: F.embedding_bag(ROWS[None], w), A),
    "join": lambda: [torch.cat([A, B], 1), torch.stack([A, B], 1)],
    "compress; count": lambda: [A[A > 0], (A > 0).nonzero()],
    "radix; order": lambda: [*numbers(4, 2000).sort(1), *(A * 9).int().sort(1), A.kthvalue(3)[0]],
    "top": lambda: [*A.topk(5), *numbers(3, 4000).topk(9)],
    "edges": lambda: [F.pad(X, (1, 2, 1, 1), mode="reflect"), F.pad(X, (1, 2, 1, 1), mode="circular")],
    "recurrent layer": lambda: [t for layer in LAYERS for t in with_gradients(lambda x, layer=layer: layer(x)[0], SEQUENCE)],
    "alignments": lambda: with_gradients(lambda a: F.ctc_loss(a[:, None, :9].expand(13, 2, 9).log_softmax(-1), torch.tensor([[1, 2, 3], [4, 5, 6]]), (13, 13), (3, 3)), A),
    "dequantize; block few; block product": lambda: [y for w in BLOCKS for y in (w.dequantize(), F.linear(numbers(1, 256), w), F.linear(numbers(3, 256), w), F.linear(numbers(40, 256), w))],
    "quantize; largest": lambda: [torch.quantize(B[:, :32].contiguous(), name).dequantize() for name in ("mxfp4", "nvfp4", "int8_g32")],
}
TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 2e-3}


@pytest.mark.parametrize("case", CASES)
def test_a_family(case, request):
    expected = CASES[case]()
    families = request.getfixturevalue("arm")
    found = CASES[case]()
    assert families >= set(case.split("; ")) and len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.dtype is b.dtype and a.shape == b.shape
        tolerance = TOLERANCE.get(a.dtype, 1e-4)
        assert torch.allclose(a.double(), b.double(), atol=tolerance, rtol=tolerance), (a.double() - b.double()).abs().max()
