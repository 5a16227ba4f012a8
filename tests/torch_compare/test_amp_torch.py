"""Autocast and GradScaler against PyTorch: which dtype each operator gives, and the scaler's whole life."""
import pytest

torch = pytest.importorskip("torch")
import strided
import strided.amp
import strided.nn.functional

OPERATORS = {
    "matmul": lambda t, F, x, xb: x @ x.T,
    "mm": lambda t, F, x, xb: t.mm(x, x.T),
    "linear": lambda t, F, x, xb: F.linear(x, x),
    "bmm": lambda t, F, x, xb: t.bmm(x[None], x.T[None]),
    "einsum": lambda t, F, x, xb: t.einsum("ij,kj->ik", x, x),
    "attention": lambda t, F, x, xb: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "conv": lambda t, F, x, xb: F.conv1d(x[None], x[None]),
    "addmm": lambda t, F, x, xb: t.addmm(t.zeros(2, 2), x, x.T),
    "mv": lambda t, F, x, xb: t.mv(x, x[0]),
    "softmax": lambda t, F, x, xb: F.softmax(xb, -1),
    "layer_norm": lambda t, F, x, xb: F.layer_norm(xb, (4,)),
    "rms_norm": lambda t, F, x, xb: F.rms_norm(xb, (4,)),
    "group_norm": lambda t, F, x, xb: F.group_norm(xb[:, :, None], 2),
    "mse": lambda t, F, x, xb: F.mse_loss(xb, xb),
    "cross_entropy": lambda t, F, x, xb: F.cross_entropy(xb, t.tensor([1, 2])),
    "nll": lambda t, F, x, xb: F.nll_loss(xb, t.tensor([1, 2])),
    "l1": lambda t, F, x, xb: F.l1_loss(xb, xb),
    "smooth_l1": lambda t, F, x, xb: F.smooth_l1_loss(xb, xb),
    "huber": lambda t, F, x, xb: F.huber_loss(xb, xb),
    "bce": lambda t, F, x, xb: F.binary_cross_entropy_with_logits(xb, xb),
    "kl": lambda t, F, x, xb: F.kl_div(xb, xb, reduction="sum"),
    "cosine embedding": lambda t, F, x, xb: F.cosine_embedding_loss(xb, xb, t.ones(2)),
    "triplet": lambda t, F, x, xb: F.triplet_margin_loss(xb, xb, xb),
    "gaussian": lambda t, F, x, xb: F.gaussian_nll_loss(xb, xb, xb.abs()),
    "cat": lambda t, F, x, xb: t.cat([x, xb]),
    "stack": lambda t, F, x, xb: t.stack([x, xb]),
    "add": lambda t, F, x, xb: x + xb,
    "sum": lambda t, F, x, xb: xb.sum(),
    "exp": lambda t, F, x, xb: xb.exp(),
    "prod": lambda t, F, x, xb: xb.prod(),
    "gelu": lambda t, F, x, xb: F.gelu(x),
    "avg_pool3d": lambda t, F, x, xb: F.avg_pool3d(xb[None, None, None], 1),
    "cosine": lambda t, F, x, xb: F.cosine_similarity(xb, xb),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_result_dtypes(name, dtype):
    found = []
    for t in (strided, torch):
        low = getattr(t, dtype)
        t.manual_seed(0)
        x = t.randn(2, 4)
        with t.autocast("cpu", dtype=low):
            found.append(str(OPERATORS[name](t, t.nn.functional, x, x.to(low)).dtype))
    assert found[0] == found[1]


def life(t):
    scaler, log = t.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2), []
    p = t.ones(2, requires_grad=True)
    optimizer = t.optim.SGD([p], lr=0.1)
    for step in range(6):
        optimizer.zero_grad()
        loss = (p * p).sum()
        if step == 3:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        if step == 4:
            scaler.unscale_(optimizer)
            log.append(p.grad.tolist())
        log.append(scaler.step(optimizer))
        scaler.update()
        log.append((scaler.get_scale(), [round(v, 5) for v in p.tolist()], scaler.state_dict()))
    other = t.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    log.append(other.state_dict())
    for misuse in (lambda: scaler.unscale_(t.optim.SGD([p], lr=1.0)), lambda: (scaler.unscale_(optimizer), scaler.unscale_(optimizer))):
        try:
            misuse()
            log.append("fine")
        except (RuntimeError, AssertionError) as error:
            log.append(str(error))
    return log


def test_grad_scaler():
    assert life(strided) == life(torch)
