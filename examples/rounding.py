"""Where digits go: run `strided annotate --rounding examples/rounding.py` to see it beside each line."""
import torch
import torch.nn.functional as F

# Sums of numbers that nearly cancel keep the rounding of their terms, and little else.
a = torch.tensor([1.0000001, 2.0, 3.0])
difference = a - torch.tensor([1.0, 2.0, 1.0])

# A narrower format: too large, too small, fewer digits.
half = torch.tensor([70000.0, 1.0, 1e-9, 0.1]).to(torch.float16)

# exp leaves float32's range on both sides.
powers = torch.tensor([-50.0, -104.0, 89.0]).exp()

# Probabilities below 2^-25 are 0 in float16.
p = F.softmax(torch.tensor([0.0, -20.0, -10.0, -8.0], dtype=torch.float16), dim=0)

# Weights in bfloat16 stand still: a step below half a unit in the last place changes nothing.
w = torch.ones(4, dtype=torch.bfloat16)
for _ in range(3):
    w += 0.001

# The same matrix product from operands with 10 bits of mantissa.
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
y = torch.randn(8, 8) @ torch.randn(8, 8)
