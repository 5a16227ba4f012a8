"""Functions to be mapped over a batch, spelt for both libraries: name -> (function of the library and samples, shapes of the samples)."""
CASES = {
    "add ranks": (lambda L, a, b: a + b, ((2, 3), (3,))),
    "add scalar sample": (lambda L, a, b: a * b, ((), (2, 3))),
    "where": (lambda L, a, b: L.where(a > 0, a, b), ((3,), (3,))),
    "clamp": (lambda L, a: a.clamp(-0.5, 0.5), ((3,),)),
    "sum": (lambda L, a: a.sum(), ((2, 3),)),
    "sum dim": (lambda L, a: (a.sum(0), a.sum(-1, keepdim=True), a.sum((0, 1))), ((2, 3),)),
    "mean of a scalar": (lambda L, a: a.mean(), ((),)),
    "prod": (lambda L, a: (a.prod(), a.prod(1)), ((2, 3),)),
    "max": (lambda L, a: (a.max(), a.max(0).values, a.max(-1).indices, L.max(a, -a), a.amax((0, 1)), a.argmax(), a.argmax(1)), ((2, 3),)),
    "var": (lambda L, a: (a.var(), a.std(0), a.var(1, unbiased=False), a.norm(), a.norm(dim=0)), ((2, 3),)),
    "softmax": (lambda L, a: (L.softmax(a, 0), a.log_softmax(-1), L.nn.functional.softmax(a, dim=1), a.logsumexp(1)), ((2, 3),)),
    "cumsum": (lambda L, a: (a.cumsum(0), a.cumprod(-1), a.cummax(1)[0]), ((2, 3),)),
    "sort": (lambda L, a: (a.sort(0).values, a.sort().indices, a.topk(2).values, a.argsort(0), a.kthvalue(2, 1).values), ((2, 3),)),
    "flip": (lambda L, a: (a.flip(0), a.flip((0, 1)), a.roll(1, 0), a.roll(1), a.diff()), ((2, 3),)),
    "views": (lambda L, a: (a.view(6), a.view(3, -1), a.reshape(-1), a.t(), a.T, a.mT, a.transpose(0, 1), a.permute(1, 0), a.unsqueeze(0), a.unsqueeze(-1), a.flatten()), ((2, 3),)),
    "squeeze": (lambda L, a: (a.squeeze(), a.squeeze(0), a.squeeze(1), a.expand(4, 3), a.repeat(2, 2), a.movedim(0, 1)), ((1, 3),)),
    "split": (lambda L, a: (*a.split(2), *a.chunk(2, 1), *a.unbind(), *a.unbind(1), a.narrow(1, 1, 2), a.select(0, 1)), ((3, 4),)),
    "index": (lambda L, a: (a[0], a[:, 1], a[..., -1], a[1:, ::2], a[None], a[L.tensor([1, 0])], a[:, L.tensor([2, 2])], a[[0, 1], [1, 2]]), ((2, 3),)),
    "index by samples": (lambda L, a, i: a[i.abs().long() % 3], ((3, 2), (4,))),
    "gather": (lambda L, a: a.gather(1, a.argsort(1)), ((2, 3),)),
    "cat": (lambda L, a, b: (L.cat([a, b]), L.cat([a, L.ones(1, 3)], 0), L.stack([a, b], 1), L.stack([a, L.zeros(2, 3)], -1)), ((2, 3), (2, 3))),
    "matmul": (lambda L, a, b: (a @ b, a @ b[:, 0], a[0] @ b, a[0] @ b[:, 0], L.mm(a, b), L.mv(a, b[:, 0]), L.dot(a[0], b[:, 0]), L.outer(a[0], b[0])), ((2, 3), (3, 4))),
    "matmul with what is no sample": (lambda L, a: (a @ L.ones(3, 2), L.ones(4, 2) @ a, a[0] @ L.ones(3, 2), L.ones(5, 1, 2) @ a, L.bmm(a[None], L.ones(1, 3, 2))), ((2, 3),)),
    "einsum": (lambda L, a, b: (L.einsum("ij,jk->ik", a, b), L.einsum("ij->j", a), L.einsum("ij,jk", a, b)), ((2, 3), (3, 4))),
    "linear": (lambda L, x, w, b: (L.nn.functional.linear(x, w, b), L.nn.functional.linear(x, L.ones(2, 3)), L.nn.functional.linear(L.ones(4, 3), w)), ((3,), (2, 3), (2,))),
    "conv2d": (lambda L, x: (L.nn.functional.conv2d(x, L.ones(2, 3, 2, 2)), L.nn.functional.max_pool2d(x, 2), L.nn.functional.conv2d(x[None], L.ones(2, 3, 2, 2))), ((3, 4, 4),)),
    "conv2d by samples": (lambda L, x, w: L.nn.functional.conv2d(x, w), ((3, 4, 4), (2, 3, 2, 2))),
    "layer_norm": (lambda L, x, w: (L.nn.functional.layer_norm(x, (3,)), L.nn.functional.layer_norm(x, (3,), w)), ((2, 3), (3,))),
    "losses": (lambda L, x, y: (L.nn.functional.mse_loss(x, y), L.nn.functional.cross_entropy(x, L.tensor([0, 2])), L.nn.functional.cross_entropy(x[0], y[0].argmax())), ((2, 3), (2, 3))),
    "cross entropy": (
        lambda L, x, y: tuple(
            L.nn.functional.cross_entropy(x, y.argmax(-1) - 1, reduction=r, ignore_index=-1) for r in ("mean", "sum", "none")
        ) + (L.nn.functional.cross_entropy(x[0], y[0].argmax(), reduction="sum"), L.nn.functional.cross_entropy(x, y.softmax(1)), L.nn.functional.cross_entropy(x, y.argmax(1), label_smoothing=0.1)),
        ((4, 3), (4, 3)),
    ),
    "activations": (lambda L, x: tuple(getattr(L.nn.functional, n)(x) for n in ("relu", "gelu", "silu", "elu", "softplus", "leaky_relu", "tanh", "sigmoid")), ((2, 3),)),
    "embedding": (lambda L, x: L.nn.functional.embedding(x.abs().long() % 4, L.arange(8.0).view(4, 2)), ((3,),)),
    "attention": (lambda L, q, k: L.nn.functional.scaled_dot_product_attention(q, k, k), ((2, 4, 3), (2, 5, 3))),
    "writes": (lambda L, a, b: a.clone().add_(b).mul_(2), ((2, 3), (3,))),
    "window written": (lambda L, a: _window(L, a), ((2, 3),)),
    "masked_fill": (lambda L, a: (a.masked_fill(a > 0, -1.0), a.tril(), a.new_zeros(2) + a[:, 0], L.zeros_like(a), L.full_like(a, 2.0)), ((2, 3),)),
    "iteration": (lambda L, a: sum(row * i for i, row in enumerate(a)), ((3, 2),)),
    "trace of a product": (lambda L, a: (L.trace(a @ a.t()), L.diag(a[0]), L.linalg.norm(a), L.linalg.vector_norm(a)), ((2, 3),)),
    "det": (lambda L, a: (L.linalg.det(a), L.linalg.inv(a + 5 * L.eye(3))), ((3, 3),)),
    "nothing of the sample": (lambda L, a: L.arange(3.0), ((2,),)),
    "types": (lambda L, a: (a.double(), a.to(L.float64), a.long(), (a > 0).any(), (a > 0).sum(), a.isnan().all()), ((2, 3),)),
    "grad": (lambda L, a, b: L.func.grad(lambda w: (w @ b).tanh().sum())(a), ((2, 3), (3, 2))),
    "jacrev": (lambda L, a: L.func.jacrev(lambda w: (w * w).sum(0))(a), ((2, 3),)),
    "hessian": (lambda L, a: L.func.hessian(lambda w: (w**3).sum())(a), ((3,),)),
    "vjp": (lambda L, a, b: L.func.vjp(lambda w: w.exp(), a)[1](b)[0], ((3,), (3,))),
    "jvp": (lambda L, a, b: L.func.jvp(lambda w: w.sin(), (a,), (b,)), ((3,), (3,))),
    "vmap": (lambda L, a, b: L.vmap(lambda r, c: r @ c, in_dims=(0, None))(a, b), ((2, 3), (3,))),
}  # fmt: skip


def _window(L, a):
    b = a.clone()
    b[0] = b[1] * 2
    b[:, 0] += 1
    return b
