"""A small GPT trained on both libraries from the same seed: the losses must follow each other, with dropout, clipping, schedule and autocast."""
import math

import pytest

torch = pytest.importorskip("torch")
import strided
import strided.nn
import strided.optim


def gpt(t, vocabulary=17, width=32, heads=4, layers=2, block=16, dropout=0.1):
    nn, F = t.nn, t.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width, bias=False), nn.RMSNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

        def forward(self, x):
            B, T, C = x.shape
            q, k, v = (y.view(B, T, heads, C // heads).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(C, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # [B, n_h, T, d_h]
            x = x + self.proj(y.transpose(1, 2).contiguous().view(B, T, C))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(block, width)
            self.drop = nn.Dropout(dropout)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.tokens.weight
            self.apply(self.start)

        def start(self, module):
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, 0.0, 0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

        def forward(self, tokens, targets):
            x = self.drop(self.tokens(tokens) + self.places(t.arange(tokens.size(1))))
            for block_ in self.blocks:
                x = block_(x)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.view(-1, vocabulary), targets.reshape(-1))

    return GPT()


def train(t, steps=12, low=None):
    t.manual_seed(0)
    model = gpt(t)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = t.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95))
    schedule = t.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 4) * 0.5 * (1 + math.cos(math.pi * i / steps)))
    out = []
    for _ in range(steps):
        data = t.randint(0, 17, (8, 1)) + t.arange(17)  # [8, 17]: counting, so that there is something to learn
        data = data % 17
        optimizer.zero_grad(set_to_none=True)
        with t.autocast("cpu", dtype=t.bfloat16, enabled=low is not None):
            loss = model(data[:, :-1], data[:, 1:])
        loss.backward()
        norm = t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        out.append((loss.item(), norm.item()))
    return out, model


def test_losses_follow_each_other():
    mine, model = train(strided)
    theirs, other = train(torch)
    for (a, x), (b, y) in zip(mine, theirs):
        assert a == pytest.approx(b, rel=1e-4) and x == pytest.approx(y, rel=1e-3)
    assert mine[-1][0] < 0.8 * mine[0][0]
    assert list(model.state_dict()) == list(other.state_dict())


def test_losses_under_autocast():
    mine, theirs = train(strided, low=True)[0], train(torch, low=True)[0]
    for (a, _), (b, _) in zip(mine, theirs):
        assert a == pytest.approx(b, rel=3e-2)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("lengths", [[5, 3, 2], [2, 5, 3]])
def test_dropout_between_layers_of_packed_sequences(kind, lengths):
    results = []
    for t in (strided, torch):
        t.manual_seed(0)
        net = getattr(t.nn, kind)(3, 4, num_layers=3, bidirectional=True, dropout=0.4)
        x = t.randn(5, 3, 3, requires_grad=True)
        out, _ = net(t.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False))
        out.data.pow(2).sum().backward()
        results.append([v.detach().numpy().tolist() for v in (out.data, x.grad, net.weight_hh_l1.grad)])
    for a, b in zip(*results):
        assert sum(a, []) == pytest.approx(sum(b, []), abs=1e-5) if not isinstance(a[0][0], list) else sum(sum(a, []), []) == pytest.approx(sum(sum(b, []), []), abs=1e-5)
