"""Small programs put together by chance (from fixed seeds), eager and compiled: results, gradients and arguments are the same over several calls with new data."""

import random

import pytest

import strided as torch
from strided.nn import functional as F

DTYPES = [torch.float32] * 5 + [torch.bfloat16, torch.float64, torch.int64, torch.bool]


def written(f):
    early = f * 2
    reader = early + 1
    early.add_(1)
    return reader * early


def filled(f):
    out = torch.zeros_like(f)
    out[...] = f * 2
    out[..., :1] += f[..., :1]
    return out


def standardised(f):
    centred = f - f.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-2)


ONE = [  # of a floating operand with at least one dimension
    lambda f: f.exp(), lambda f: f.sigmoid(), lambda f: F.silu(f), lambda f: F.gelu(f), lambda f: f.abs().add(0.1).sqrt(), lambda f: 2.5 - f,
    lambda f: f.sum(-1), lambda f: f.sum(0, keepdim=True), lambda f: f.mean(tuple(range(f.ndim)), keepdim=True), lambda f: f.amax(0, keepdim=True),
    lambda f: f.logsumexp(-1, keepdim=True), lambda f: f.var(-1, correction=0, keepdim=True), lambda f: f.softmax(0), lambda f: f.log_softmax(-1),
    lambda f: f.transpose(0, -1), lambda f: f.flatten(), lambda f: f.unsqueeze(1), lambda f: f.flip(0), lambda f: f[..., ::2], lambda f: f.expand(2, *f.shape)[1],
    lambda f: torch.cat([f, f * 2], -1), lambda f: f.cumsum(0), lambda f: f.masked_fill(f > 0.5, -1.0), lambda f: f.clamp(-0.5, 0.7),
    lambda f: (f * 1).mul_(3).relu_(), lambda f: f.to(torch.bfloat16), lambda f: f.double(), lambda f: F.layer_norm(f, f.shape[-1:]),
    lambda f: f.reshape(-1, f.shape[-1]) @ f.reshape(-1, f.shape[-1]).t(), lambda f: f > 0, lambda f: f.argmax(-1, keepdim=True), written, filled, standardised,
]  # fmt: skip
TWO = [  # of any two
    lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a / (b.abs() + 1) if b.dtype is not torch.bool else a, lambda a, b: torch.maximum(a, b), lambda a, b: torch.where(b != 0, a, 0.5),
    lambda a, b: torch.where(a != 0, a, b), lambda a, b: a <= b, lambda a, b: torch.add(a * 1.0, b, alpha=2),
]  # fmt: skip


class Program:
    """Steps over a growing list of values; which ones run is settled by the first run, so that the function itself is free of chance."""

    def __init__(self, seed):
        chance = random.Random(seed)
        shape = [chance.choice([1, 2, 3, 5, 8, 16]) for _ in range(chance.choice([1, 2, 2, 3]))]
        if seed % 29 == 0:
            shape[0] = 0
        self.shapes = [tuple(size if chance.random() < 0.75 else 1 for size in shape) for _ in range(chance.randint(1, 3))]
        self.dtypes = [torch.float32, *(chance.choice(DTYPES) for _ in self.shapes[1:])]
        self.turned = [chance.random() < 0.3 for _ in self.shapes]
        self.seed, self.steps = seed, []
        values = self.arguments(0, False)
        for _ in range(chance.randint(3, 12)):
            one, operand = chance.random() < 0.7, [chance.randrange(len(values)) for _ in range(2)]
            step = chance.choice(ONE if one else TWO)
            given = [values[n] for n in operand[: 1 if one else 2]]
            if one and not (given[0].is_floating_point() and given[0].ndim):
                continue
            try:
                result = step(*given)
            except (RuntimeError, IndexError):  # shapes that do not go together
                continue
            if result.numel() < 20_000 and result.ndim < 5:
                values.append(result)
                self.steps.append((step, operand[: len(given)]))
        count = len(self.shapes)
        self.chosen = [n for n in range(count, len(values)) if n == len(values) - 1 or chance.random() < 0.25]

    def arguments(self, call, tracked):
        torch.manual_seed(100 * self.seed + call)
        made = []
        for shape, dtype, turned in zip(self.shapes, self.dtypes, self.turned):
            t = torch.randn(*shape).to(dtype) if dtype.is_floating_point else torch.randint(0, 2 if dtype is torch.bool else 6, shape).to(dtype)
            t = t.transpose(0, -1).contiguous().transpose(0, -1) if turned else t
            made.append(t.requires_grad_(tracked and dtype.is_floating_point))
        return made

    def __call__(self, *values):
        values = list(values)
        for step, operands in self.steps:
            values.append(step(*[values[n] for n in operands]))
        return [values[n] * 1 for n in self.chosen]


def check(found, expected, what):
    assert found.dtype is expected.dtype and found.shape == expected.shape and found.requires_grad == expected.requires_grad, what
    if not expected.is_floating_point():
        assert torch.equal(found, expected), what
        return
    rough = {8: 1e-9, 4: 1e-4, 2: 5e-2}[expected.dtype.itemsize]
    a, b = found.detach().double(), expected.detach().double()
    size = max(float(b.nan_to_num(0, 0, 0).abs().max()), 1.0) if b.numel() else 1.0
    assert torch.allclose(a, b, rtol=rough, atol=rough * min(size, 1e6), equal_nan=True), what


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("first", range(0, 30, 10))
def test_programs(first, tracked):
    compiled_ones = 0
    for seed in range(first, first + 10):
        program = Program(seed)
        compiled = torch.compile(program)
        for call in range(3):
            mine, theirs = (program.arguments(call, tracked) for _ in range(2))
            found, expected = compiled(*mine), program(*theirs)
            for n, (a, b) in enumerate(zip(found, expected)):
                check(a, b, f"program {seed}, call {call}, result {n}")
            for results in (found, expected):
                used = [r for r in results if r.requires_grad][: 1 if call == 2 else None]  # in the end gradients of another pattern
                if used:
                    sum((r.float() * r.detach().float().sin()).sum() for r in used).backward()
            for n, (a, b) in enumerate(zip(mine, theirs)):
                assert torch.equal(a.detach(), b.detach()) and (a.grad is None) == (b.grad is None)
                if b.grad is not None:
                    check(a.grad, b.grad, f"program {seed}, call {call}, gradient {n}")
        compiled_ones += compiled.programs > 0
    assert compiled_ones >= 7


def test_a_fold_that_grows_when_it_is_fused():
    """Columns of 300 rows are added up by one thread, and still are when GELU's derivative, which would pay for two, is computed in the same kernel."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        torch.manual_seed(0)
        bias, x, g = torch.randn(208, requires_grad=True), torch.randn(300, 208), torch.randn(300, 208)
        run = torch.compile(lambda: torch.nn.functional.gelu(x + bias))
        for _ in range(3):
            (found,) = torch.autograd.grad(run(), bias, g)
            (expected,) = torch.autograd.grad(torch.nn.functional.gelu(x + bias), bias, g)
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
        assert run.programs == 1
    finally:
        torch.set_num_threads(before)


# ---- whole steps: gradients, updates in place, buffers ---------------------------------------------------------------------------


class Step:
    """A small network with some state and a hand-written or library's optimiser, put together by chance: everything in one call, in place where chance says so."""

    def __init__(self, seed):
        chance = random.Random(seed)
        torch.manual_seed(seed)
        wide = chance.choice([40, 96, 128])
        self.rows, self.wide = chance.choice([16, 160]), wide
        self.w = [(torch.randn(wide, wide) / wide**0.5).requires_grad_() for _ in range(chance.randint(1, 3))]
        self.b = [torch.zeros(wide).requires_grad_() for _ in self.w]
        self.state = [torch.zeros_like(p) for p in self.parameters()]
        self.mean = torch.zeros(wide)
        self.acts = [chance.choice(["relu", "gelu", "in place", "silu", "tanh", "none", "twice"]) for _ in self.w]
        self.norm, self.residual, self.track = (chance.random() < 0.5 for _ in range(3))
        self.rule = chance.choice(["sgd", "momentum", "scaled", "written twice", "SGD", "AdamW"])
        self.clip, self.drop, self.again = chance.random() < 0.4, chance.random() < 0.6, chance.random() < 0.3
        self.optimizer = {"SGD": torch.optim.SGD, "AdamW": torch.optim.AdamW}.get(self.rule)
        if self.optimizer is not None:
            self.optimizer = self.optimizer(self.parameters(), lr=0.01, weight_decay=chance.choice([0, 0.1]))

    def parameters(self):
        return [*self.w, *self.b]

    def network(self, x):
        for w, b, act in zip(self.w, self.b, self.acts):
            h = F.linear(F.layer_norm(x, (self.wide,)) if self.norm else x, w, b)
            if act == "in place":
                h = F.relu(h, inplace=True)
            elif act == "twice":
                h = h.mul(2).add_(1).mul_(0.5).sigmoid_() * h
            elif act != "none":
                h = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "tanh": torch.tanh}[act](h)
            if self.track:
                with torch.no_grad():
                    self.mean.mul_(0.9).add_(h.mean(0), alpha=0.1)
            x = x + h if self.residual else h
        return x

    def __call__(self, x, y):
        if not self.drop:
            for p in self.parameters():
                p.grad = None
        loss = F.mse_loss(self.network(x), y)
        loss.backward()
        if self.again:
            F.l1_loss(self.network(x), y).backward()  # added to what is there
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters(), 0.5)
        if self.optimizer is not None:
            self.optimizer.step()
        else:
            with torch.no_grad():
                for p, s in zip(self.parameters(), self.state):
                    g = p.grad
                    if self.rule == "momentum":
                        s.mul_(0.9).add_(g)
                        p.sub_(s, alpha=0.01)
                    elif self.rule == "scaled":
                        p -= 0.01 * g.mul_(0.5) / (g.abs().amax() + 1)
                    elif self.rule == "written twice":
                        p.mul_(0.999)
                        p.add_(g, alpha=-0.01)
                        s.copy_(p)
                    else:
                        p -= 0.01 * g
        if self.drop:
            for p in self.parameters():
                p.grad = None
        return loss.detach()


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_steps(first):
    compiled_ones = 0
    for seed in range(first, first + 10):
        ours, eager = Step(seed), Step(seed)
        run = torch.compile(ours)
        for call in range(5):
            torch.manual_seed(call)
            x, y = torch.randn(ours.rows, ours.wide), torch.randn(ours.rows, ours.wide)
            check(run(x, y), eager(x, y), f"step {seed}, call {call}, loss")
            for n, (a, b) in enumerate(zip((*ours.parameters(), *ours.state, ours.mean), (*eager.parameters(), *eager.state, eager.mean))):
                check(a, b, f"step {seed}, call {call}, tensor {n}")
                assert (a.grad is None) == (b.grad is None)
                if b.grad is not None:
                    check(a.grad, b.grad, f"step {seed}, call {call}, gradient {n}")
        compiled_ones += run.programs > 0
    assert compiled_ones >= 8
