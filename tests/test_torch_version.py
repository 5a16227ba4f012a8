"""Versions compare as versions: `torch.__version__ >= "2.4"` holds in 2.13, with PyTorch's answers for each pair."""
import pickle

import pytest

import strided as torch
from strided.torch_version import TorchVersion


@pytest.mark.parametrize(
    ("one", "order", "other"),
    [
        ("1.10.0a", "<", "1.10.0"), ("1.10.0", ">", "1.10.0a"), ("1.10.0", "==", "1.10"), ("1.10.0+cu1", ">", "1.10.0"), ("1.10.0.dev1", "<", "1.10.0a1"),
        ("1.10.0.post1", ">", "1.10.0"), ("1.10.0rc1", ">", "1.10.0b2"), ("1.10.0", ">", "1.9"), ("1.10.0", ">", (1, 9)), ("1.10.0", "==", [1, 10]), ("1.0a1.dev2", "<", "1.0a1"),
        ("1.0.post1.dev1", "<", "1.0.post1"), ("1.0.post1.dev1", ">", "1.0"), ("1!1.0", ">", "2.0"), ("1.0+cpu.2", "<", "1.0+cpu.10"), ("1.0+abc", "<", "1.0+1"), ("1.0-1", "==", "1.0.post1"), ("1.0", "<", "abc"),
    ],
)  # fmt: skip
def test_order(one, order, other):
    version = TorchVersion(one)
    assert (version < other, version == other, version > other) == (order == "<", order == "==", order == ">")
    assert (version <= other, version != other, version >= other) == (order != ">", order != "==", order != "<")


def test_the_version_of_torch():
    version = torch.__version__
    assert isinstance(version, TorchVersion) and version >= "2.4" and version >= (2, 13) and version < (2, 14) and not version == "2.13.0" and version != "2.13.0"
    assert version.startswith("2.13.0+strided") and version.split("+")[0] == "2.13.0" and f"{version}" == str(version) == version and version in {version: 1}
    assert pickle.loads(pickle.dumps(version)) == version and version != None  # noqa: E711
    with pytest.raises(TypeError, match="not supported between instances of 'TorchVersion' and 'int'"):
        assert version >= 3
    packaging = pytest.importorskip("packaging.version")
    assert version >= packaging.Version("2.4") and packaging.parse(version) > packaging.Version("2.13")
    for other in ("1.10.0.dev1", "1.0-1", "1!1.0", "2.13.0", "2.13.0+z", "2.14a0", "2.13.0rc1"):
        assert (version > other) is (packaging.Version(version) > packaging.Version(other)), other


def test_names_of_files_that_annotations_use():
    from strided.nn.common_types import _size_2_t, _size_any_t

    assert _size_2_t == int | tuple[int, int] and _size_any_t == int | tuple[int, ...]
    assert torch.distributions.multivariate_normal.MultivariateNormal is torch.distributions.MultivariateNormal
    assert torch.autograd.grad_mode.no_grad is torch.no_grad and torch.autograd.anomaly_mode.detect_anomaly is torch.autograd.detect_anomaly
    assert torch.amp.autocast_mode.autocast is torch.amp.grad_scaler.autocast is torch.autocast
    assert torch.distributions.normal.Normal is torch.distributions.Normal and torch.distributions.studentT.StudentT is torch.distributions.StudentT
