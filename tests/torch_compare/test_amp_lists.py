"""Autocast's lists against PyTorch's on the CPU: what dtype every listed operator gives in a region, for float32, bfloat16 and float16 operands."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

import strided


def operands(t, dtype):
    """The same small tensors in either library."""
    g = t.Generator().manual_seed(0)
    rand = lambda *s: t.rand(*s, generator=g).to(dtype) + 0.25
    return {
        "v": rand(6), "m": rand(4, 6), "n": rand(6, 4), "s": rand(5, 5) + 3 * t.eye(5).to(dtype), "b": rand(2, 4, 6), "c": rand(2, 6, 4), "x1": rand(2, 3, 8), "x2": rand(2, 3, 8, 8),
        "x3": rand(2, 3, 8, 8, 8), "w1": rand(3, 3, 3), "w2": rand(3, 3, 3, 3), "w3": rand(3, 3, 3, 3, 3), "f": rand(1).float() + 1.0, "mf": rand(4, 6).float(), "p": rand(4, 6) / 2,
        "i": t.tensor([1, 0, 2, 1]),
    }  # fmt: skip


CALLS = {
    # lower precision
    "conv1d": lambda t, F, o: t.conv1d(o["x1"], o["w1"]), "conv2d": lambda t, F, o: t.conv2d(o["x2"], o["w2"]), "conv3d": lambda t, F, o: t.conv3d(o["x3"], o["w3"]),
    "F.conv2d": lambda t, F, o: F.conv2d(o["x2"], o["w2"], padding=1), "conv2d same": lambda t, F, o: F.conv2d(o["x2"], o["w2"], padding="same"),
    "conv_transpose1d": lambda t, F, o: F.conv_transpose1d(o["x1"], o["w1"]), "conv_transpose2d": lambda t, F, o: F.conv_transpose2d(o["x2"], o["w2"]),
    "conv_transpose3d": lambda t, F, o: F.conv_transpose3d(o["x3"], o["w3"]), "conv_tbc": lambda t, F, o: t.conv_tbc(o["x1"].permute(2, 0, 1), o["w1"], o["v"][:3]),
    "bmm": lambda t, F, o: t.bmm(o["b"], o["c"]), "mm": lambda t, F, o: t.mm(o["m"], o["n"]), "matmul": lambda t, F, o: o["b"] @ o["n"], "matmul v": lambda t, F, o: o["m"] @ o["v"],
    "mv": lambda t, F, o: t.mv(o["m"], o["v"]), "dot": lambda t, F, o: t.dot(o["v"], o["v"]), "vdot": lambda t, F, o: t.vdot(o["v"], o["v"]), "outer": lambda t, F, o: t.outer(o["v"], o["v"]),
    "vecdot": lambda t, F, o: t.linalg.vecdot(o["m"], o["m"]), "inner": lambda t, F, o: t.inner(o["m"], o["m"]), "addmv": lambda t, F, o: t.addmv(o["m"][:, 0], o["m"], o["v"]),
    "addr": lambda t, F, o: t.addr(o["s"], o["v"][:5], o["v"][:5]), "multi_dot": lambda t, F, o: t.linalg.multi_dot([o["m"], o["n"], o["m"]]), "chain_matmul": lambda t, F, o: t.chain_matmul(o["m"], o["n"]),
    "tensordot": lambda t, F, o: t.tensordot(o["m"], o["n"], 1), "einsum": lambda t, F, o: t.einsum("ij,jk->ik", o["m"], o["n"]), "kron": lambda t, F, o: t.kron(o["m"], o["n"]),
    "baddbmm": lambda t, F, o: t.baddbmm(o["b"] @ o["c"], o["b"], o["c"]), "addmm": lambda t, F, o: t.addmm(o["m"] @ o["n"], o["m"], o["n"]), "addbmm": lambda t, F, o: t.addbmm(o["m"] @ o["n"], o["b"], o["c"]),
    "linear": lambda t, F, o: F.linear(o["m"], o["m"]), "linear bias": lambda t, F, o: F.linear(o["m"], o["n"].t(), o["m"][:, 0]), "bilinear": lambda t, F, o: F.bilinear(o["m"], o["m"], o["x2"][0, :, :6, :6]),
    "prelu": lambda t, F, o: F.prelu(o["x1"], o["v"][:3]), "sdpa": lambda t, F, o: F.scaled_dot_product_attention(o["b"], o["b"], o["b"]),
    "lstm": lambda t, F, o: t.nn.LSTM(6, 5)(o["b"].float())[0], "gru": lambda t, F, o: t.nn.GRU(6, 5)(o["b"].float())[0], "rnn": lambda t, F, o: t.nn.RNN(6, 5)(o["b"].float())[0],
    "lstm two": lambda t, F, o: t.nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)(o["b"].float())[1][1], "lstm proj": lambda t, F, o: t.nn.LSTM(6, 5, proj_size=3)(o["b"].float())[1][1],
    "lstm packed": lambda t, F, o: t.nn.LSTM(6, 5)(t.nn.utils.rnn.pack_padded_sequence(o["b"].float(), [2, 2, 1, 1]))[0].data, "lstm cell": lambda t, F, o: t.nn.LSTMCell(6, 5)(o["m"].float())[0], "mha": lambda t, F, o: t.nn.MultiheadAttention(6, 2)(o["b"].float(), o["b"].float(), o["b"].float())[0],
    "cosine_similarity": lambda t, F, o: F.cosine_similarity(o["m"], o["m"]), "mixed mm": lambda t, F, o: o["m"] @ o["mf"].t(), "mixed add": lambda t, F, o: o["m"] + o["mf"],
    # float32
    "avg_pool3d": lambda t, F, o: F.avg_pool3d(o["x3"], 2), "avg_pool2d": lambda t, F, o: F.avg_pool2d(o["x2"], 2), "max_pool3d": lambda t, F, o: F.max_pool3d(o["x3"], 2), "max_pool2d": lambda t, F, o: F.max_pool2d(o["x2"], 2),
    "adaptive_avg_pool3d": lambda t, F, o: F.adaptive_avg_pool3d(o["x3"], 2), "adaptive_max_pool3d": lambda t, F, o: F.adaptive_max_pool3d(o["x3"], 2), "adaptive_avg_pool2d": lambda t, F, o: F.adaptive_avg_pool2d(o["x2"], 2),
    "max_unpool2d": lambda t, F, o: F.max_unpool2d(*F.max_pool2d(o["x2"], 2, return_indices=True), 2), "max_unpool3d": lambda t, F, o: F.max_unpool3d(*F.max_pool3d(o["x3"], 2, return_indices=True), 2),
    "fractional_max_pool2d": lambda t, F, o: F.fractional_max_pool2d(o["x2"], 2, output_size=3, _random_samples=o["x1"][:, :, :2]), "fractional_max_pool3d": lambda t, F, o: F.fractional_max_pool3d(o["x3"], 2, output_size=3, _random_samples=o["x1"][:, :, :3]),
    "reflection_pad1d": lambda t, F, o: F.pad(o["x1"], (1, 1), "reflect"), "reflection_pad2d": lambda t, F, o: F.pad(o["x2"], (1, 1, 1, 1), "reflect"), "replication_pad1d": lambda t, F, o: F.pad(o["x1"], (1, 1), "replicate"),
    "replication_pad2d": lambda t, F, o: F.pad(o["x2"], (1, 1, 1, 1), "replicate"), "replication_pad3d": lambda t, F, o: F.pad(o["x3"], (1,) * 6, "replicate"), "reflection_pad3d": lambda t, F, o: F.pad(o["x3"], (1,) * 6, "reflect"),
    "circular pad": lambda t, F, o: F.pad(o["x1"], (1, 1), "circular"), "constant pad": lambda t, F, o: F.pad(o["x1"], (1, 1)), "grid_sample": lambda t, F, o: F.grid_sample(o["x2"], o["x2"][:, :2].permute(0, 2, 3, 1)),
    "polar": lambda t, F, o: t.polar(o["m"], o["m"]), "prod": lambda t, F, o: t.prod(o["m"]), "prod dim": lambda t, F, o: o["m"].prod(1), "quantile": lambda t, F, o: t.quantile(o["m"], 0.5), "nanquantile": lambda t, F, o: t.nanquantile(o["m"], 0.5),
    "stft": lambda t, F, o: t.stft(o["x1"].reshape(2, 24), 8, window=t.ones(8), return_complex=True), "cdist": lambda t, F, o: t.cdist(o["m"], o["m"]), "pdist": lambda t, F, o: F.pdist(o["m"]), "trace": lambda t, F, o: t.trace(o["s"]),
    "view_as_complex": lambda t, F, o: t.view_as_complex(o["m"].reshape(12, 2)), "norm": lambda t, F, o: t.norm(o["m"]), "linalg.norm": lambda t, F, o: t.linalg.norm(o["m"]), "vector_norm": lambda t, F, o: t.linalg.vector_norm(o["m"]),
    "matrix_norm": lambda t, F, o: t.linalg.matrix_norm(o["m"]), "renorm": lambda t, F, o: t.renorm(o["m"], 2, 0, 1.0), "logsumexp": lambda t, F, o: t.logsumexp(o["m"], 1), "softmax": lambda t, F, o: F.softmax(o["m"], 1),
    "log_softmax": lambda t, F, o: F.log_softmax(o["m"], 1), "sum": lambda t, F, o: o["m"].sum(), "mean": lambda t, F, o: o["m"].mean(), "var": lambda t, F, o: o["m"].var(), "exp": lambda t, F, o: o["m"].exp(), "pow": lambda t, F, o: o["m"] ** 2,
    "cumsum": lambda t, F, o: o["m"].cumsum(0), "cumprod": lambda t, F, o: o["m"].cumprod(0), "layer_norm": lambda t, F, o: F.layer_norm(o["m"], (6,)), "group_norm": lambda t, F, o: F.group_norm(o["x1"], 3), "batch_norm": lambda t, F, o: F.batch_norm(o["x1"], None, None, training=True),
    "gelu": lambda t, F, o: F.gelu(o["m"]), "normalize": lambda t, F, o: F.normalize(o["m"]), "embedding": lambda t, F, o: F.embedding(o["i"], o["m"]), "interpolate": lambda t, F, o: F.interpolate(o["x2"], scale_factor=2, mode="bilinear"),
    "mse_loss": lambda t, F, o: F.mse_loss(o["m"], o["m"]), "l1_loss": lambda t, F, o: F.l1_loss(o["m"], o["m"]), "smooth_l1_loss": lambda t, F, o: F.smooth_l1_loss(o["m"], o["m"]), "huber_loss": lambda t, F, o: F.huber_loss(o["m"], o["m"]),
    "cross_entropy": lambda t, F, o: F.cross_entropy(o["m"], o["i"]), "nll_loss": lambda t, F, o: F.nll_loss(o["m"], o["i"]), "nll_loss2d": lambda t, F, o: F.nll_loss(o["x2"], t.zeros(2, 8, 8, dtype=t.int64)), "kl_div": lambda t, F, o: F.kl_div(o["m"], o["p"], reduction="sum"),
    "bce": lambda t, F, o: F.binary_cross_entropy(o["p"], o["p"]), "bce logits": lambda t, F, o: F.binary_cross_entropy_with_logits(o["m"], o["p"]), "cosine_embedding_loss": lambda t, F, o: F.cosine_embedding_loss(o["m"], o["m"], t.ones(4)),
    "hinge": lambda t, F, o: F.hinge_embedding_loss(o["m"], t.ones(4, 6)), "poisson": lambda t, F, o: F.poisson_nll_loss(o["m"], o["m"]), "margin_ranking": lambda t, F, o: F.margin_ranking_loss(o["v"], o["v"], t.ones(6)), "gaussian_nll": lambda t, F, o: F.gaussian_nll_loss(o["m"], o["m"], o["m"]),
    "soft_margin": lambda t, F, o: F.soft_margin_loss(o["m"], t.ones(4, 6)), "triplet": lambda t, F, o: F.triplet_margin_loss(o["m"], o["m"] + 1, o["m"]), "multi_margin": lambda t, F, o: F.multi_margin_loss(o["m"], o["i"]), "multilabel_margin": lambda t, F, o: F.multilabel_margin_loss(o["m"], t.zeros(4, 6, dtype=t.int64)),
    "multilabel_soft_margin": lambda t, F, o: F.multilabel_soft_margin_loss(o["m"], t.ones(4, 6)), "ctc": lambda t, F, o: F.ctc_loss(F.log_softmax(o["x1"].float(), 2).to(o["x1"].dtype), t.tensor([[1], [2], [1]]), t.tensor([2, 2, 2]), t.tensor([1, 1, 1])),
    "cholesky": lambda t, F, o: t.linalg.cholesky(o["s"].float() @ o["s"].float().t() + t.eye(5)), "linalg.inv": lambda t, F, o: t.linalg.inv(o["s"]), "inverse": lambda t, F, o: t.inverse(o["s"]), "pinverse": lambda t, F, o: t.pinverse(o["s"]), "pinv": lambda t, F, o: t.linalg.pinv(o["s"]),
    "solve": lambda t, F, o: t.linalg.solve(o["s"], o["s"]), "solve_triangular": lambda t, F, o: t.linalg.solve_triangular(o["s"], o["s"], upper=True), "triangular_solve": lambda t, F, o: t.triangular_solve(o["s"], o["s"])[0], "svd": lambda t, F, o: t.svd(o["s"])[1], "linalg.svd": lambda t, F, o: t.linalg.svd(o["s"])[1],
    "svdvals": lambda t, F, o: t.linalg.svdvals(o["s"]), "eigvals": lambda t, F, o: t.linalg.eigvals(o["s"]), "eigvalsh": lambda t, F, o: t.linalg.eigvalsh(o["s"]), "eigh": lambda t, F, o: t.linalg.eigh(o["s"])[0], "eig": lambda t, F, o: t.linalg.eig(o["s"])[0], "qr": lambda t, F, o: t.linalg.qr(o["s"])[0], "torch.qr": lambda t, F, o: t.qr(o["s"])[0],
    "cond": lambda t, F, o: t.linalg.cond(o["s"]), "matrix_rank": lambda t, F, o: t.linalg.matrix_rank(o["s"]), "lstsq": lambda t, F, o: t.linalg.lstsq(o["s"], o["s"])[0], "geqrf": lambda t, F, o: t.geqrf(o["s"])[0], "householder": lambda t, F, o: t.linalg.householder_product(o["s"], o["v"][:5]),
    "orgqr": lambda t, F, o: t.orgqr(o["s"], o["v"][:5]), "ormqr": lambda t, F, o: t.ormqr(o["s"], o["v"][:5], o["s"]), "det": lambda t, F, o: t.det(o["s"]), "slogdet": lambda t, F, o: t.slogdet(o["s"])[1], "logdet": lambda t, F, o: t.logdet(o["s"]), "lu": lambda t, F, o: t.linalg.lu(o["s"])[0], "lu_factor": lambda t, F, o: t.linalg.lu_factor(o["s"])[0],
    "lu_solve": lambda t, F, o: t.lu_solve(o["s"], *t.linalg.lu_factor(o["s"].float())), "matrix_power": lambda t, F, o: t.linalg.matrix_power(o["s"], 2), "matrix_exp": lambda t, F, o: t.matrix_exp(o["s"]), "tensorinv": lambda t, F, o: t.linalg.tensorinv(o["s"][:4, :4].reshape(2, 2, 4), 2), "tensorsolve": lambda t, F, o: t.linalg.tensorsolve(o["s"], o["s"][0]),
    "cholesky_inverse": lambda t, F, o: t.cholesky_inverse(o["s"]), "cholesky_solve": lambda t, F, o: t.cholesky_solve(o["s"], o["s"]),
    **{f"fft.{name}": (lambda t, F, o, name=name: getattr(t.fft, name)(o["x2"])) for name in "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft".split()},
    # promoted to the widest
    "cat": lambda t, F, o: t.cat([o["m"], o["mf"]]), "stack": lambda t, F, o: t.stack([o["m"], o["mf"]]), "index_copy": lambda t, F, o: t.index_copy(o["m"], 0, o["i"][:3], o["mf"][:3]), "cat halves": lambda t, F, o: t.cat([o["m"].bfloat16(), o["m"].half()]),
    "hstack": lambda t, F, o: t.hstack([o["m"], o["mf"]]), "where": lambda t, F, o: t.where(o["m"] > 0.5, o["m"], o["mf"]), "addcmul": lambda t, F, o: t.addcmul(o["m"], o["m"], o["mf"]), "scatter_add": lambda t, F, o: o["mf"].scatter_add(0, o["i"][None, :4], o["mf"][:1, :4]),
    "lerp": lambda t, F, o: t.lerp(o["m"], o["m"], 0.5), "atan2": lambda t, F, o: t.atan2(o["m"], o["mf"]), "cross": lambda t, F, o: t.linalg.cross(o["m"][:, :3], o["m"][:, :3]), "dist": lambda t, F, o: t.dist(o["m"], o["m"]),
}  # fmt: skip


def outcome(t, name, dtype, region):
    F = t.nn.functional
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        o = operands(t, getattr(t, dtype))
        try:
            with t.autocast("cpu", dtype=getattr(t, region)):
                return str(CALLS[name](t, F, o).dtype)
        except (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError) as error:
            return type(error)


# Outside PyTorch's lists, where this package computes in float32 what PyTorch makes of other operators.
OTHERS = ("pinv", "matrix_exp")


@pytest.mark.parametrize("name", [name for name in CALLS if name not in OTHERS])
def test_the_result_has_pytorchs_dtype(name):
    for region in ("bfloat16", "float16"):
        for dtype in ("float32", "bfloat16", "float16"):
            expected = outcome(torch, name, dtype, region)
            found = outcome(strided, name, dtype, region)
            if isinstance(expected, str) and not (isinstance(found, type) and "complex" in expected) and found is not AttributeError:
                assert found == expected, (region, dtype)


def test_every_entry_of_pytorchs_own_test_list_is_here():
    lists = pytest.importorskip("torch.testing._internal.autocast_test_lists").AutocastCPUTestLists(torch.device("cpu"))
    listed = {item[0] for group in ("torch_16", "torch_fp32", "nn_16", "nn_fp32", "torch_need_autocast_promote") for item in getattr(lists, group)}
    here = {"nll_loss2d", "prelu", "mm", "bmm", *CALLS}
    named = {"binary_cross_entropy": "bce", "multilabel_margin_loss": "multilabel_margin", "soft_margin_loss": "soft_margin", "multi_margin_loss": "multi_margin", "poisson_nll_loss": "poisson",
             "hinge_embedding_loss": "hinge", "margin_ranking_loss": "margin_ranking", "triplet_margin_loss": "triplet", "binary_cross_entropy_with_logits": "bce logits"}  # fmt: skip
    private = {"_addmm_activation", "_native_multi_head_attention"}
    assert {named.get(name, name) for name in listed - private} <= here


def scaler_life(t, seed):
    """A scaler's state after each of some steps with infinities, NaN, missing and huge gradients, two optimizers and a changed factor."""
    import random

    rng = random.Random(seed)
    scaler, log = t.amp.GradScaler("cpu", init_scale=rng.choice([1.0, 2.0**16, 2.0**126]), growth_interval=rng.choice([1, 2, 3]), growth_factor=rng.choice([2.0, 3.0]), backoff_factor=0.25), []
    a, b = t.ones(3, requires_grad=True), t.full((2, 2), 2.0, requires_grad=True)
    optimizers = [t.optim.SGD([a], lr=0.01), t.optim.SGD([b], lr=0.01, momentum=0.9)]
    for step in range(24):
        loss = (a * a).sum() * rng.choice([1.0, 1.0, 1.0, 1e30, float("inf"), float("nan")]) + (b * 3).sum() * rng.choice([1.0, 1.0, float("inf")])
        for optimizer in optimizers:
            optimizer.zero_grad()
        scaler.scale(loss).backward()
        for optimizer in optimizers:
            if rng.random() < 0.4:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
        scaler.update(*([rng.choice([8.0, 4.0])] if rng.random() < 0.1 else []))
        if step == 11:
            scaler.set_growth_interval(2)
            scaler.load_state_dict(scaler.state_dict())
        log.append((str(scaler.state_dict()), [round(v, 4) for v in a.tolist()], [round(v, 4) for v in b.flatten().tolist()]))
    return log


@pytest.mark.parametrize("seed", range(12))
def test_scalers_live_alike_step_by_step(seed):
    for ours, theirs in zip(scaler_life(strided, seed), scaler_life(torch, seed)):
        assert ours == theirs


def test_the_older_cuda_names():
    import inspect

    for t in (strided, torch):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            scaler = t.cuda.amp.GradScaler(2.0**10)
            region = t.cuda.amp.autocast(True)
        assert not scaler.is_enabled() and [w.category for w in said][:1] == [FutureWarning] and any("available" in str(w.message) for w in said)
        x = t.ones(2, 2)
        with region:
            assert (x @ x).dtype is t.float32
        assert scaler.scale(x) is x
    names = lambda c: list(inspect.signature(c).parameters)
    assert names(strided.cuda.amp.GradScaler) == names(torch.cuda.amp.GradScaler) and names(strided.cuda.amp.autocast) == names(torch.cuda.amp.autocast)
