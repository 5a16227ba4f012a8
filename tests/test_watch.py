"""`strided run --watch`: each planted fault is found, named by its line, and a healthy run is left in peace."""

import re
import subprocess
import sys

import pytest

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randn(64)
def train(net, loss_of, steps=12, lr=0.01, parameters=None, clear=True):
    optimizer = torch.optim.SGD(parameters or net.parameters(), lr)
    for _ in range(steps):
        if clear:
            optimizer.zero_grad()
        loss = loss_of(net)
        loss.backward()
        optimizer.step()
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
"""

# name: (script behind HEAD, with the line at fault marked, what the report must say)
FAULTS = {
    "log of zero": (
        """
def loss_of(net):
    p = net(x).squeeze(-1).relu()
    return (torch.log(p) * p).mean()  # here
train(net, loss_of)
""",
        ["loss became nan", "An infinity|an infinity", "log", "clamp_min"],
    ),
    "nothing by nothing": (
        """
def loss_of(net):
    h = net(x).squeeze(-1)
    spread = h - h
    return (spread / spread.std()).mean()  # here
train(net, loss_of)
""",
        ["loss became nan", "div", "divisor"],
    ),
    "overflow": (
        """
def loss_of(net):
    h = (net(x) * 1000).exp()  # here
    return (h / h.sum()).mean()
train(net, loss_of)
""",
        ["not finite", "exp", "overflows"],
    ),
    "root at zero": (
        """
def loss_of(net):
    h = (net(x) * 0).square().sum()
    return torch.sqrt(h)  # here
train(net, loss_of)
""",
        ["gradient of .* stopped being finite", "backward pass", "Sqrt", "derivative at 0"],
    ),
    "nan in the data": (
        """
x[3, 2] = float("nan")
def loss_of(net):
    return F.mse_loss(net(x).squeeze(-1), y)
train(net, loss_of)
""",
        ["loss became nan", "isnan|data"],
    ),
    "dead units": (
        """
with torch.no_grad():
    net[0].bias -= 100
def loss_of(net):
    return F.mse_loss(net(x).squeeze(-1), y)  # here
train(net, loss_of, steps=40)
""",
        ["32 of 32 units", "leaky_relu"],
    ),
    "vanishing": (
        """
deep = nn.Sequential(*[m for _ in range(24) for m in (nn.Linear(8, 8), nn.Sigmoid())], nn.Linear(8, 1))
def loss_of(net):
    return F.mse_loss(net(x).squeeze(-1), y)
train(deep, loss_of)
""",
        ["vanishing gradient", r"0\.weight", "residual"],
    ),
    "exploding": (
        """
deep = nn.Sequential(*[nn.Linear(8, 8) for _ in range(30)], nn.Linear(8, 1))
with torch.no_grad():
    for layer in deep:
        layer.weight *= 3
def loss_of(net):
    return F.mse_loss(net(x).squeeze(-1), y)
train(deep, loss_of, steps=4, lr=1e-38)
""",
        ["exploding gradient", "normalise|Clip"],
    ),
    "both sides grown": (
        """
def loss_of(net):
    return ((net(x) - y) ** 2).mean()  # here
train(net, loss_of)
""",
        [r"\[64, 1\] and \[64\]", r"\[64, 64\]", "squeeze"],
    ),
    "unused parameter": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(8, 1), nn.Linear(8, 1)
    def forward(self, x):
        return self.used(x)
def loss_of(net):
    return F.mse_loss(net(x).squeeze(-1), y)
train(Net(), loss_of)
""",
        ["no gradient", r"unused\.weight, unused\.bias never received"],
    ),
    "missing from the optimiser": (
        """
def loss_of(net):
    return F.mse_loss(net(x).squeeze(-1), y)
train(net, loss_of, parameters=list(net[2].parameters()))
""",
        ["not in the optimiser", r"0\.weight, 0\.bias requires grad"],
    ),
    "gradients not cleared": (
        """
def loss_of(net):
    return F.mse_loss(net(x).squeeze(-1), y)
train(net, loss_of, clear=False)
""",
        ["gradients kept", "zero_grad"],
    ),
    "diverging": (
        """
def loss_of(net):
    return F.mse_loss(net(x).squeeze(-1), y)
train(net, loss_of, steps=60, lr=30.0)
""",
        ["not finite|exploding", "learning rate"],
    ),
}

HEALTHY = {
    "regression": """
def loss_of(net):
    return F.mse_loss(net(x).squeeze(-1), y)
train(net, loss_of, steps=60)
""",
    "classifier with masks, dropout and batch norm": """
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(), nn.Linear(144, 10))
images, labels = torch.randn(16, 1, 8, 8), torch.randint(0, 10, (16,))
train(net, lambda net: F.cross_entropy(net(images), labels), steps=40, lr=0.05)
""",
    "attention with a mask of infinities": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 1)
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-2, -1)
        scores = scores.masked_fill(torch.ones(16, 16).triu(1) == 1, float("-inf"))
        return self.out(scores.softmax(-1) @ v)
tokens, target = torch.randn(4, 16, 8), torch.randn(4, 16, 1)
train(Net(), lambda net: F.mse_loss(net(tokens), target), steps=30)
""",
    "gradients of several passes added up": """
optimizer = torch.optim.Adam(net.parameters())
for step in range(10):
    for part in range(3):
        F.mse_loss(net(x).squeeze(-1), y).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
""",
    "two networks against each other": """
G, D = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(), nn.Linear(8, 1))
g, d, real = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters()), x
for step in range(30):
    d.zero_grad()
    (F.softplus(-D(real)).mean() + F.softplus(D(G(torch.randn(64, 4)).detach())).mean()).backward()
    d.step()
    g.zero_grad()
    F.softplus(-D(G(torch.randn(64, 4)))).mean().backward()  # leaves gradients in D, which D's next turn clears
    g.step()
""",
    "closures, frozen layers, tied weights": """
point = torch.randn(3, requires_grad=True)
search = torch.optim.LBFGS([point], max_iter=4)
def closure():
    search.zero_grad()
    loss = (point - 1).square().sum()
    loss.backward()
    return loss
for step in range(4):
    search.step(closure)
net[0].requires_grad_(False)
train(net, lambda net: F.mse_loss(net(x).squeeze(-1), y), parameters=net[2].parameters())
table, back = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
back.weight = table.weight
words = torch.tensor([1, 2])
train(nn.Sequential(table, back), lambda net: F.cross_entropy(net(words), words))
""",
    "odd objects, complex parameters, threads, a scaler, an optimiser a task": """
import threading, weakref
class Gone: pass
gone = Gone(); proxies = [weakref.proxy(gone), object.__new__(nn.Linear)]; del gone
w = torch.randn(3, dtype=torch.complex64, requires_grad=True)
optimizer = torch.optim.SGD([w], 0.1)
for step in range(4):
    optimizer.zero_grad()
    (w * w.conj()).sum().backward(torch.ones((), dtype=torch.complex64))
    optimizer.step()
threads = [threading.Thread(target=train, args=(nn.Linear(8, 1), lambda net: net(x).square().mean())) for _ in range(3)]
for thread in threads: thread.start()
scaler, optimizer = torch.amp.GradScaler("cpu", init_scale=2.0**40), torch.optim.SGD(net.parameters(), 0.01)
for step in range(24):  # the first ones overflow, and are skipped
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = net(x).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
for thread in threads: thread.join()
for task in range(40):
    train(nn.Linear(8, 1), lambda net: net(x).square().mean(), steps=1)
""",
}


def watched(tmp_path, body, *words):
    path = tmp_path / "train.py"
    path.write_text(HEAD + body)
    done = subprocess.run([sys.executable, "-m", "strided", "run", "--watch", *words, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name, tmp_path):
    body, expected = FAULTS[name]
    report = watched(tmp_path, body)
    for pattern in expected:
        assert re.search(pattern, report), f"{pattern!r} is not in\n{report}"
    lines = [n for n, line in enumerate((HEAD + body).split("\n"), 1) if line.endswith("# here")]
    if lines and name != "dead units":
        assert f"train.py, line {lines[0]}" in report, report


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_runs_are_left_in_peace(name, tmp_path):
    report = watched(tmp_path, HEALTHY[name])
    assert report.count("\n") == 1 and "Nothing to report." in report, report


def test_the_page_has_the_curves(tmp_path):
    page = tmp_path / "run.html"
    watched(tmp_path, HEALTHY["regression"], "--html", str(page))
    text = page.read_text()
    assert text.count("<polyline") == 2 + 4 and "0.weight" in text and "http" not in text


def test_results_with_infinities_are_not_kept_alive():
    import strided as torch
    from strided.lens.watch import Watch

    with Watch() as watch:
        for _ in range(100):
            torch.randn(50, 50).masked_fill(torch.ones(50, 50) > 0, -float("inf"))
            assert len(watch.marks) <= 64
        for _ in range(5):
            torch.full((3000, 3000), float("inf")) * 2
    assert sum(mem.nbytes for mem, _ in watch.marks.values()) <= 64 << 20


def lines_of(watch):
    return None if watch.first is None or watch.first.place is None else watch.first.place.line


def test_the_line_is_right_at_a_late_step_and_after_a_turn():
    """Lines are remembered by what a step called before them: another way through the step must not take the first one's."""
    import sys as system

    import strided as torch
    from strided.lens.watch import Watch
    from strided.nn import functional as F

    torch.manual_seed(0)
    net = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    x = torch.randn(5, 4)
    here = system._getframe().f_lineno
    with Watch() as watch:
        for step in range(60):
            optimizer.zero_grad()
            h = net(x)
            if step % 2:
                h = F.relu(h)  # here + 6
            if step == 45:
                loss = F.softplus(h).sub(F.softplus(h)).log().sum()  # here + 8: log of zero, -inf; its gradient is infinite
            else:
                loss = F.relu(h).mean()
            loss.backward()
            optimizer.step()
    assert watch.bad_loss == (46, -float("inf"))
    assert watch.loss_mark.place.line == here + 8 and watch.loss_mark.op == "log"


def test_a_gradient_that_a_node_made_is_named_by_its_line():
    import sys as system

    import strided as torch
    from strided.lens.watch import Watch

    w = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([w], 0.1)
    here = system._getframe().f_lineno
    with Watch() as watch:
        for step in range(30):
            optimizer.zero_grad()
            loss = (w * w).sum().sqrt() if step == 27 else ((w * 0) ** 2).sum()  # here + 4
            loss.backward()
            optimizer.step()
    assert watch.bad_gradient[0] == 28 and watch.bad_gradient[3] == 28
    origin = watch.bad_gradient[2]
    while origin.cause is not None:
        origin = origin.cause
    assert origin.phase == "backward" and origin.op == "SqrtBackward0" and origin.place.line == here + 4


def test_parameters_that_come_later_are_asked_for_gradients_too():
    import strided as torch
    from strided.lens.watch import Watch
    from strided.lens.watch_findings import findings

    a, b = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    optimizer = torch.optim.SGD([a], 0.1)
    with Watch() as watch:
        for step in range(8):
            if step == 3:
                optimizer.add_param_group({"params": [b]})
            optimizer.zero_grad()
            (a.sum() + (b.sum() if step == 7 else 0)).backward()
            optimizer.step()
        assert not [f for f in findings(watch) if f.kind == "no gradient"]
        assert {id(a), id(b)} <= watch.received


def test_operators_are_seen_again_after_a_pass_that_fails():
    import strided as torch
    from strided import dispatch
    from strided.lens.watch import Watch

    x = torch.ones(2, requires_grad=True)
    users = dispatch.HOOKS.users
    with Watch() as watch:
        y = x.exp()
        y.mul_(2)
        for _ in range(2):
            with pytest.raises(RuntimeError):
                y.sum().backward()
            with pytest.raises(RuntimeError):
                torch.ones(2).sum().backward()
        torch.zeros(1).log().mul(0)
        assert watch.first is not None
    assert dispatch.HOOKS.users == users
