"""Second derivatives, a part of gradgrad_cases.py's samples: gradcheck, gradgradcheck, and PyTorch's numbers."""
import pytest

pytest.importorskip("torch")
from gradgrad_cases import entries, rows

# By hand: those whose backward functions are written out, a few of each family.
OPERATORS = """addcdiv addmm amax aminmax atan2 baddbmm cat cdist clamp copysign cov cross cummax cumprod cumsum diag_embed diagonal_scatter diff einsum expand fmod gather
i0 index_add index_copy index_fill index_put index_reduce index_select kron lerp linalg.cholesky linalg.det linalg.eigh linalg.householder_product linalg.inv linalg.lstsq
linalg.matrix_norm linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.vector_norm log_softmax logcumsumexp logsumexp masked_scatter max matmul median mode
nn.functional.avg_pool2d nn.functional.bilinear nn.functional.conv2d nn.functional.conv_transpose1d nn.functional.cosine_similarity nn.functional.cross_entropy
nn.functional.embedding nn.functional.grid_sample nn.functional.group_norm nn.functional.huber_loss nn.functional.interpolate nn.functional.layer_norm
nn.functional.max_pool2d nn.functional.nll_loss nn.functional.pdist nn.functional.prelu nn.functional.scaled_dot_product_attention nn.functional.unfold norm pow prod
put renorm scatter scatter_reduce sort special.i1 std take_along_dim to topk trapezoid trace unfold var where xlogy""".split()


def test_second_derivatives_are_right():
    found = list(rows(set(OPERATORS), limit=2))
    wrong = [f"{name}: {', '.join(texts)}" for name, _, texts in found if texts]
    assert not wrong, "\n".join(wrong)
    assert sum(good for _, good, _ in found) > 150


def test_most_of_the_database_is_in_scope():
    assert sum(1 for _ in entries()) > 430
