"""FLOP counts of functions, losses, attention and optimisers against numbers worked out by hand; each function is one event, with its own result.

Operators of the table one by one are in test_annotate.py.
"""
import inspect
import warnings

import pytest

import strided as torch
import strided.nn.functional as F
from strided.dispatch import listen


def events_of(call):
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with listen(found.append):
            result = call()
    return found, result


IMAGE = torch.ones(2, 4, 8, 8)  # 512 elements
LINE = torch.ones(2, 4, 8)
VOLUME = torch.ones(1, 2, 4, 4, 4)
CHANNEL = torch.ones(4)
P, Q = torch.rand(4, 8), torch.rand(4, 8)  # 32 elements
CLASSES = torch.tensor([1, 2, 3, 0])
GRID = torch.zeros(1, 3, 3, 2)
SIGNS = torch.ones(4)
PROBABILITIES = torch.ones(5, 2, 6).log_softmax(2)
TARGETS = torch.ones(2, 2, dtype=torch.int64)

CASES = [
    # each output element: a product with C/groups · K weights; then the bias
    ("conv1d", lambda: F.conv1d(LINE, torch.ones(6, 4, 3)), 2 * (2 * 6 * 6) * (4 * 3)),
    ("conv2d", lambda: F.conv2d(IMAGE, torch.ones(6, 4, 3, 3), torch.ones(6), padding=1), 2 * (2 * 6 * 64) * (4 * 9) + 2 * 6 * 64),
    ("conv2d", lambda: F.conv2d(IMAGE, torch.ones(6, 2, 3, 3), groups=2, stride=2), 2 * (2 * 6 * 9) * (2 * 9)),
    ("conv2d", lambda: F.conv2d(input=IMAGE, weight=torch.ones(6, 4, 1, 1), bias=torch.ones(6)), 2 * (2 * 6 * 64) * 4 + 2 * 6 * 64),
    ("conv3d", lambda: F.conv3d(VOLUME, torch.ones(3, 2, 2, 2, 2)), 2 * (3 * 27) * (2 * 8)),
    # each input element meets F/groups · K weights
    ("conv_transpose1d", lambda: F.conv_transpose1d(LINE, torch.ones(4, 3, 2), stride=2), 2 * 64 * (3 * 2)),
    ("conv_transpose2d", lambda: F.conv_transpose2d(torch.ones(1, 2, 4, 4), torch.ones(2, 3, 2, 2), stride=2), 768),
    ("conv_transpose2d", lambda: F.conv_transpose2d(IMAGE, torch.ones(4, 3, 3, 3), torch.ones(6), groups=2), 2 * 512 * (3 * 9) + 2 * 6 * 100),
    ("conv_transpose3d", lambda: F.conv_transpose3d(VOLUME, torch.ones(2, 3, 2, 2, 2)), 2 * 128 * (3 * 8)),
    ("max_pool1d", lambda: F.max_pool1d(LINE, 2), 0),
    ("max_pool2d", lambda: F.max_pool2d(IMAGE, 2), 0),
    ("max_pool2d", lambda: F.max_pool2d(IMAGE, 3, 2, 1, return_indices=True), 0),
    ("max_pool3d", lambda: F.max_pool3d(VOLUME, 2), 0),
    ("adaptive_max_pool2d", lambda: F.adaptive_max_pool2d(IMAGE, 3), 0),
    # of each window: K − 1 additions and a division
    ("avg_pool1d", lambda: F.avg_pool1d(LINE, 2), 32 * 2),
    ("avg_pool2d", lambda: F.avg_pool2d(IMAGE, 2), 128 * 4),
    ("avg_pool2d", lambda: F.avg_pool2d(IMAGE, (3, 2), 1), 2 * 4 * 6 * 7 * 6),
    ("avg_pool3d", lambda: F.avg_pool3d(VOLUME, 2), 16 * 8),
    ("adaptive_avg_pool2d", lambda: F.adaptive_avg_pool2d(IMAGE, 1), 512),
    ("adaptive_avg_pool2d", lambda: F.adaptive_avg_pool2d(IMAGE, (3, 1)), 8 * (3 + 4 + 3) * 8),  # rows 0–2, 2–5, 5–7
    ("lp_pool2d", lambda: F.lp_pool2d(IMAGE, 2, 2), 512 + 128 * (4 + 4)),
    ("batch_norm", lambda: F.batch_norm(IMAGE, None, None, CHANNEL, CHANNEL, True), 7 * 512),
    ("batch_norm", lambda: F.batch_norm(IMAGE, CHANNEL, CHANNEL, CHANNEL, CHANNEL), 2 * 512),
    ("group_norm", lambda: F.group_norm(IMAGE, 2, CHANNEL), 6 * 512),
    ("instance_norm", lambda: F.instance_norm(IMAGE), 5 * 512),
    ("local_response_norm", lambda: F.local_response_norm(IMAGE, 3), 8 * 512),
    ("dropout", lambda: F.dropout(IMAGE, 0.5), 512),
    ("interpolate", lambda: F.interpolate(IMAGE, scale_factor=2), 0),
    # rows first: two multiplications and an addition each of 2·4·16·8, then of 2·4·16·16
    ("interpolate", lambda: F.interpolate(IMAGE, scale_factor=2, mode="bilinear"), 3 * 1024 + 3 * 2048),
    ("mse_loss", lambda: F.mse_loss(P, Q), 3 * 32),  # subtract, square, add up
    ("mse_loss", lambda: F.mse_loss(P, Q, reduction="none"), 2 * 32),
    ("mse_loss", lambda: F.mse_loss(P, Q, weight=Q), 5 * 32),  # · weight, and the weights' sum
    ("l1_loss", lambda: F.l1_loss(P, Q, reduction="sum"), 3 * 32),
    ("smooth_l1_loss", lambda: F.smooth_l1_loss(P, Q), 7 * 32),
    ("huber_loss", lambda: F.huber_loss(P, Q), 7 * 32),
    ("binary_cross_entropy", lambda: F.binary_cross_entropy(P, Q), 9 * 32),
    ("binary_cross_entropy_with_logits", lambda: F.binary_cross_entropy_with_logits(P, Q), 9 * 32),
    ("kl_div", lambda: F.kl_div(P, Q, log_target=True), 4 * 32),
    ("poisson_nll_loss", lambda: F.poisson_nll_loss(P, Q), 4 * 32),
    ("gaussian_nll_loss", lambda: F.gaussian_nll_loss(P, Q, 0.5), 7 * 32),
    ("cosine_embedding_loss", lambda: F.cosine_embedding_loss(P, Q, SIGNS), 6 * 32 + 9 * 4),
    ("margin_ranking_loss", lambda: F.margin_ranking_loss(P, Q, Q), 5 * 32),
    ("hinge_embedding_loss", lambda: F.hinge_embedding_loss(P, Q), 3 * 32),
    ("soft_margin_loss", lambda: F.soft_margin_loss(P, Q), 6 * 32),
    ("multi_margin_loss", lambda: F.multi_margin_loss(P, CLASSES), 3 * 32 + 3 * 4),
    ("triplet_margin_loss", lambda: F.triplet_margin_loss(P, Q, P), 2 * 4 * 32 + 3 * 4),
    ("nll_loss", lambda: F.nll_loss(P, CLASSES), 2 * 4),
    ("cross_entropy", lambda: F.cross_entropy(P, CLASSES), 5 * 32),
    # five steps of two samples: four transitions of 2·2 + 1 states, twelve each; four a class; nine for the ends
    ("ctc_loss", lambda: F.ctc_loss(PROBABILITIES, TARGETS, [5, 5], [2, 2]), 2 * (12 * 4 * 5 + 9)),
    ("cosine_similarity", lambda: F.cosine_similarity(P, Q), 8 * 32),
    ("pairwise_distance", lambda: F.pairwise_distance(P, Q), 4 * 32),
    ("pdist", lambda: F.pdist(P), 3 * 6 * 8),  # six pairs
    ("normalize", lambda: F.normalize(P), 3 * 32),
    ("embedding_bag", lambda: F.embedding_bag(TARGETS, P), 4 * 8 + 2 * 8),
    # 9 places: 4 for the pixel and 5 for the weights of each dimension; at each of four taps a product of weights and 4 channels
    ("grid_sample", lambda: F.grid_sample(IMAGE[:1], GRID, align_corners=False), 9 * (2 * (4 + 5) + 4 * (1 + 2 * 4))),
    ("lerp", lambda: torch.lerp(P, Q, 0.3), 3 * 32),
    ("lerp", lambda: torch.lerp(P, Q, P), 3 * 32),
    # integers: no floating-point operations
    ("add", lambda: CLASSES + 1, 0),
    ("floor_divide", lambda: CLASSES // 2, 0),
    ("sum", lambda: CLASSES.sum(), 0),
    ("mul", lambda: CLASSES * 0.5, 4),
]


@pytest.mark.parametrize("name, call, count", CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_one_event_and_its_count(name, call, count):
    events, result = events_of(call)
    events = [e for e in events if e.kind not in ("create", "view")]
    assert [(e.op, e.flops) for e in events] == [(name, count)]
    results = result if isinstance(result, tuple) else (result,)
    assert [tuple(o.shape) for o in events[0].outputs] == [tuple(r.shape) for r in results]


@pytest.mark.parametrize("name", ["conv2d", "max_pool2d", "avg_pool2d", "mse_loss", "interpolate", "group_norm", "multi_head_attention_forward", "dropout"])
def test_signatures_stay(name):
    function = getattr(F, name)
    assert function.__name__ == name and function.__doc__
    assert list(inspect.signature(function).parameters)[0] in ("input", "query")


def test_max_pool_counts_nothing_with_gradients_either():
    x = torch.ones(1, 1, 4, 4, requires_grad=True)
    events, out = events_of(lambda: F.max_pool2d(x, 2))
    assert [(e.op, e.flops) for e in events] == [("max_pool2d", 0)]
    out.sum().backward()
    assert x.grad.sum() == 4


def test_dropout_in_place_and_as_the_identity():
    x = torch.ones(8)
    events, kept = events_of(lambda: F.dropout(x, 0.5, training=False))
    assert not events and kept is x
    (event,), _ = events_of(lambda: F.dropout(x, 0.5, inplace=True))
    assert (event.op, event.kind, event.flops) == ("dropout", "inplace", 8)


def written_out(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) * 0.5, -1) @ v


def test_attention_counts_the_same_fused_and_written_out():
    q, k, v = torch.rand(2, 3, 7, 4), torch.rand(2, 3, 5, 4), torch.rand(2, 3, 5, 4)
    fused, _ = events_of(lambda: F.scaled_dot_product_attention(q, k, v))
    parts, _ = events_of(lambda: written_out(q, k, v))
    # two products of 4 columns; the scale and the softmax of 7 · 5 scores
    assert [e.flops for e in fused] == [sum(e.flops for e in parts)] == [4 * 6 * 7 * 5 * 4 + 5 * 6 * 7 * 5]
    mask = torch.zeros(7, 5)
    (masked,), _ = events_of(lambda: F.scaled_dot_product_attention(q, k, v, mask))
    allowed = mask == 0
    (hidden,), _ = events_of(lambda: F.scaled_dot_product_attention(q, k, v, allowed))
    assert masked.flops == fused[0].flops + 6 * 7 * 5 and hidden.flops == fused[0].flops


def test_multi_head_attention_is_one_operator():
    layer, x = torch.nn.MultiheadAttention(8, 2), torch.rand(5, 3, 8)
    (event,), (out, weights) = events_of(lambda: layer(x, x, x))
    rows, scores = 15, 3 * 2 * 5 * 5
    projections = 4 * (2 * rows * 8 * 8 + rows * 8)
    assert event.op == "multi_head_attention_forward" and [tuple(o.shape) for o in event.outputs] == [(5, 3, 8), (3, 5, 5)]
    assert event.flops == projections + 2 * 2 * scores * 4 + 5 * scores + scores  # the last: weights averaged over the heads
    (event,), _ = events_of(lambda: layer(x, x, x, need_weights=False))
    assert event.flops == projections + 2 * 2 * scores * 4 + 5 * scores


def test_autocast_still_reaches_the_products():
    layer, x = torch.nn.MultiheadAttention(8, 2), torch.rand(5, 3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        events, (out, _) = events_of(lambda: layer(x, x, x))
        convolved = F.conv2d(IMAGE, torch.ones(6, 4, 3, 3))
        loss = F.mse_loss(P.bfloat16(), Q.bfloat16())
        pooled = F.adaptive_avg_pool2d(IMAGE, 3)
    assert out.dtype is torch.bfloat16 and [e.op for e in events].count("linear") == 2
    assert (convolved.dtype, loss.dtype, pooled.dtype) == (torch.bfloat16, torch.float32, torch.float32)


def test_results_in_inference_mode_are_inference_tensors():
    with torch.inference_mode():
        assert F.conv2d(IMAGE, torch.ones(6, 4, 3, 3)).is_inference()
        assert F.max_pool2d(IMAGE, 2).is_inference()
    assert not F.conv2d(IMAGE, torch.ones(6, 4, 3, 3)).is_inference()


@pytest.mark.parametrize(
    "make, count",
    [
        (lambda p: torch.optim.SGD(p, lr=0.1), 2),  # lr · g, subtract
        (lambda p: torch.optim.SGD(p, lr=0.1, maximize=True), 3),
        (lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1), 4),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), 4),  # momentum · b + g
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1), 5),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), 6),
        # m: 3, v: 4, the root, its correction, + eps, the quotient, · rate, subtract: 6
        (lambda p: torch.optim.Adam(p), 13),
        (lambda p: torch.optim.Adam(p, amsgrad=True), 13),  # the larger of two is a selection
        (lambda p: torch.optim.Adam(p, weight_decay=0.1), 15),
        (lambda p: torch.optim.AdamW(p), 14),
    ],
)
def test_optimizer_steps_count_their_options_only(make, count):
    p = torch.nn.Parameter(torch.ones(10))
    optimizer = make([p])
    for _ in range(2):  # the second step has its buffers
        p.grad = torch.ones(10)
        events, _ = events_of(optimizer.step)
    assert [e.flops for e in events if e.op != "count_steps_"] == [10 * count]
    assert all(e.flops == 1 for e in events if e.op == "count_steps_")  # the count of steps
