"""nn against PyTorch: every function and module with the same inputs, seeds and gradients."""
import warnings

import pytest

torch = pytest.importorskip("torch")
import strided
import strided.nn.functional

TF, F = torch.nn.functional, strided.nn.functional
warnings.simplefilter("ignore")


def ours(value):
    """A torch value as one of ours."""
    if isinstance(value, torch.Tensor):
        if value.dtype is torch.bfloat16:
            return strided.from_numpy(value.detach().float().numpy().copy()).to(strided.bfloat16)
        return strided.from_numpy(value.detach().numpy().copy()).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(ours(v) for v in value)
    return value


def leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in leaves(v)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return [value] if isinstance(value, (torch.Tensor, strided.Tensor)) else []


def same(a, b, rtol=1e-4, atol=1e-5):
    a, b = leaves(a), leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert str(x.dtype) == str(y.dtype) and tuple(x.shape) == tuple(y.shape)
        torch.testing.assert_close(torch.from_numpy(x.detach().float().numpy().copy()), y.detach().float(), rtol=rtol, atol=atol)


def compare(name, *args, module=(F, TF), **kwargs):
    """The function `name` of both libraries: results, and the gradients of every floating-point input."""
    theirs = [a.clone().requires_grad_(a.is_floating_point()) if isinstance(a, torch.Tensor) else a for a in args]
    mine = [ours(a) for a in theirs]
    r1 = getattr(module[0], name)(*mine, **{k: ours(v) for k, v in kwargs.items()})
    r2 = getattr(module[1], name)(*theirs, **kwargs)
    same(r1, r2)
    first, second = leaves(r1)[0], leaves(r2)[0]
    assert first.requires_grad == second.requires_grad
    if first.requires_grad:
        g = torch.randn_like(second)
        first.backward(ours(g))
        second.backward(g)
        same([a.grad for a in mine if getattr(a, "grad", None) is not None], [a.grad for a in theirs if getattr(a, "grad", None) is not None], 1e-3, 1e-4)


def R(*shape):
    return torch.randn(*shape)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


SIZES = {1: (9,), 2: (9, 8), 3: (6, 5, 7)}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("k,s,p,d,g", [(3, 1, 0, 1, 1), (3, 2, 1, 1, 2), (2, 1, 1, 2, 1), (3, 2, 1, 1, 4), (1, 1, 0, 1, 1)])
def test_convolutions(n, k, s, p, d, g):
    x = R(2, 4, *SIZES[n])
    compare(f"conv{n}d", x, R(8, 4 // g, *[k] * n), R(8), s, p, d, g)
    compare(f"conv_transpose{n}d", x, R(4, 8 // g, *[k] * n), R(8), s, p, s - 1, g, d)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_same_padding(n):
    compare(f"conv{n}d", R(4, *SIZES[n]), R(8, 4, *[4] * n), R(8), 1, "same", 1)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("k,s,p,c", [(2, None, 0, False), (3, 2, 1, False), (3, 2, 1, True), (2, 3, 1, True)])
def test_pooling(n, k, s, p, c):
    x = R(2, 3, *SIZES[n])
    compare(f"max_pool{n}d", x, k, s, p, ceil_mode=c)
    compare(f"max_pool{n}d", x, k, s, p, ceil_mode=c, return_indices=True)
    compare(f"avg_pool{n}d", x, k, s, p, c, True)
    compare(f"avg_pool{n}d", x, k, s, p, c, False)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("out", [1, 3, 5, 4])
def test_adaptive_pooling(n, out):
    compare(f"adaptive_avg_pool{n}d", R(2, 3, *SIZES[n]), out)
    compare(f"adaptive_max_pool{n}d", R(2, 3, *SIZES[n]), out, return_indices=True)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
def test_pad(n, mode):
    compare("pad", R(2, 3, *SIZES[n]), [1, 2] * n, mode=mode)


def test_pad_crops():
    compare("pad", R(2, 3, 5), [-1, 2, 0, -1], value=3.0)


MODES = {1: ["nearest", "linear", "area", "nearest-exact"], 2: ["nearest", "bilinear", "bicubic", "area", "nearest-exact"], 3: ["nearest", "trilinear", "area"]}


@pytest.mark.parametrize("n,mode", [(n, m) for n, modes in MODES.items() for m in modes])
def test_interpolate(n, mode):
    sizes = SIZES[n]
    for how in ({"size": tuple(s + 3 for s in sizes)}, {"size": tuple(s - 2 for s in sizes)}, {"scale_factor": 2.0}, {"scale_factor": 1.7}):
        for align in (None,) if mode in ("nearest", "area", "nearest-exact") else (True, False):
            compare("interpolate", R(2, 3, *sizes), mode=mode, align_corners=align, **how)


def test_images():
    for a in (((3, 2), 1, 1, 2), ((2, 2), 2, 0, 1)):
        compare("unfold", R(2, 3, 9, 8), *a)
        columns = TF.unfold(R(2, 3, 9, 8), *a)
        compare("fold", columns, (9, 8), *a)
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for align in (True, False):
                compare("grid_sample", R(2, 3, 6, 7), R(2, 4, 5, 2) * 1.5, mode=mode, padding_mode=padding, align_corners=align)
    for align in (True, False):
        compare("affine_grid", R(2, 2, 3), (2, 3, 4, 5), align_corners=align)
    compare("pixel_shuffle", R(2, 12, 3, 4), 2)
    compare("pixel_unshuffle", R(2, 3, 6, 4), 2)
    compare("channel_shuffle", R(2, 12, 3, 4), 3)
    compare("lp_pool2d", R(2, 3, 8, 8).abs(), 2.0, 3, 2)


def test_normalisation():
    compare("group_norm", R(2, 6, 3, 4), 3, R(6), R(6))
    compare("instance_norm", R(2, 6, 3, 4), None, None, R(6), R(6))
    compare("local_response_norm", R(2, 6, 3, 4), 3)
    compare("layer_norm", R(2, 6, 4), (6, 4), R(6, 4), R(6, 4))
    compare("rms_norm", R(2, 6, 4), (4,), R(4))
    compare("normalize", R(3, 4))
    for training in (True, False):
        mean, var = R(6), R(6).abs()
        mine = ours(mean), ours(var)
        x, w, b = R(4, 6, 3), R(6), R(6)
        same(F.batch_norm(ours(x), *mine, ours(w), ours(b), training), TF.batch_norm(x, mean, var, w, b, training))
        same(mine, (mean, var))
        compare("batch_norm", x, None, None, w, b, True)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses(reduction):
    kw = {"reduction": reduction}
    x, t, signs = R(3, 4), torch.rand(3, 4), torch.tensor([1, -1, 1])
    w, pw = R(3, 4).abs(), R(4).abs()
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        compare(name, x, R(3, 4), **kw)
    compare("smooth_l1_loss", x, R(3, 4), beta=0.3, **kw)
    compare("huber_loss", x, R(3, 4), delta=0.3, **kw)
    compare("binary_cross_entropy", torch.rand(3, 4), t, weight=w, **kw)
    compare("binary_cross_entropy_with_logits", x * 5, t, weight=w, pos_weight=pw, **kw)
    for log in (True, False):
        compare("kl_div", x, t, log_target=log, **kw)
        compare("poisson_nll_loss", x.abs(), x.abs() * 3, log_input=log, full=True, **kw)
    compare("gaussian_nll_loss", x, R(3, 4), w, full=True, **kw)
    compare("cosine_embedding_loss", x, R(3, 4), signs, margin=0.1, **kw)
    compare("margin_ranking_loss", R(3), R(3), signs, margin=0.1, **kw)
    compare("hinge_embedding_loss", R(3), signs, margin=0.5, **kw)
    compare("soft_margin_loss", R(3), signs, **kw)
    compare("multilabel_soft_margin_loss", x, t, pw, **kw)
    classes = torch.tensor([1, 0, 3])
    for p in (1, 2):
        compare("multi_margin_loss", x, classes, p, 0.8, **kw)
    for swap in (True, False):
        compare("triplet_margin_loss", x, R(3, 4), R(3, 4), swap=swap, **kw)
    compare("cross_entropy", x, classes, weight=pw, label_smoothing=0.1, **kw)
    compare("cross_entropy", R(2, 4, 5), torch.randint(0, 4, (2, 5)), ignore_index=2, **kw)
    compare("cross_entropy", x, t, **kw)
    compare("nll_loss", x, classes, weight=pw, **kw)


def test_distances_and_lookups():
    compare("kl_div", R(3, 4), torch.rand(3, 4), reduction="batchmean")
    compare("cosine_similarity", R(3, 4), R(3, 4))
    compare("pairwise_distance", R(3, 4), R(3, 4))
    compare("pdist", R(5, 4))
    index, offsets = torch.randint(0, 10, (12,)), torch.tensor([0, 3, 3, 7])
    for mode in ("sum", "mean", "max"):
        compare("embedding_bag", index, R(10, 5), offsets, mode=mode)
        # The last offset ends the last bag. Where it falls short of the end, PyTorch counts what lies behind it in some modes and not in others.
        compare("embedding_bag", index, R(10, 5), torch.tensor([0, 3, 3, 12]), mode=mode, include_last_offset=True)
        compare("embedding_bag", index, R(10, 5), offsets, mode=mode, padding_idx=3)
        compare("embedding_bag", index.view(3, 4), R(10, 5), mode=mode)
    compare("embedding_bag", index, R(10, 5), offsets, mode="sum", per_sample_weights=torch.rand(12))
    compare("embedding", index, R(10, 5), padding_idx=3)
    compare("one_hot", index, 10)


@pytest.mark.parametrize(
    "name", "relu gelu silu mish tanh sigmoid softplus leaky_relu elu celu selu hardswish hardsigmoid hardtanh relu6 softsign tanhshrink softshrink hardshrink logsigmoid glu".split()
)
def test_activations(name):
    compare(name, R(5, 8) * 3)


def test_more_activations():
    compare("gelu", R(5, 8) * 3, approximate="tanh")
    compare("threshold", R(5, 8), 0.2, 3.0)
    compare("prelu", R(5, 8), R(8))
    for name in ("softmax", "log_softmax", "softmin"):
        compare(name, R(5, 8), -1)
        compare(name, R(5, 8), 0)


# ---- modules ----------------------------------------------------------------------------------------------------------


def module(make, *inputs, **kwargs):
    """The same module in both: repr, initial parameters for a seed, outputs in both modes, gradients."""
    torch.manual_seed(3)
    strided.manual_seed(3)
    a, b = make(strided.nn), make(torch.nn)
    assert repr(a) == repr(b)
    sa, sb = a.state_dict(), b.state_dict()
    assert list(sa) == list(sb)
    same(sa, sb, 0, 1e-7)
    for mode in (True, False):
        a.train(mode)
        b.train(mode)
        torch.manual_seed(1)
        strided.manual_seed(1)
        mine = a(*ours(inputs), **{k: ours(v) for k, v in kwargs.items()})
        theirs = b(*inputs, **kwargs)
        same(mine, theirs)
    first, second = leaves(mine)[0], leaves(theirs)[0]
    if second.requires_grad:
        g = torch.randn_like(second)
        first.backward(ours(g))
        second.backward(g)
        for (name, p), q in zip(a.named_parameters(), b.parameters()):
            assert (p.grad is None) == (q.grad is None), name
            if p.grad is not None:
                same(p.grad, q.grad, 1e-3, 1e-4)


FLAT = [
    lambda n: n.Linear(8, 3),
    lambda n: n.Linear(8, 3, bias=False),
    lambda n: n.ReLU(True),
    lambda n: n.GELU(),
    lambda n: n.GELU("tanh"),
    lambda n: n.SiLU(),
    lambda n: n.Mish(),
    lambda n: n.Softplus(),
    lambda n: n.LeakyReLU(0.2),
    lambda n: n.ELU(),
    lambda n: n.CELU(),
    lambda n: n.SELU(),
    lambda n: n.Hardswish(),
    lambda n: n.Hardsigmoid(),
    lambda n: n.Hardtanh(),
    lambda n: n.ReLU6(),
    lambda n: n.PReLU(),
    lambda n: n.PReLU(8),
    lambda n: n.Softmax(-1),
    lambda n: n.LogSoftmax(-1),
    lambda n: n.GLU(),
    lambda n: n.Threshold(0.1, 2.0),
    lambda n: n.Softshrink(),
    lambda n: n.LayerNorm(8),
    lambda n: n.LayerNorm(8, bias=False),
    lambda n: n.LayerNorm((8,), elementwise_affine=False),
    lambda n: n.RMSNorm(8),
    lambda n: n.BatchNorm1d(8),
    lambda n: n.BatchNorm1d(8, track_running_stats=False),
    lambda n: n.BatchNorm1d(8, momentum=None),
    lambda n: n.GroupNorm(2, 8),
    lambda n: n.Dropout(0.3),
    lambda n: n.AlphaDropout(0.3),
    lambda n: n.RReLU(),
    lambda n: n.Identity(3),
    lambda n: n.Flatten(),
    lambda n: n.Unflatten(1, (2, 4)),
    lambda n: n.Sequential(n.Linear(8, 8), n.Sequential(n.ReLU(), n.Linear(8, 2))),
]
IMAGES = [
    lambda n: n.Conv2d(4, 8, 3),
    lambda n: n.Conv2d(4, 8, 3, padding=1, stride=2, groups=2, bias=False, dilation=2),
    lambda n: n.Conv2d(4, 8, 3, padding="same", padding_mode="circular"),
    lambda n: n.ConvTranspose2d(4, 6, 3, 2, 1, 1),
    lambda n: n.MaxPool2d(2),
    lambda n: n.AvgPool2d(2),
    lambda n: n.AdaptiveAvgPool2d((None, 3)),
    lambda n: n.AdaptiveMaxPool2d(2),
    lambda n: n.Upsample(scale_factor=2),
    lambda n: n.Upsample(size=(5, 5), mode="bilinear"),
    lambda n: n.BatchNorm2d(4),
    lambda n: n.InstanceNorm2d(4),
    lambda n: n.InstanceNorm2d(4, affine=True, track_running_stats=True),
    lambda n: n.ZeroPad2d(1),
    lambda n: n.ReflectionPad2d((1, 2, 0, 1)),
    lambda n: n.ConstantPad2d(1, 3.5),
    lambda n: n.PixelShuffle(2),
    lambda n: n.Unfold(3),
    lambda n: n.Dropout2d(0.5),
    lambda n: n.Softmax2d(),
    lambda n: n.LocalResponseNorm(3),
    lambda n: n.LPPool2d(2, 2),
    lambda n: n.ChannelShuffle(2),
]


@pytest.mark.parametrize("make", FLAT)
def test_flat_modules(make):
    module(make, R(2, 8))


@pytest.mark.parametrize("make", IMAGES)
def test_image_modules(make):
    module(make, R(2, 4, 8, 8).abs())


def test_other_modules():
    module(lambda n: n.Bilinear(8, 8, 3), R(2, 8), R(2, 8))
    module(lambda n: n.Embedding(10, 4, padding_idx=2), torch.tensor([[1, 2, 9]]))
    module(lambda n: n.EmbeddingBag(10, 4), torch.tensor([[1, 2, 9]]))
    module(lambda n: n.Conv1d(8, 4, 3), R(2, 8, 9))
    module(lambda n: n.Conv3d(2, 4, 2), R(1, 2, 4, 4, 4))
    module(lambda n: n.Dropout1d(), R(2, 8, 9))
    module(lambda n: n.AvgPool1d(2), R(2, 8, 9))


def test_less_common_modules():
    x, indices = TF.max_pool2d(R(2, 4, 8, 8), 2, return_indices=True)
    module(lambda n: n.MaxUnpool2d(2), x, indices)
    module(lambda n: n.LPPool3d(2, 2), R(1, 2, 4, 4, 4).abs())
    module(lambda n: n.MultiLabelMarginLoss(), R(2, 5), torch.tensor([[3, 0, -1, 1, 2], [0, 1, 2, -1, -1]]))
    scores, targets = R(12, 3, 5).log_softmax(2), torch.tensor([[1, 2, 2], [3, 3, 0], [4, 1, 2]])
    for reduction in ("mean", "sum", "none"):
        module(lambda n: n.CTCLoss(reduction=reduction), scores, targets, torch.tensor([12, 9, 12]), torch.tensor([3, 2, 1]))
    compare("linear_cross_entropy", R(4, 6), R(5, 6), torch.tensor([0, 4, 1, 2]))
    for padding in ("zeros", "border", "reflection"):
        compare("grid_sample", R(2, 3, 6, 7), R(2, 4, 5, 2), mode="bicubic", padding_mode=padding, align_corners=False)
        compare("grid_sample", R(2, 3, 4, 6, 7), R(2, 4, 5, 2, 3), padding_mode=padding, align_corners=True)
    compare("pad", R(1, 3, 4, 4), (-1, 1, -2, 1), mode="circular")


ATTENTION = [{}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"bias": False}, {"kdim": 6, "vdim": 5}, {"batch_first": True}, {"dropout": 0.3}]


@pytest.mark.parametrize("options", ATTENTION)
def test_multihead_attention(options):
    q, k, v = R(5, 2, 8), R(5, 2, options.get("kdim", 8)), R(5, 2, options.get("vdim", 8))
    for weights in (True, False):
        if options.get("dropout") and not weights:
            continue  # the fused form draws in another order
        module(lambda n: n.MultiheadAttention(8, 2, **options), q, k, v, need_weights=weights)
        if "kdim" not in options:
            module(lambda n: n.MultiheadAttention(8, 2, **options), q, q, q, need_weights=weights, average_attn_weights=False)


def test_attention_masks():
    x = R(5, 2, 8)
    padding, causal = torch.tensor([[False] * 4 + [True], [False] * 5]), torch.triu(torch.ones(5, 5), 1).bool()
    for weights in (True, False):
        module(lambda n: n.MultiheadAttention(8, 2), x, x, x, key_padding_mask=padding, attn_mask=causal, need_weights=weights)
    module(lambda n: n.MultiheadAttention(8, 2), x[:, 0], x[:, 0], x[:, 0], attn_mask=causal)


@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}, {"bias": False}])
def test_transformer(options):
    x, memory, causal = R(5, 2, 8), R(4, 2, 8), torch.triu(torch.ones(5, 5), 1).bool()
    module(lambda n: n.TransformerEncoderLayer(8, 2, 16, 0.0, **options), x, src_mask=causal)
    module(lambda n: n.TransformerEncoder(n.TransformerEncoderLayer(8, 2, 16, 0.0, **options), 2, n.LayerNorm(8), enable_nested_tensor=False), x)
    module(lambda n: n.TransformerDecoderLayer(8, 2, 16, 0.0, **options), x, memory, tgt_mask=causal)
    module(lambda n: n.TransformerDecoder(n.TransformerDecoderLayer(8, 2, 16, 0.0, **options), 2), x, memory)
    module(lambda n: n.Transformer(8, 2, 2, 2, 16, 0.0, **options), memory, x)


@pytest.mark.parametrize("padding", [[[False] * 4, [False, False, True, True]], [[False] * 4, [True, False, True, True]]])
@pytest.mark.parametrize("heads,first", [(2, True), (1, True), (2, False)])
def test_padded_places_of_an_encoder(padding, heads, first):
    """Zeros where PyTorch's inference path leaves them out, values elsewhere."""
    results = []
    x, mask = R(2, 4, 8) if first else R(4, 2, 8), torch.tensor(padding)
    for library, y, m in ((strided, ours(x), ours(mask)), (torch, x, mask)):
        library.manual_seed(0)
        n = library.nn
        encoder = n.TransformerEncoder(n.TransformerEncoderLayer(8, heads, 16, batch_first=first), 2, n.LayerNorm(8)).eval()
        with library.no_grad():
            results.append([encoder(y, src_key_padding_mask=m)])
        results[-1].append(encoder(y, src_key_padding_mask=m))
    same(*results)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent(kind):
    x = R(5, 2, 8)
    for options in ({}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}, {"bias": False}):
        module(lambda n: getattr(n, kind)(8, 6, **options), x)
    module(lambda n: getattr(n, kind)(8, 6), x[:, 0])
    module(lambda n: getattr(n, kind + "Cell")(8, 6), x[0])
    module(lambda n: getattr(n, kind + "Cell")(8, 6), x[0, 0])
    if kind == "LSTM":
        module(lambda n: n.LSTM(8, 6, proj_size=3), x)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_packed_sequences(kind):
    sequences = [R(k, 4) for k in (3, 5, 2)]
    results = []
    for library, inputs in ((strided, ours(sequences)), (torch, sequences)):
        library.manual_seed(0)
        net = getattr(library.nn, kind)(4, 3, num_layers=2, bidirectional=True)
        rnn = library.nn.utils.rnn
        out, last = net(rnn.pack_sequence(inputs, enforce_sorted=False))
        results.append((list(out), last, rnn.pad_packed_sequence(out, batch_first=True, padding_value=7.0, total_length=8)))
    same(*results)


REPRS = [
    lambda n, l: n.ModuleList([n.Linear(2, 2) for _ in range(3)] + [n.Sequential(n.ReLU())] * 2),
    lambda n, l: n.ModuleDict({"a": n.Linear(2, 2), "b": n.ReLU()}),
    lambda n, l: n.ParameterList([l.ones(2), 3]),
    lambda n, l: n.ParameterDict({"x": l.ones(2, 3)}),
    lambda n, l: n.Transformer(8, 2),
    lambda n, l: n.Parameter(l.ones(2)),
    lambda n, l: n.Parameter(l.ones(2), False),
]


@pytest.mark.parametrize("make", REPRS)
def test_reprs(make):
    assert repr(make(strided.nn, strided)) == repr(make(torch.nn, torch))


INITS = [
    ("uniform_", (-1, 2)), ("normal_", (1, 2)), ("trunc_normal_", ()), ("trunc_normal_", (0, 1, 2.0, 3.0)), ("constant_", (3,)), ("ones_", ()), ("zeros_", ()), ("eye_", ()), ("xavier_uniform_", ()),
    ("xavier_normal_", (2,)), ("kaiming_uniform_", ()), ("kaiming_normal_", (0, "fan_out", "relu")), ("orthogonal_", ()), ("sparse_", (0.3,)),
]  # fmt: skip


@pytest.mark.parametrize("name,args", INITS)
@pytest.mark.parametrize("shape", [(6, 5), (20, 30)])
def test_init(name, args, shape):
    torch.manual_seed(0)
    strided.manual_seed(0)
    a, b = strided.empty(*shape), torch.empty(*shape)
    getattr(strided.nn.init, name)(a, *args)
    getattr(torch.nn.init, name)(b, *args)
    same(a, b, 1e-5, 1e-6)


def test_core_signatures():
    """torch.<name> where it takes other arguments than nn.functional.<name>: results, and gradients of those that have one."""
    x, w, b = R(3, 4, 5), R(4), R(4)
    mean, var = R(4), torch.rand(4) + 0.5
    index, offsets, table = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 3, 3]), R(6, 3)
    logits = R(3, 4)
    image, places = R(2, 3, 4, 5), R(2, 3, 3, 2)
    volume, spots = R(2, 3, 4, 5, 3), R(2, 3, 3, 2, 3)
    calls = [("batch_norm", x, w, b, mean, var, training, 0.3, 1e-4, False) for training in (True, False)]
    calls += [("native_batch_norm", x, w, b, mean, var, training, 0.3, 1e-4) for training in (True, False)]
    calls += [("native_batch_norm", x, None, None, None, None, True, 0.3, 1e-4), ("instance_norm", x, w, b, mean, var, True, 0.3, 1e-4, False)]
    calls += [("group_norm", x, 2, w, b), ("native_group_norm", x, w, b, 3, 4, 5, 2, 1e-4), ("native_group_norm", R(0, 2), R(2), None, 0, 2, 1, 1, 1e-5)]
    calls += [("grid_sampler", image, places, mode, padding, True) for mode in (0, 1, 2) for padding in (0, 1, 2)]
    calls += [("grid_sampler_2d", image, places, 0, 1, False), ("grid_sampler_3d", volume, spots, 0, 2, False)]
    calls += [("embedding_bag", table, index, offsets, False, mode, False, None, False, skip) for mode in (0, 1, 2) for skip in (None, 4)]
    calls += [("native_dropout", x, 0.5, False), ("kl_div", logits, logits.exp(), 2), ("ctc_loss", R(6, 2, 4).log_softmax(2), torch.tensor([[1, 2], [2, 2]]), (6, 6), (2, 1), 0, 2)]
    calls += [("binary_cross_entropy_with_logits", logits, torch.rand(3, 4), None, None, 0), ("margin_ranking_loss", R(3), R(3), torch.ones(3), 0.1, 1)]
    for name, *arguments in calls:
        theirs = [a.clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() and a is not mean and a is not var else a for a in arguments]
        theirs = [a.detach().clone() if a is mean or a is var else a for a in theirs]
        mine = [ours(a).requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in theirs]
        expected, got = getattr(torch, name)(*theirs), getattr(strided, name)(*mine)
        expected, got = (r if isinstance(r, tuple) else (r,) for r in (expected, got))
        assert len(expected) == len(got), name
        for e, g in zip(expected, got):
            same(g, e)
        for results in (expected, got):
            sum((r.float() ** 2).sum() for r in results if r.requires_grad).backward() if any(r.requires_grad for r in results) else None
        for m, t in zip(mine, theirs):
            if isinstance(t, torch.Tensor) and t.grad is not None:
                same(m.grad, t.grad, 1e-3, 1e-4)


def test_embedding_sparse_without_gradient():
    table, index = torch.randn(6, 3), torch.tensor([1, 5])
    same(F.embedding(ours(index), ours(table), sparse=True), TF.embedding(index, table, sparse=True))
    with pytest.raises(NotImplementedError, match="sparse gradients"):
        F.embedding(ours(index), ours(table).requires_grad_(), sparse=True)


@pytest.mark.parametrize("seed", range(30))
def test_ctc(seed):
    """Lengths of every kind, empty ones and such as no alignment fits included; losses and gradients."""
    rng = torch.Generator().manual_seed(seed)
    draw = lambda low, high, *shape: torch.randint(low, high, shape, generator=rng)
    T, N, C, S = int(draw(1, 9, 1)), int(draw(1, 5, 1)), int(draw(2, 5, 1)), int(draw(1, 5, 1))
    blank = int(draw(0, C, 1))
    logits = torch.randn(T, N, C, generator=rng)
    targets = (draw(1, C, N, S) + blank) % C
    steps, lengths = draw(1, T + 1, N), draw(0, S + 1, N)
    if seed % 5 == 0:
        steps, lengths = steps.clone(), lengths.clone()
        steps[0], lengths[0] = 0, 0
    if seed % 3 == 0:
        targets = torch.cat([row[:n] for row, n in zip(targets, lengths)])
    for reduction in ("none", "mean", "sum"):
        theirs = logits.log_softmax(2).requires_grad_()
        mine = ours(theirs)
        want = TF.ctc_loss(theirs, targets, steps, lengths, blank, reduction, True)
        got = F.ctc_loss(mine, ours(targets), ours(steps), ours(lengths), blank, reduction, True)
        same(got, want)
        (want**2).sum().backward()
        (got**2).sum().backward()
        same(mine.grad, theirs.grad)
    with pytest.raises(NotImplementedError, match="_ctc_loss_backward"):
        strided.autograd.grad(F.ctc_loss(mine, ours(targets), ours(steps), ours(lengths), blank, "sum"), mine, create_graph=True)


@pytest.mark.parametrize("padding", ("zeros", "border", "reflection"))
@pytest.mark.parametrize("align", (True, False))
def test_places_of_volumes(padding, align):
    """The gradient of trilinear samples with respect to their places, to the last bit; and the gradient's own."""
    volume, places = R(2, 5, 4, 6, 7), torch.rand(2, 3, 4, 5, 3) * 5 - 2.5
    theirs, mine = [t.clone().requires_grad_() for t in (volume, places)], [ours(t).requires_grad_() for t in (volume, places)]
    want, got = TF.grid_sample(*theirs, "bilinear", padding, align), F.grid_sample(*mine, "bilinear", padding, align)
    g = R(*want.shape)
    want.backward(g)
    got.backward(ours(g))
    same(mine[0].grad, theirs[0].grad)
    a, b = mine[1].grad.numpy(), theirs[1].grad.numpy()
    assert ((a == b) | (a != a) & (b != b)).mean() > 0.999
    x, p = ours(R(1, 2, 3, 3, 3)).double().requires_grad_(), ours(torch.rand(1, 1, 2, 2, 3) * 1.6 - 0.8).double().requires_grad_()
    sample = lambda x, p: F.grid_sample(x, p, "bilinear", padding, align)
    assert strided.autograd.gradcheck(sample, (x, p)) and strided.autograd.gradgradcheck(sample, (x, p))
