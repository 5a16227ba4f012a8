"""A worker process of a DataLoader: fetch batches that are asked for, send them back, report what goes wrong."""
import os
import queue
import random
import sys
import traceback

CHECK_INTERVAL = 5.0  # seconds between looks whether the loader's process still lives

_info = None


class WorkerInfo:
    """What a worker knows of itself: `id, num_workers, seed, dataset` (its own copy)."""

    def __init__(self, **facts):
        self.__dict__.update(facts)

    def __repr__(self):
        return "WorkerInfo(" + ", ".join(f"{k}={v}" for k, v in self.__dict__.items()) + ")"


def get_worker_info():
    """The WorkerInfo of this worker process; None in the main process."""
    return _info


class StreamEnded:
    """A worker's stream has ended."""

    def __init__(self, worker_id):
        self.worker_id = worker_id


class Resume:
    """The loader begins another pass; the worker acknowledges by sending it back."""


class KeyErrorMessage(str):
    """A text whose repr is itself, since KeyError prints the repr of its argument."""

    __repr__ = str.__str__


class RemoteError:
    """An exception on its way to another process: its class and its traceback as text."""

    def __init__(self, where):
        kind, value, trace = sys.exc_info()
        self.kind = kind
        self.text = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self):
        """Raises the exception again, with the worker's traceback as its message."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            message = KeyErrorMessage(message)
        try:
            exception = self.kind(message)
        except Exception:  # a class that cannot be made from one text
            raise RuntimeError(message) from None
        raise exception


def _seed_everything(seed, worker_id):
    """Python's, NumPy's and our generators, once in a worker's life; later passes of a persistent worker go on from there. PyTorch's seeds."""
    from ..ops.generator import manual_seed

    random.seed(seed)
    manual_seed(seed)
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        base = seed - worker_id
        numpy.random.seed(numpy.random.SeedSequence([worker_id, base % 2**32, base >> 32, 0]).generate_state(4))


def worker_loop(
    make_fetcher, dataset, index_queue, result_queue, done, auto_collation, collate_fn, drop_last, seed, init, worker_id, count, prefix
):
    """The worker's life: one message in, (number, packed batch) out, until None comes or the loader's process is gone."""
    global _info
    from ..kernels.native import set_num_threads
    from . import transport

    set_num_threads(1)  # the workers are the parallelism
    transport.share_results(prefix)
    where = f"in DataLoader worker process {worker_id}"
    parent = os.getppid()
    fetcher = failure = None
    try:
        _seed_everything(seed, worker_id)
        _info = WorkerInfo(id=worker_id, num_workers=count, seed=seed, dataset=dataset)
        if init is not None:
            init(worker_id)
        fetcher = make_fetcher(dataset, auto_collation, collate_fn, drop_last)
    except Exception:
        failure = RemoteError(where)
    ended = False
    try:
        while True:
            try:
                message = index_queue.get(timeout=CHECK_INTERVAL)
            except queue.Empty:
                if os.getppid() != parent:  # nobody will read what has been sent
                    transport.sweep(prefix)
                    break
                continue
            if message is None or done.is_set():
                break
            if isinstance(message, Resume):
                result_queue.put((message, None))
                ended = False
                try:
                    fetcher, failure = make_fetcher(dataset, auto_collation, collate_fn, drop_last), None
                except Exception:
                    failure = RemoteError(where)
                continue
            if ended:
                continue
            number, index = message
            if failure is not None:
                value, failure = failure, None
            else:
                try:
                    value = fetcher.fetch(index)
                except StopIteration:
                    if make_fetcher.__name__ == "IterableFetcher":
                        value, ended = StreamEnded(worker_id), True
                    else:
                        value = RemoteError(where)
                except Exception:
                    value = RemoteError(where)
            try:
                packed = transport.pack(value, prefix)
            except Exception:
                packed = transport.pack(RemoteError(where), prefix)
            result_queue.put((number, packed))
            del value, packed
    except KeyboardInterrupt:
        pass  # the main process raises it
    if done.is_set():
        result_queue.cancel_join_thread()
        result_queue.close()
