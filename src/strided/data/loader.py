"""`DataLoader`: batches of a dataset, put together here or in worker processes."""
import itertools
import os
import queue
import threading
import weakref

from ..autograd.profiler import RUNNING, record_function
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .fetch import IterableFetcher, MapFetcher
from .sampler import BatchSampler, InfiniteSampler, RandomSampler, SequentialSampler, random_seed

CHECK_INTERVAL = 5.0  # seconds to wait for a batch before looking whether the workers still live
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader:
    """Iterates over batches of a dataset.

    num_workers > 0 loads in that many processes, `prefetch_factor` (2) batches ahead each; batches keep their order unless
    in_order=False. An exception in a worker is raised here with the worker's traceback. pin_memory is accepted and does nothing.
    """

    _initialized = False

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_context(multiprocessing_context, num_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            _check_stream(shuffle, sampler, batch_sampler)
        shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._iterable:
                sampler = InfiniteSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.persistent_workers = persistent_workers
        self._iterator = None
        self._initialized = True

    def __setattr__(self, name, value):
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        object.__setattr__(self, name, value)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self):
        if not (self.persistent_workers and self.num_workers > 0):
            return _WorkersIterator(self) if self.num_workers > 0 else _LocalIterator(self)
        if self._iterator is None:
            self._iterator = _WorkersIterator(self)
        else:
            self._iterator.reset()
        return self._iterator

    def __len__(self):
        if not self._iterable:
            return len(self._index_sampler)
        length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, "
            "otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_context(context, num_workers):
    if context is None:
        return
    if num_workers == 0:
        raise ValueError(f"multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers={num_workers}")
    import multiprocessing

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(f"multiprocessing_context option should specify a valid start method in {methods!r}, but got multiprocessing_context={context!r}")
    elif not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            f"multiprocessing_context option should be a valid context object or a string specifying the start method, but got multiprocessing_context={context}"
        )


def _check_stream(shuffle, sampler, batch_sampler):
    for name, given in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if given is not None:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}")


class _Iterator:
    """What both iterators share. The base seed is drawn before the sampler draws its own, as in PyTorch."""

    def __init__(self, loader):
        self.loader = loader
        self.make_fetcher = IterableFetcher if loader._iterable else MapFetcher
        self.fetch_arguments = (loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last)
        self.indices = iter(loader._index_sampler)
        self.seed = random_seed(loader.generator)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.loader._index_sampler)


class _LocalIterator(_Iterator):
    def __init__(self, loader):
        super().__init__(loader)
        self.fetcher = self.make_fetcher(*self.fetch_arguments)

    def __next__(self):
        if RUNNING:  # a profile is open: reading is a row of it
            with record_function("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
                return self.fetcher.fetch(next(self.indices))
        return self.fetcher.fetch(next(self.indices))


_count = itertools.count()


def _leave_nothing(owner, workers, prefix):
    """Ends what an unclosed iterator left when the interpreter ends, as after Ctrl-C, whose traceback holds it: workers, and the files of batches under way."""
    if owner != os.getpid():
        return
    from .transport import sweep

    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()
    sweep(prefix)


class _WorkersIterator(_Iterator):
    """Sends numbered index lists to workers in turn and yields their batches by number (or as they come)."""

    def __init__(self, loader):
        import multiprocessing

        context = loader.multiprocessing_context
        context = multiprocessing.get_context(context) if context is None or isinstance(context, str) else context
        self.owner = os.getpid()
        self.prefix = f"strided_{self.owner}_{next(_count)}_"
        self.workers, self.queues = [], []
        self.closed = False
        super().__init__(loader)
        self.results = context.Queue()
        self.results.cancel_join_thread()
        self.done = context.Event()
        self.at_exit = weakref.finalize(self, _leave_nothing, self.owner, self.workers, self.prefix)
        for i in range(loader.num_workers):
            self._start(context, i)
        self._fill()

    def _start(self, context, i):
        from .worker import worker_loop

        indices = context.Queue()
        indices.cancel_join_thread()
        dataset, *rest = self.fetch_arguments
        process = context.Process(
            target=worker_loop,
            args=(self.make_fetcher, dataset, indices, self.results, self.done, *rest, self.seed + i,
                  self.loader.worker_init_fn, i, self.loader.num_workers, self.prefix),
            daemon=True,
        )  # fmt: skip
        process.start()
        self.queues.append(indices)
        self.workers.append(process)

    def _fill(self):
        """Starts a pass: every worker alive, the first batches asked for."""
        count = len(self.workers)
        self.sent = self.wanted = 0
        self.who = {}  # number of a batch asked for → its worker
        self.ready = {}  # number → packed batch that came before its turn
        self.active = [True] * count
        self.turn = itertools.cycle(range(count))
        for _ in range(self.loader.prefetch_factor * count):
            self._ask()

    def reset(self):
        """Another pass with the same workers."""
        if self.closed:
            raise RuntimeError("DataLoader workers have been shut down")
        while self.who:  # batches of an unfinished pass
            number, packed = self._receive()
            self._forget(number, packed)
        self._drop_ready()
        self.indices = iter(self.loader._index_sampler)  # the seed is drawn once, with the workers
        from .worker import Resume

        for q in self.queues:
            q.put(Resume())
        waiting = len(self.queues)
        while waiting:
            number, _ = self._receive()
            waiting -= isinstance(number, Resume)
        self._fill()

    def _forget(self, number, packed):
        from .transport import discard

        self.who.pop(number, None)
        if packed is not None:
            discard(packed)

    def _drop_ready(self):
        from .transport import discard

        for packed in self.ready.values():
            discard(packed)
        self.ready = {}

    def _ask(self):
        """Sends the next indices to the next active worker."""
        for _ in self.workers:
            i = next(self.turn)
            if self.active[i]:
                break
        else:
            return
        try:
            index = next(self.indices)
        except StopIteration:
            return
        self.queues[i].put((self.sent, index))
        self.who[self.sent] = i
        self.sent += 1

    def _receive(self):
        """(number, packed batch) of the next message. Raises when a worker has died or `timeout` seconds have passed."""
        timeout = self.loader.timeout
        waited = 0.0
        while True:
            step = min(timeout, CHECK_INTERVAL) if timeout else CHECK_INTERVAL
            try:
                return self.results.get(timeout=step)
            except queue.Empty:
                waited += step
            dead = [w for i, w in enumerate(self.workers) if self.active[i] and not w.is_alive()]
            if dead:
                pids = ", ".join(str(w.pid) for w in dead)
                self.close()
                raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")
            if timeout and waited >= timeout:
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")

    def __next__(self):
        from .transport import unpack
        from .worker import RemoteError, StreamEnded

        while True:
            packed = self._next_packed()
            value = unpack(packed)
            if isinstance(value, StreamEnded):
                self.active[value.worker_id] = False
                # What else it was asked for will not come.
                self.who = {number: i for number, i in self.who.items() if i != value.worker_id}
                if not self.loader.persistent_workers:
                    self.queues[value.worker_id].put(None)
                self._ask()
                continue
            self._ask()
            if isinstance(value, RemoteError):
                value.reraise()
            return value

    def _next_packed(self):
        """The next batch in order, or with in_order=False whichever comes first."""
        while True:
            while self.wanted < self.sent and self.wanted not in self.who and self.wanted not in self.ready:
                self.wanted += 1  # asked of a worker whose stream ended
            if self.wanted in self.ready:
                self.wanted += 1
                return self.ready.pop(self.wanted - 1)
            if not self.who:  # nothing is under way, and nothing came early: the pass is over
                if not self.loader.persistent_workers:
                    self.close()
                raise StopIteration
            number, packed = self._receive()
            if number not in self.who:
                continue
            del self.who[number]
            if not self.loader.in_order:
                return packed
            self.ready[number] = packed

    def close(self):
        """Ends the workers. In a process that was forked meanwhile they are not this one's to end."""
        if self.closed or self.owner != os.getpid():
            return
        self.closed = True
        self.at_exit.detach()
        from .transport import sweep

        self.done.set()
        for q in self.queues:
            q.put(None)
        for worker in self.workers:
            worker.join(timeout=CHECK_INTERVAL)
            if worker.is_alive():
                worker.terminate()
                worker.join()
        for q in (*self.queues, self.results):
            q.close()
        sweep(self.prefix)

    def __del__(self):
        if self.workers and threading.main_thread().is_alive():
            self.close()
