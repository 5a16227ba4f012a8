"""Random functions and modules, compiled and eager: everything a caller can see must be the same.

`run(seed)` writes one function (operators, views and writes through them, blocks without gradients or in lower precision, draws, hooks, state, errors), calls it
some times in both ways, with changes between the calls, and returns the differences as text. As a script it goes on until time is up:

    python tests/compile_cases.py --minutes 5 --seed 1
"""
import argparse
import copy
import random
import re
import time
import warnings

import strided as torch
from strided import nn

F = nn.functional

VALUES = """
{a} + {b}|{a} * {b}|{a} - {b}.mean(0)|torch.relu({a})|F.gelu({a})|{a}.tanh()|{a}.sin() * 2.5|F.layer_norm({a}, (8,))|torch.softmax({a}, -1)|{a} @ self.w
F.linear({a}, self.w, self.b)|self.first({a})|self.second({a})|self.norm({a})|F.dropout({a}, 0.3, self.training)|self.drop({a})|torch.where({a} > 0, {a}, {b})
torch.cat([{a}, {b}], 0)[: {a}.shape[0]]|{a}.t().contiguous().t()|{a}.reshape(-1, 4, 2).transpose(1, 2).reshape(-1, 8)|{a}.flip(0)|{a}.cumsum(0) * 0.5|{a}.clone()|{a}.detach()
{a} + torch.rand_like({a})|torch.randn({a}.shape) * {a}|{a}[torch.arange({a}.shape[0])]|{a}.sort().values|{a}.max(1, keepdim=True).values * {b}|{a}.double().float()|{a}.bfloat16().float()
torch.zeros_like({a}) + {a}|torch.arange(8.0) * {a}|{a} / ({a}.norm() + 1)|{a} - {a}.sum(1, keepdim=True)|{a}.abs().sqrt() * 0.1|{a}.view(-1).view(-1, 8)|{a}[:]|{a}.view_as({a})
{a}.mul(self.scale)|{a}.roll(1, 0)|{a}.clamp(-1, 1)|F.silu({a}) * {b}|{a}.unsqueeze(1).expand(-1, 3, -1).sum(1)|{a}.logsumexp(1, keepdim=True) + {b}|{a}.std(0) * {b}|F.relu({a}, inplace=True)
{a}.masked_fill({b} > 0.5, 0.25)|Twice.apply({a})|helper({a}, {b})|checkpoint(helper, {a}, {b}, use_reentrant=False)|{a}.index_select(1, torch.arange(7, -1, -1))|{a}.to(torch.float32)
F.scaled_dot_product_attention({a}[None], {b}[None], {b}[None])[0]|F.embedding(torch.arange({a}.shape[0]) % 8, self.w)|F.mse_loss({a}, {b}) + {a}|{a}.var(1, keepdim=True) * {b}
torch.stack([{a}, {b}]).sum(0)|torch.chunk({a}, 2, 1)[0].repeat(1, 2)|{a}.unfold(1, 4, 4).reshape(-1, 8)|{a}.diagonal().sum() + {b}|torch.einsum("ij,kj->ik", {a}, self.w)|self.tied({a})
torch.addmm(self.b, {a}, self.w)|{a}.pow(2).mean(-1, keepdim=True).add(1e-5).rsqrt() * {a}|torch.cat((-{a}[:, 4:], {a}[:, :4]), -1) * {b}|{a}.argmax(1, keepdim=True) * {b}|{a} * ({b} > 0)
F.cross_entropy({a}, torch.arange({a}.shape[0]) % 8) * {b}|{a}.new_zeros(8) + {b}|{a}.as_strided({a}.shape, {a}.stride())|torch.bernoulli(torch.full_like({a}, 0.5)) * {b}|{a}.tril() + {b}
F.batch_norm({a}, self.mean, self.var, training=self.training)|{a}.type_as({b})|({a}.half() @ self.w.half()).float()|torch.lerp({a}, {b}, 0.3)|{a}.squeeze()|{a}.gather(1, torch.zeros({a}.shape[0], 8, dtype=torch.long))
"""
VALUES = [t for t in VALUES.replace("\n", "|").split("|") if t]
WRITES = """
{a}[:, :4].mul_(2)|{a}[0].zero_()|{a}[:, 1:3] = {b}[:, 1:3]|{a}.add_({b})|{a}.t().add_(1)|{a}.view(-1)[::2].mul_(0.5)|{a}.copy_({b})|{a}[1:].add_({b}[1:])|{a}.fill_(0.5)
self.count.add_(1)|self.mean.mul_(0.9).add_({a}.mean(0).detach(), alpha=0.1)|{a}.clamp_(min=-0.5)|{a}.detach().add_(1)|{a}.uniform_()|{a}.normal_(0, 0.1)|{a}.zero_()|{a} += {b}|{a} *= 0.9
{a}.index_add_(0, torch.zeros(1, dtype=torch.long), {b}[:1])|{a}.scatter_(1, torch.zeros({a}.shape[0], 1, dtype=torch.long), 0.1)|self.count += 1|{a}.data.mul_(1.1)|{a}.masked_fill_({b} > 0.5, 0.0)
torch.add({a}, {b}, out={a}.detach())|{a}.squeeze_()|{a}.t_().t_()|{a}.exp_()|{a}[:, ::3] *= 2|{a}.sub_({a}.mean())|{a}.requires_grad_()|{a}.swapaxes(0, 1)[2] = 0.125
"""
WRITES = [t for t in WRITES.replace("\n", "|").split("|") if t]
RARE = """
self.n += 1|if {a}.sum() > 0: {a} = {a} * 2|{a}.register_hook(lambda g: g * 2) if {a}.requires_grad else None|if {a}.shape[0] == 5: raise ValueError('five rows')|self.flag = not self.flag
{a} = {a} * float({b}.mean())|torch.manual_seed(7)|{a} = {a} * SETTINGS['factor']|{a}.retain_grad() if {a}.requires_grad and not {a}.is_leaf else None|{a} = F.embedding(torch.tensor([1, 9]), self.w) + {a}
self.kept.append(1)|{a} = {a} * len(self.kept)|{a} = {a} * self.n|{a} = {a} if self.flag else {a} * 3|self.second.weight.grad = None|{a}.tag = 3|{a}.grad = None|{a} = inner({a})|raise KeyError('always')
{a} = torch.tensor({a}.tolist())|{a} = {a}.nonzero()[:1].float().sum() + {a}|{a} = {a}[{a}[:, 0] > -9]|{a} = torch.autograd.grad({a}.sum(), self.w, allow_unused=True, retain_graph=True)[0] if {a}.requires_grad else {a}
x.requires_grad_(False)|self.b.requires_grad_(False)|{a} = {a}.numpy(force=True).sum() + {a}|self.last = {a}|self.last = {a}.detach()|del self.kept[:]|{a}.sum().backward() if {a}.requires_grad else None
"""
RARE = [t for t in RARE.replace("\n", "|").split("|") if t]
RETURNS = """
{a}|{a}, {b}|[{a}, {a}]|{{'one': {a}, 'two': ({b}, 3, None)}}|{a}.sum()|{a}[1:]|{a}[1:], {a}|x|x, {a}|x[:, 2:4]|{a}.detach(), {b}|y.t(), {a}|{a}.view(-1), {b}|self.w|{a}, self.mean|None|{a}.shape[0], {a}|{a} > 0|{a}, {a}.mean()
{a}.view(-1, 8), {a}.sum()|self.w.t(), {a}|Pair({a}, {b})|{a}, {a}.t()|{a}.sum(), {b}.sum()|self.b[2:], {a}|{a}.expand(2, -1, -1)|str({a}.dtype), {a}|{a}.unbind(1)|{a}.split(4, 1)|{a}.chunk(2)[0], {a}
"""
RETURNS = [t for t in RETURNS.replace("\n", "|").split("|") if t]

PRELUDE = '''
import collections
import strided as torch
from strided import nn
from strided.utils.checkpoint import checkpoint
F = nn.functional
SETTINGS = {"factor": 1.5}
Pair = collections.namedtuple("Pair", "left right")

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2 + ctx.saved_tensors[0] * 0

def helper(a, b):
    return torch.sigmoid(a) * b + a

def inner(a):
    return a.relu() * 0.5

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8, bias=False)
        self.tied = nn.Linear(8, 8)
        self.tied.weight = self.second.weight
        self.norm, self.drop = nn.LayerNorm(8), nn.Dropout(0.25)
        self.w, self.b = nn.Parameter(torch.randn(8, 8) * 0.3), nn.Parameter(torch.randn(8))
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("var", torch.ones(8))
        self.register_buffer("count", torch.zeros(()))
        self.scale, self.n, self.flag, self.kept = 0.75, 1, True, []
'''


def source(rng) -> str:
    """The text of a module whose forward pass is random, and of the switches it is called with."""
    names, lines, indent = ["x", "y"], [], "        "

    def fill(template, target=None):
        a, b = rng.choice(names), rng.choice(names)
        if target is not None:
            a = target
        return template.format(a=a, b=b)

    def value():
        return fill(rng.choice(VALUES))

    for _ in range(rng.randint(2, 9)):
        kind = rng.random()
        new = f"v{len(names)}"
        if kind < 0.62:
            lines.append(f"{indent}{new} = {value()}")
            names.append(new)
        elif kind < 0.78:
            lines.append(indent + fill(rng.choice(WRITES), rng.choice(names[-2:]) if rng.random() < 0.8 else None))
        elif kind < 0.86:
            block = rng.choice(["torch.no_grad()", "torch.autocast('cpu', dtype=torch.bfloat16)", "torch.enable_grad()", "torch.autocast('cpu', enabled=False)"])
            lines += [f"{indent}with {block}:", f"{indent}    {new} = {value()}"]
            names.append(new)
        elif kind < 0.93:
            lines += [f"{indent}{new} = {fill('{a}')}", f"{indent}for _ in range({rng.randint(1, 3)}):", f"{indent}    {new} = {fill(rng.choice(VALUES), new)}"]
            names.append(new)
        else:
            lines.append(indent + fill(rng.choice(RARE)))
    names = names[-3:] if rng.random() < 0.7 else names
    lines.append(f"{indent}return {fill(rng.choice(RETURNS))}")
    return PRELUDE + "\n    def forward(self, x, y):\n" + "\n".join(lines) + "\n"


# ---- what a caller can see --------------------------------------------------------------------------------------------------------


def tensors(value, found):
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            tensors(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            tensors(item, found)
    return found


def plain(value):
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def bits(t):
    """A tensor's values as a comparable list, rounded where sums may be added in another order."""
    t = t.detach()
    if not t.is_floating_point():
        return t.tolist()
    return t.double()


def close(p, q) -> bool:
    p, q = bits(p), bits(q)
    if isinstance(p, list):
        return p == q
    return bool(torch.allclose(p, q, rtol=2e-4, atol=1e-5, equal_nan=True))


def facts(t):
    """Not the version and the base of a fresh tensor: those tell how often memory was written that nobody had seen."""
    return tuple(t.shape), t.dtype, [stride for size, stride in zip(t.shape, t.stride()) if size != 1], t.requires_grad, t.is_leaf, t.grad_fn is None, t.storage_offset(), type(t).__name__, t.is_inference()


def aliases(ts):
    """Which of the tensors lie in which memory, by the first one there."""
    first: dict = {}
    return [(first.setdefault(t.untyped_storage().data_ptr() if t.numel() else ("empty", k), k), t.data_ptr() - t.untyped_storage().data_ptr() if t.numel() else 0) for k, t in enumerate(ts)]


OPTIMIZERS = [
    lambda p: torch.optim.SGD(p, 0.1), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.Adam(p, 0.01), lambda p: torch.optim.AdamW(p, 0.01, amsgrad=True),
    lambda p: torch.optim.RMSprop(p, 0.01), lambda p: torch.optim.NAdam(p, 0.01),
]  # fmt: skip


class Side:
    """A module and its inputs on one side of the comparison."""

    def __init__(self, text, compiled, rng):
        space: dict = {"__name__": "case"}
        exec(compile(text, "<case>", "exec"), space)
        self.space = space
        torch.manual_seed(3)
        self.net = space["Net"]()
        self.optimizer = rng.choice(OPTIMIZERS)(self.net.parameters())
        whole = rng.random()
        function = self.step(rng) if whole < 0.25 else self.net if whole < 0.8 else self.net.forward
        self.run = torch.compile(function) if compiled else function

    def step(self, rng):
        """A training step around the module."""
        net, optimizer, clip, drop = self.net, self.optimizer, rng.random() < 0.4, rng.random() < 0.8

        def step(x, y):
            optimizer.zero_grad(set_to_none=drop)
            out = net(x, y)
            losses = [t for t in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(t, torch.Tensor) and t.requires_grad and t.is_floating_point()]
            if losses:
                sum(t.square().mean() for t in losses).backward()
            if clip:
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            return [t.detach() for t in losses]

        return step

    def call(self, plan):
        """Everything that a call and its gradients show, as (facts, tensors)."""
        torch.manual_seed(plan["seed"])
        x = torch.randn(plan["rows"], 8, dtype=plan["dtype"])
        if plan["layout"] == "window":
            x = torch.randn(plan["rows"] + 2, 8, dtype=plan["dtype"])[1:-1]
        elif plan["layout"] == "turned":
            x = torch.randn(8, plan["rows"], dtype=plan["dtype"]).t()
        y = torch.randn(plan["rows"], 8, dtype=plan["dtype"])
        x.requires_grad_(plan["grad"][0])
        y.requires_grad_(plan["grad"][1])
        if plan["layout"] == "same":
            y = x
        elif plan["layout"] == "shared":
            y = x.detach().view(-1, 8)
        elif plan["layout"] == "history":
            x = x * 1
        seen: list = []
        failed = False
        given = [x, y, *self.net.parameters(), *self.net.buffers()]
        hooked = []
        if plan["hook"] and x.requires_grad:
            x.register_hook(lambda g: hooked.append(float(g.sum())))
        try:
            with torch.set_grad_enabled(plan["enabled"]):
                out = self.run(x, y)
            found = tensors(out, [])
            seen += ["result", plain(out), [facts(t) for t in found], [next((k for k, g in enumerate(given) if g is t), None) for t in found], aliases([*found, *given])]
            values = [t.detach().clone() for t in found]
            losses = [t for t in found if t.requires_grad and t.is_floating_point() and t.grad_fn is not None]
            if losses:
                kind = plan["backward"]
                if kind == "one":
                    losses = losses[-1:]
                if kind == "write":
                    with torch.no_grad():
                        losses[0].mul_(1.5)
                total = sum((t * torch.linspace(0.5, 1.5, t.numel()).view(t.shape).to(t.dtype)).sum() for t in losses)
                if kind == "grad":
                    wanted = [t for t in given if t.requires_grad]
                    seen.append("grads")
                    for g in torch.autograd.grad(total, wanted, allow_unused=True):
                        seen.append(None if g is None else (facts(g)[:6], facts(g)[7:]))
                        values += [] if g is None else [g]
                elif kind == "second":
                    wanted = [t for t in given if t.requires_grad]
                    first = [g for g in torch.autograd.grad(total, wanted, allow_unused=True, create_graph=True) if g is not None and g.requires_grad]
                    if first:
                        sum(g.sin().sum() for g in first).backward()
                elif kind == "twice":
                    total.backward(retain_graph=True)
                    total.backward()
                elif kind != "none":
                    total.backward()
        except Exception as error:
            values, failed = [], True  # a backward pass may have come some way
            seen += [type(error).__name__, re.sub("is output [0-9]+ of [A-Za-z]+", "", str(error))]
        seen += ["after", [(*facts(t)[3:6], t._version) for t in given], [] if failed else hooked, self.net.n, self.net.flag, len(self.net.kept), torch.get_rng_state().tolist()[:8], float(torch.rand(()))]
        if failed:
            return seen, values + [t.detach().clone() for t in given]
        seen += [[None if t.grad is None else (facts(t.grad)[:6], facts(t.grad)[7:]) for t in given if t.is_leaf]]
        values += [t.detach().clone() for t in given] + [t.grad.clone() for t in given if t.is_leaf and t.grad is not None]
        return seen, values


RECORDED = [0]  # cases in which something was replayed


def change(rng):
    """Something that happens to both sides between calls."""
    return rng.choice([
        lambda s: None, lambda s: None, lambda s: s.net.zero_grad(), lambda s: s.net.eval(), lambda s: s.net.train(), lambda s: s.net.w.requires_grad_(not s.net.w.requires_grad),
        lambda s: s.net.second.requires_grad_(False), lambda s: s.net.second.requires_grad_(True), lambda s: setattr(s.net, "scale", 0.5), lambda s: s.space["SETTINGS"].update(factor=2.5),
        lambda s: setattr(s.net, "b", nn.Parameter(torch.ones(8))), lambda s: s.net.w.data.mul_(0.5), lambda s: setattr(s.net, "first", nn.Linear(8, 8)), lambda s: s.net.first.register_forward_hook(lambda m, a, o: o * 2),
        lambda s: setattr(s.net.w, "data", torch.eye(8)), lambda s: setattr(s.net.drop, "p", 0.5), lambda s: s.net.load_state_dict(copy.deepcopy(s.net.state_dict())), lambda s: s.space.update(helper=lambda a, b: a - b),
        lambda s: setattr(s.net.second, "weight", s.net.w), lambda s: s.net.b.register_hook(lambda g: g * 2) if s.net.b.requires_grad else None, lambda s: setattr(s.net.norm, "eps", 0.1),
        lambda s: s.optimizer.step(), lambda s: s.optimizer.step(), lambda s: s.optimizer.zero_grad(set_to_none=False), lambda s: s.optimizer.param_groups[0].update(lr=0.05),
        lambda s: s.optimizer.load_state_dict(copy.deepcopy(s.optimizer.state_dict())), lambda s: s.optimizer.param_groups[0].update(weight_decay=0.1),
    ])  # fmt: skip


def run(seed: int) -> str | None:
    """What differs between the compiled and the eager side of one random case, or None."""
    rng = random.Random(seed)
    text = source(rng)
    sides = [Side(text, compiled, random.Random(seed)) for compiled in (False, True)]
    base = {"rows": rng.choice([1, 3, 4, 6]), "dtype": rng.choice([torch.float32] * 7 + [torch.float64]), "layout": rng.choice(["plain"] * 5 + ["window", "turned", "same", "shared", "history"]),
            "grad": (rng.random() < 0.5, rng.random() < 0.4), "enabled": rng.random() < 0.85, "backward": rng.choice(["all"] * 4 + ["one", "none", "grad", "second", "twice", "write"]), "hook": rng.random() < 0.1}  # fmt: skip
    happened = []
    for number in range(rng.randint(3, 7)):
        plan = {**base, "seed": number}
        if rng.random() < 0.35:
            name = rng.choice(["rows", "layout", "grad", "enabled", "backward", "hook"])
            plan[name] = {"rows": rng.choice([2, 5]), "layout": rng.choice(["plain", "window", "turned", "same", "shared", "history"]), "grad": (rng.random() < 0.5, rng.random() < 0.5),
                          "enabled": not base["enabled"], "backward": rng.choice(["all", "one", "none", "grad", "second", "twice", "write"]), "hook": not base["hook"]}[name]  # fmt: skip
        if rng.random() < 0.3:
            what = change(rng)
            state = torch.get_rng_state()
            for side in sides:
                torch.manual_seed(11)
                what(side)
            happened.append(f"before call {number}: {what.__code__.co_names}")
            torch.set_rng_state(state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (seen, values), (told, others) = [side.call(plan) for side in sides]
        where = f"seed {seed}, call {number}, {plan}\n{chr(10).join(happened)}\n{text[len(PRELUDE):]}reasons {getattr(sides[1].run, 'compiled', sides[1].run).reasons}"
        if repr(seen) != repr(told):
            return f"{where}\neager    {seen}\ncompiled {told}"
        for k, (p, q) in enumerate(zip(values, others)):
            if not close(p, q):
                return f"{where}\nvalue {k}\neager    {p}\ncompiled {q}"
    RECORDED[0] += getattr(sides[1].run, "compiled", sides[1].run).programs > 0
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=10**9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    end, count, wrong = time.monotonic() + 60 * options.minutes, 0, 0
    while time.monotonic() < end and count < options.cases:
        found = run(options.seed + count)
        count += 1
        if found:
            wrong += 1
            print(found, "\n" + "-" * 100, flush=True)
    print(f"{count} cases, {RECORDED[0]} recorded, {wrong} differ")


if __name__ == "__main__":
    main()
