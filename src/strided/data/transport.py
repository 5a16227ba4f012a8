"""How a worker's batch travels to the loader: pickled, with the bytes of large tensors in a shared file instead of in the pipe.

The file lives in memory where the system has /dev/shm. The receiver maps it and removes its name at once, so nothing stays behind.
"""
import glob
import io
import mmap
import os
import pickle
import tempfile

from ..tensor import Spec, Tensor, place_of, wrap

SMALLEST = 1 << 16  # below this many bytes a tensor goes through the pipe
_ALIGN = 64


def directory():
    """Where shared files are made."""
    return "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


class _Pickler(pickle.Pickler):
    """Takes large tensors out of the stream; `parts` collects (byte position, bytes)."""

    def __init__(self, file):
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.parts = []
        self.size = 0

    def reducer_override(self, value):
        if not isinstance(value, Tensor) or value.is_meta or value.grad_fn is not None:
            return NotImplemented
        if value.nbytes < SMALLEST and value.mem.nbytes <= 2 * value.nbytes + 64:
            return NotImplemented
        flat = value.detach().contiguous()
        if flat.dtype.packed and flat.storage_offset():  # whole bytes
            flat = flat.clone()
        start = flat.data_ptr() - flat.mem.data
        if value.nbytes < SMALLEST:  # a small part of a large storage: pickled as it is, it would take the whole storage along
            return _rebuild_small, (bytes(memoryview(flat.mem)[start : start + flat.nbytes]), tuple(flat.shape), flat.dtype, value.requires_grad)
        place = self.size
        self.parts.append((place, memoryview(flat.mem)[start : start + flat.nbytes]))
        self.size = -(-(place + flat.nbytes) // _ALIGN) * _ALIGN
        return _rebuild, (place, tuple(flat.shape), flat.dtype, value.requires_grad)


_mapping = None  # the shared file of the batch being unpickled, as (mmap, address)


def _rebuild(place, shape, dtype, requires_grad):
    from ..dtypes import Device
    from ..kernels.native import wrap_storage
    from ..layout import Layout

    memory, address = _mapping
    spec = Spec.of(Layout.contiguous(shape), dtype, Device("cpu"))
    storage = wrap_storage(address + place, spec.nbytes, memory)
    return wrap(spec, storage, place_of(storage, spec)).requires_grad_(requires_grad)


def _rebuild_small(data, shape, dtype, requires_grad):
    from ..dtypes import Device
    from ..tensor import empty

    t = empty(shape, dtype, Device("cpu"))
    memoryview(t.mem)[: len(data)] = data
    return t.requires_grad_(requires_grad)


def pack(value, prefix):
    """(pickled bytes, path of the shared file or None)."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(value)
    if not pickler.parts:
        return stream.getvalue(), None
    handle, path = tempfile.mkstemp(prefix=prefix, dir=directory())
    try:
        os.ftruncate(handle, pickler.size)
        with mmap.mmap(handle, pickler.size) as memory:
            for place, data in pickler.parts:
                memory[place : place + len(data)] = data
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(handle)
    return stream.getvalue(), path


def unpack(packed):
    """The value `pack` was given. Tensors from the shared file use its memory and keep it alive."""
    global _mapping
    data, path = packed
    if path is None:
        return pickle.loads(data)
    import ctypes

    try:
        with open(path, "r+b") as file:
            memory = mmap.mmap(file.fileno(), 0)
    finally:
        os.unlink(path)
    _mapping = (memory, ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    try:
        return pickle.loads(data)
    finally:
        _mapping = None


def discard(packed):
    """Drops a batch nobody will read."""
    if packed[1] is not None and os.path.exists(packed[1]):
        os.unlink(packed[1])


def sweep(prefix):
    """Removes what workers that died left behind."""
    for path in glob.glob(os.path.join(glob.escape(directory()), glob.escape(prefix) + "*")):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
