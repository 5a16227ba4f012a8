"""A small program as users write it: a type checker must accept it, and know the types it reveals."""
import strided as torch
import strided.nn.functional as F
from strided import nn, optim


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h: torch.Tensor = F.gelu(self.up(x))
        return self.scale * self.down(h) + x


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = (q @ k.transpose(-2, -1) / q.size(-1) ** 0.5).masked_fill(torch.ones(2, 2).tril() == 0, float("-inf"))
    return weights.softmax(dim=-1) @ v


def train(steps: int, device: torch.device, dtype: torch.dtype = torch.float32) -> float:
    torch.manual_seed(0)
    model = Net(4)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    x = torch.randn(8, 4, device=device, dtype=dtype)
    loss = torch.zeros(())
    for _ in range(steps):
        loss = (model(x) - x.flip(0)).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return float(loss.item())


def names() -> None:
    x = torch.tensor([[3.0, 1.0], [2.0, 4.0]], requires_grad=True)
    rows, columns = x.shape
    values, indices = x.max(dim=-1)
    best: torch.Tensor = x.topk(1, dim=-1).values.squeeze(-1)
    parts: tuple[torch.Tensor, ...] = x.split(1, dim=0)
    step: int = x.stride(0)
    same: bool = torch.equal(x, x)
    with torch.no_grad():
        x.add_(1).clamp_(min=0)
        x[0, :] = 5
    if x.grad is not None:
        print(x.grad.norm())
    inverse: torch.Tensor = torch.linalg.inv(x.detach())
    sign, logabsdet = torch.linalg.slogdet(inverse)
    print(rows, columns, values, indices, best, len(parts), step, same, logabsdet, sign, torch.special.expit(x), -x, x.T, x.detach().to(torch.float64).numpy(), x > 2)


if __name__ == "__main__":
    print(train(20, torch.device("cpu")))
    print(attention(torch.randn(2, 4), torch.randn(2, 4), torch.randn(2, 4)).shape)
    names()
