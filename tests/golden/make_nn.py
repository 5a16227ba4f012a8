"""Writes nn.json: what PyTorch gives for each line of CASES. Run with torch installed; the tests only read the result.

A case: an expression over nn, F and inputs x, y, … drawn by `randn` after manual_seed(1), of the shapes that follow. What is kept: for each
output and each gradient, its shape and three sums (plain, of squares, weighted by position), which no permutation or scaling leaves alike.
"""
import json
import pathlib

CASES = [
    ("nn.Linear(8, 3)(x)", (2, 8)),
    ("nn.Bilinear(8, 5, 3)(x, y)", (2, 8), (2, 5)),
    ("nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))(x)", (2, 8)),
    ("nn.Embedding(10, 4, padding_idx=2)(t.tensor([[1, 2, 9]])) * x.sum()", (1,)),
    ("nn.EmbeddingBag(10, 4, mode='mean')(t.tensor([1, 2, 9, 4]), t.tensor([0, 1])) * x.sum()", (1,)),
    ("nn.RMSNorm(8)(x)", (2, 8)),
    ("nn.GroupNorm(2, 8)(x)", (2, 8, 3)),
    ("nn.BatchNorm1d(8)(x)", (4, 8)),
    ("nn.BatchNorm2d(4).eval()(x)", (2, 4, 3, 3)),
    ("nn.InstanceNorm2d(4, affine=True)(x)", (2, 4, 3, 3)),
    ("nn.LocalResponseNorm(3)(x)", (2, 4, 3, 3)),
    ("nn.Conv1d(4, 6, 3, padding=1)(x)", (2, 4, 9)),
    ("nn.Conv2d(4, 8, 3, padding=1, stride=2, groups=2, dilation=2)(x)", (2, 4, 9, 8)),
    ("nn.Conv2d(4, 8, 3, padding='same', padding_mode='reflect')(x)", (2, 4, 5, 6)),
    ("nn.Conv3d(2, 4, 2)(x)", (1, 2, 4, 4, 4)),
    ("nn.ConvTranspose2d(4, 6, 3, 2, 1, 1)(x)", (2, 4, 5, 5)),
    ("nn.MaxPool2d(3, 2, 1, ceil_mode=True)(x)", (2, 4, 8, 7)),
    ("nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False)(x)", (2, 4, 8, 7)),
    ("nn.AdaptiveAvgPool2d((3, None))(x)", (2, 4, 8, 7)),
    ("nn.AdaptiveMaxPool2d(3)(x)", (2, 4, 8, 7)),
    ("nn.Upsample(scale_factor=2, mode='bilinear')(x)", (2, 4, 3, 3)),
    ("F.interpolate(x, size=(5, 7), mode='bicubic', align_corners=True)", (1, 2, 4, 4)),
    ("F.grid_sample(x, y)", (1, 2, 4, 4), (1, 3, 3, 2)),
    ("nn.PixelShuffle(2)(x)", (1, 8, 3, 3)),
    ("F.unfold(x, 3, padding=1, stride=2)", (1, 2, 6, 6)),
    ("F.fold(x, (5, 5), 3, padding=1)", (1, 18, 25)),
    ("nn.ReplicationPad2d((1, 2, 0, 1))(x)", (1, 2, 3, 3)),
    ("nn.Dropout(0.3)(x)", (8, 8)),
    ("nn.Dropout2d(0.5)(x)", (4, 4, 3, 3)),
    ("nn.AlphaDropout(0.3)(x)", (8, 8)),
    ("nn.RReLU()(x)", (8, 8)),
    ("nn.PReLU(8)(x)", (4, 8)),
    *[(f"F.{name}(x * 3)", (5, 8)) for name in "relu gelu silu mish tanh sigmoid softplus leaky_relu elu celu selu hardswish hardsigmoid hardtanh relu6 softsign tanhshrink softshrink hardshrink logsigmoid glu".split()],
    ("F.gelu(x * 3, approximate='tanh')", (5, 8)),
    ("F.softmax(x, 0) + F.log_softmax(x, -1) + F.softmin(x, 1)", (5, 8)),
    *[(f"F.{name}(x, y)", (3, 4), (3, 4)) for name in "mse_loss l1_loss smooth_l1_loss huber_loss cosine_similarity pairwise_distance".split()],
    ("F.cross_entropy(x, t.tensor([1, 0, 3]), label_smoothing=0.1)", (3, 4)),
    ("F.nll_loss(F.log_softmax(x, 1), t.tensor([1, 0, 3]), reduction='sum')", (3, 4)),
    ("F.binary_cross_entropy(x.sigmoid(), y.sigmoid())", (3, 4), (3, 4)),
    ("F.binary_cross_entropy_with_logits(x, y.sigmoid())", (3, 4), (3, 4)),
    ("F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction='batchmean')", (3, 4), (3, 4)),
    ("F.poisson_nll_loss(x, y.abs(), full=True)", (3, 4), (3, 4)),
    ("F.gaussian_nll_loss(x, y, z.abs() + 0.1)", (3, 4), (3, 4), (3, 4)),
    ("F.cosine_embedding_loss(x, y, t.tensor([1, -1, 1]))", (3, 4), (3, 4)),
    ("F.triplet_margin_loss(x, y, z, swap=True)", (3, 4), (3, 4), (3, 4)),
    ("F.multi_margin_loss(x, t.tensor([1, 0, 3]), p=2)", (3, 4)),
    ("nn.MultiheadAttention(8, 2)(x, y, y)[0]", (5, 2, 8), (4, 2, 8)),
    ("nn.MultiheadAttention(8, 2, add_bias_kv=True)(x, x, x)[1]", (5, 2, 8)),
    ("nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x, attn_mask=t.ones(5, 5).triu(1).bool(), need_weights=False)[0]", (2, 5, 8)),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, norm_first=True), 2, enable_nested_tensor=False)(x)", (5, 2, 8)),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2)(x, y)", (5, 2, 8), (4, 2, 8)),
    ("nn.Transformer(8, 2, 1, 1, 16, 0.0)(x, y)", (5, 2, 8), (4, 2, 8)),
    ("nn.LSTM(8, 6, 2, bidirectional=True)(x)[0]", (5, 2, 8)),
    ("nn.GRU(8, 6, batch_first=True)(x)[1]", (5, 2, 8)),
    ("nn.RNN(8, 6, nonlinearity='relu')(x)[0]", (5, 2, 8)),
    ("nn.LSTMCell(8, 6)(x)[1]", (2, 8)),
    ("nn.utils.weight_norm(nn.Linear(8, 3))(x)", (2, 8)),
    ("nn.init.kaiming_normal_(t.empty(20, 30)) * x", (30,)),
    ("nn.init.trunc_normal_(t.empty(20, 30)) * x", (30,)),
    ("nn.init.xavier_uniform_(t.empty(20, 30)) * x", (30,)),
    ("nn.init.orthogonal_(t.empty(6, 5)) * x", (5,)),
]  # fmt: skip


def summary(value):
    """Shape, sum, sum of squares, and the sum weighted by 1/(1 + position)."""
    flat = value.detach().double().flatten().tolist()
    return [list(value.shape), sum(flat), sum(v * v for v in flat), sum(v / (1 + i) for i, v in enumerate(flat))]


def run(t, nn, F, text, *shapes):
    """The summaries of the result, of the inputs' gradients and of the state of the generator afterwards."""
    t.manual_seed(1)
    inputs = [t.randn(*shape).requires_grad_() for shape in shapes]
    t.manual_seed(2)
    result = eval(text, {"t": t, "nn": nn, "F": F}, dict(zip("xyz", inputs)))
    after = t.rand(1).item()
    weights = t.arange(result.numel()).float().add(1).reciprocal().reshape(result.shape)
    (result * weights).sum().backward()
    return [summary(result), *[summary(x.grad) for x in inputs if x.grad is not None], after]


if __name__ == "__main__":
    import torch

    lines = [json.dumps([text, shapes, run(torch, torch.nn, torch.nn.functional, text, *shapes)]) for text, *shapes in CASES]
    path = pathlib.Path(__file__).parent / "nn.json"
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
