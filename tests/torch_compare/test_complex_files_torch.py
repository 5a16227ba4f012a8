"""Files of complex tensors, written by PyTorch and read here, and the other way round; pending conjugates and negatives; DLPack."""
import io

import numpy as np
import pytest

import strided as st

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_both_ways(dtype):
    a = np.random.default_rng(0).standard_normal((3, 4, 2)).view("complex128")[..., 0].astype(dtype)
    theirs, mine = torch.from_numpy(a), st.from_numpy(a)
    for value in (theirs, theirs.conj(), theirs.t().conj(), theirs.conj().imag, theirs[1:, ::2]):
        file = io.BytesIO()
        torch.save(value, file)
        file.seek(0)
        assert np.array_equal(st.load(file).numpy(), value.resolve_conj().resolve_neg().numpy())
    file = io.BytesIO()
    st.save({"z": mine, "view": mine.t()[1:]}, file)
    file.seek(0)
    found = torch.load(file)
    assert torch.equal(found["z"], theirs) and torch.equal(found["view"], theirs.t()[1:]) and found["view"].stride() == theirs.t()[1:].stride()
    assert torch.equal(torch.from_dlpack(mine), theirs) and st.equal(st.from_dlpack(theirs), mine)
    assert repr(mine) == repr(theirs)


def test_safetensors(tmp_path):
    files = pytest.importorskip("safetensors.torch")
    z, path = torch.randn(2, 3, dtype=torch.complex64), str(tmp_path / "z.safetensors")
    files.save_file({"z": z}, path)
    assert np.array_equal(st.io.safetensors.load_file(path)["z"].numpy(), z.numpy())
    st.io.safetensors.save_file({"z": st.from_numpy(z.numpy())}, path)
    assert torch.equal(files.load_file(path)["z"], z)
