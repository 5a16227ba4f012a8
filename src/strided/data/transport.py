"""How a worker's batch travels to the loader: pickled, with the bytes of large tensors in shared files instead of in the pipe.

A tensor that was made by `shared_empty` is in a file of its own already and is not copied; the others of a batch share one file. Files live in memory
where the system has /dev/shm. The receiver maps them and removes their names at once, so nothing stays behind.
"""
import errno
import glob
import io
import mmap
import os
import pickle
import tempfile
import threading

from ..tensor import Spec, Tensor, place_of, wrap

SMALLEST = 1 << 16  # below this many bytes a tensor goes through the pipe
_ALIGN = 64


def directories():
    """Where shared files are made: in memory, and on disk where there is no memory for them, or none that is left (a container's /dev/shm is small)."""
    return [path for path in ("/dev/shm", tempfile.gettempdir()) if os.path.isdir(path) and os.access(path, os.W_OK)]


def _new_file(prefix, nbytes):
    """(open file of so many bytes, its path). Raises OSError where no folder has room for it."""
    for place in directories():
        handle, path = tempfile.mkstemp(prefix=prefix, dir=place)
        try:
            if hasattr(os, "posix_fallocate"):  # a file without its memory would end the process where it is written (SIGBUS)
                os.posix_fallocate(handle, 0, nbytes)
            else:
                os.ftruncate(handle, nbytes)
            return handle, path
        except BaseException as error:
            os.close(handle)
            os.unlink(path)
            if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
    raise OSError(errno.ENOSPC, f"a batch of {nbytes:,} bytes does not fit into {' or '.join(directories())}: use fewer workers, a smaller prefetch_factor or smaller batches")


class _Pickler(pickle.Pickler):
    """Takes large tensors out of the stream; `parts` collects (byte position, bytes)."""

    def __init__(self, file):
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.parts = []
        self.size = 0
        self.files = []  # paths of the tensors that are in shared files of their own

    def reducer_override(self, value):
        if not isinstance(value, Tensor) or value.is_meta or value.grad_fn is not None:
            return NotImplemented
        if value.nbytes < SMALLEST and value.mem.nbytes <= 2 * value.nbytes + 64:
            return NotImplemented
        shared = value.mem.owner
        if isinstance(shared, _SharedFile) and not shared.sent and value.is_contiguous() and value.ptr == value.mem.data and value.nbytes == value.mem.nbytes:
            shared.sent = True
            self.files.append(shared.path)
            return _rebuild_file, (shared.path, tuple(value.shape), value.dtype, value.requires_grad)
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


class _SharedFile:
    """The mapping of a file that a tensor of this process lies in. It can be sent once: the receiver removes the name."""

    def __init__(self, path, memory):
        self.path, self.memory, self.sent = path, memory, False


_prefix = None  # of the names of shared files, in a worker


def share_results(prefix):
    """From now on this process is a worker: `shared_empty` makes tensors in shared files whose names begin with `prefix`."""
    global _prefix
    _prefix = prefix


def in_worker():
    """Whether this process is a worker, whose batches travel."""
    return _prefix is not None


def shared_empty(shape, dtype):
    """An uninitialised tensor in a shared file; None outside workers and for small ones."""
    from ..dtypes import Device
    from ..layout import Layout

    if _prefix is None:
        return None
    spec = Spec.of(Layout.contiguous(shape), dtype, Device("cpu"))
    if spec.nbytes < SMALLEST:
        return None
    handle, path = _new_file(_prefix, spec.nbytes)
    try:
        memory = mmap.mmap(handle, spec.nbytes)
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(handle)
    return _mapped(spec, memory, _address(memory), _SharedFile(path, memory))


def _address(memory):
    import ctypes

    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _mapped(spec, memory, address, owner):
    from ..kernels.native import wrap_storage

    storage = wrap_storage(address, spec.nbytes, owner)
    return wrap(spec, storage, place_of(storage, spec))


def _map(path):
    """The mapping of a shared file, whose name is removed."""
    try:
        with open(path, "r+b") as file:
            return mmap.mmap(file.fileno(), 0)
    finally:
        os.unlink(path)


def _rebuild_file(path, shape, dtype, requires_grad):
    from ..dtypes import Device
    from ..layout import Layout

    memory = _map(path)
    return _mapped(Spec.of(Layout.contiguous(shape), dtype, Device("cpu")), memory, _address(memory), memory).requires_grad_(requires_grad)


_unpacking = threading.local()  # .mapping: the shared file of the batch that this thread is unpickling, as (mmap, address)


def _rebuild(place, shape, dtype, requires_grad):
    from ..dtypes import Device
    from ..layout import Layout

    memory, address = _unpacking.mapping
    return _mapped(Spec.of(Layout.contiguous(shape), dtype, Device("cpu")), memory, address + place, memory).requires_grad_(requires_grad)


def _rebuild_small(data, shape, dtype, requires_grad):
    from ..dtypes import Device
    from ..tensor import empty

    t = empty(shape, dtype, Device("cpu"))
    memoryview(t.mem)[: len(data)] = data
    return t.requires_grad_(requires_grad)


def pack(value, prefix):
    """(pickled bytes, path of the file of the tensors that were copied or None, paths of the others' files)."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(value)
    if not pickler.parts:
        return stream.getvalue(), None, pickler.files
    handle, path = _new_file(prefix, pickler.size)
    try:
        with mmap.mmap(handle, pickler.size) as memory:
            for place, data in pickler.parts:
                memory[place : place + len(data)] = data
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(handle)
    return stream.getvalue(), path, pickler.files


def unpack(packed):
    """The value `pack` was given. Tensors from shared files use their memory and keep it alive."""
    data, path, _ = packed
    if path is None:
        return pickle.loads(data)
    memory = _map(path)
    _unpacking.mapping = memory, _address(memory)
    try:
        return pickle.loads(data)
    finally:
        del _unpacking.mapping


def discard(packed):
    """Drops a batch nobody will read."""
    _, path, files = packed
    for name in (path, *files):
        if name is not None and os.path.exists(name):
            os.unlink(name)


def sweep(prefix):
    """Removes what workers that died left behind."""
    for place in directories():
        for path in glob.glob(os.path.join(glob.escape(place), glob.escape(prefix) + "*")):
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass
