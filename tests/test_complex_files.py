"""Complex tensors across borders: files, pickles, DLPack, NumPy, shared memory. No torch."""
import copy
import pickle

import numpy as np
import pytest

import strided as torch
from strided.io import safetensors

VALUES = np.arange(12).reshape(3, 4) * (1 - 2j) + 0.5j


@pytest.fixture(params=["complex64", "complex128"])
def z(request):
    return torch.from_numpy(VALUES.astype(request.param))


def same(a, b):
    return a.dtype is b.dtype and a.stride() == b.stride() and torch.equal(a, b)


def test_files(z, tmp_path):
    path = tmp_path / "z.pt"
    torch.save({"z": z, "view": z.t()[1:], "part": z.imag.clone()}, path)
    for options in ({}, {"mmap": True}, {"weights_only": True}):
        found = torch.load(path, **options)
        assert same(found["z"], z) and same(found["view"], z.t()[1:]) and same(found["part"], z.imag.clone())
        assert found["view"].untyped_storage().data_ptr() == found["z"].untyped_storage().data_ptr()


def test_pickles_and_copies(z):
    for made in (pickle.loads(pickle.dumps(z)), copy.deepcopy(z), z.clone().share_memory_()):
        assert same(made, z) and made.data_ptr() != z.data_ptr()


def test_arrays(z):
    assert z.numpy().dtype == np.dtype(str(z.dtype)[6:]) and z.numpy().__array_interface__["data"][0] == z.data_ptr()
    assert np.array_equal(np.from_dlpack(z), z.numpy()) and same(torch.from_dlpack(z.numpy()), z) and torch.from_dlpack(z).data_ptr() == z.data_ptr()
    assert z.__array_interface__["typestr"] == z.numpy().__array_interface__["typestr"]
    assert same(torch.frombuffer(bytearray(z.numpy().tobytes()), dtype=z.dtype).reshape(3, 4), z)
    assert z.tolist() == z.numpy().tolist() and same(torch.tensor(z.tolist(), dtype=z.dtype), z)


def test_safetensors(tmp_path):
    z, path = torch.from_numpy(VALUES.astype("complex64")), tmp_path / "z.safetensors"
    safetensors.save_file({"z": z}, path)
    assert same(safetensors.load_file(path)["z"], z)
    with pytest.raises(NotImplementedError, match="complex128, which the safetensors format has no name for"):
        safetensors.save_file({"z": z.to(torch.complex128)}, path)
