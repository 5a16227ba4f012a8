"""From IR text to the address of machine code, with an object cache on disk.

Holds: what the host can do, the compiler, the linker (one LLJIT for all objects), the cache. Does not hold any kernel: templates build the text.
"""
from __future__ import annotations

import atexit
import hashlib
import os
import pathlib
import re
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Hashable

import llvmlite
import llvmlite.binding as llvm

_lock = threading.RLock()  # LLVM compiles one module at a time
if hasattr(os, "register_at_fork"):  # a child forked while another thread compiles would wait for that thread, which it does not have, for ever
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
# LLVM's own teardown at exit must not meet a compile: one that a daemon thread is in the middle of is awaited, later ones never begin.
atexit.register(_lock.acquire)
_addresses: dict[Hashable, int] = {}

# The text of every kernel depends on the generators' source: a cached object is used only by the version that wrote it.
SOURCE_VERSION = 1
LATE = "strided-late"  # attribute of functions that the loop vectoriser is to see as calls with vector variants


class Host:
    """The machine that kernels are generated for: triple, CPU name, features, widest vector in bits, whether it has fused multiply-add."""

    def __init__(self, triple: str, cpu: str, features: str):
        self.triple, self.cpu, self.feature_string = triple, cpu, features
        self.features = frozenset(f for f in features.split(",") if f.startswith("+"))
        self.arch = "aarch64" if triple.startswith(("aarch64", "arm64")) else triple.split("-")[0]
        if self.arch == "x86_64":
            self.vector_bits = 512 if "+avx512f" in self.features else 256 if "+avx2" in self.features else 128
            self.fma = "+fma" in self.features
            self.half = "+f16c" in self.features  # conversions float16 <-> float32 in hardware
        else:
            self.vector_bits, self.fma, self.half = 128, True, self.arch == "aarch64"

    @property
    def attributes(self) -> str:
        """Function attributes of hot loops: Intel names make LLVM prefer 256-bit vectors unless told otherwise."""
        return f'nounwind "prefer-vector-width"="{self.vector_bits}"'


_host: Host | None = None
_machine = None
_lljit = None


def host() -> Host:
    global _host
    if _host is None:
        # Asking LLVM for the host costs 15 ms only when targets are initialised; names and features do not need that.
        features, triple = llvm.get_host_cpu_features().flatten(), llvm.get_process_triple()
        if triple.startswith(("aarch64", "arm64")):  # LLVM does not ask for all of them there
            features = ",".join([features, *sorted(arm_features() - set(features.split(",")))]).strip(",")
        _host = Host(triple, llvm.get_host_cpu_name(), features)
    return _host


# feature of LLVM: (its name in Linux' /proc/cpuinfo, what sysctl calls it on macOS)
_ARM = {"+dotprod": ("asimddp", "FEAT_DotProd"), "+bf16": ("bf16", "FEAT_BF16"), "+i8mm": ("i8mm", "FEAT_I8MM")}


def arm_features(cpuinfo: str = "/proc/cpuinfo") -> set[str]:
    """The dot products that an arm64 processor has, as the system tells: of Linux those that every core lists, of macOS what sysctl says."""
    if sys.platform == "darwin":
        import ctypes

        ask, found = ctypes.CDLL(None).sysctlbyname, set()
        for feature, (_, name) in _ARM.items():
            value, size = ctypes.c_int(0), ctypes.c_size_t(4)
            if ask(f"hw.optional.arm.{name}".encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)) == 0 and value.value:
                found.add(feature)
        return found
    try:
        with open(cpuinfo) as file:
            cores = [set(line.partition(":")[2].split()) for line in file if line.startswith("Features")]
    except OSError:
        return set()
    return {feature for feature, (flag, _) in _ARM.items() if cores and all(flag in core for core in cores)}


def __getattr__(name: str):
    if name == "ATTRIBUTES":
        return host().attributes
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def target_machine():
    """The compiler's target, made on first use; only a miss of the object cache needs it."""
    global _machine
    if _machine is None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        h = host()
        target = llvm.Target.from_triple(h.triple)
        _machine = target.create_target_machine(cpu=h.cpu, features=h.feature_string, opt=3, reloc="pic", codemodel="small")
    return _machine


def optimise(text: str):
    """IR text -> optimised module. Raises RuntimeError with LLVM's message and the offending line."""
    late = re.findall(f'^define internal .*? (@[\\w.]+)\\(.*"{LATE}"', text, re.MULTILINE)
    if late:  # variants that nobody calls yet are kept
        text += f'@llvm.compiler.used = appending global [{len(late)} x ptr] [{", ".join(f"ptr {name}" for name in late)}], section "llvm.metadata"\n'
    module = llvm.parse_assembly(text)
    module.triple = host().triple
    machine = target_machine()
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    options.loop_interleaving = True
    options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return _inline_late(module, builder) if late else module


def _inline_late(module, builder):
    """Inlines the functions that had to stay whole until loops were vectors of calls: those with the attribute LATE."""
    lines = []
    for line in str(module).split("\n"):
        if line.startswith("attributes #") and LATE in line:
            line = line.replace(" noinline ", " alwaysinline ")
        if not line.startswith("@llvm.compiler.used"):  # which kept them so far
            lines.append(line)
    module = llvm.parse_assembly("\n".join(lines))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    return module


def assembly(text: str) -> str:
    """The machine code of an IR module as text, for reading."""
    return target_machine().emit_assembly(optimise(text))


def compile_kernel(key: Hashable, build: Callable[[], str], symbol: str = "kernel") -> int:
    """Address of `symbol` in the module whose IR `build()` returns; built at most once, looked up in memory, then on disk."""
    address = _addresses.get(key)
    if address is None:
        with _lock:
            address = _addresses.get(key)
            if address is None:
                address = _load(key, build, (symbol,))[0]
                _addresses[key] = address
    return address


def compile_module(key: Hashable, build: Callable[[], str], symbols: tuple[str, ...]) -> tuple[int, ...]:
    """Like `compile_kernel` for a module with several entry points."""
    with _lock:
        return _load(key, build, symbols)


def _load(key, build, symbols: tuple[str, ...]) -> tuple[int, ...]:
    blob = _object(key, build)
    addresses = _link(blob, symbols)
    if os.environ.get("STRIDED_PERF_MAP") and sys.platform == "linux":
        _tell_perf(key, blob, dict(zip(symbols, addresses, strict=True)))
    return addresses


def _tell_perf(key: Hashable, blob: bytes, addresses: dict[str, int]) -> None:
    """Lines for Linux's `perf`, which looks up compiled code in /tmp/perf-PID.map: address, size and name of every function of an object, named with the kernel's key.

    The object is ELF with one section of code, which is linked in one piece: the functions' places in it give their addresses.
    """
    name = " ".join(repr(key).split())
    table = struct.unpack_from("<Q", blob, 40)[0]
    count = struct.unpack_from("<H", blob, 60)[0]
    sections = [struct.unpack_from("<IIQQQQII", blob, table + 64 * n) for n in range(count)]
    start, size, names = next((s[4], s[5], s[6]) for s in sections if s[1] == 2)  # SHT_SYMTAB
    places: dict[str, tuple[int, int]] = {}
    for at in range(start, start + size, 24):
        text, info, _, _, place, length = struct.unpack_from("<IBBHQQ", blob, at)
        if info & 15 == 2:  # STT_FUNC
            label = sections[names][4] + text
            places[blob[label:blob.index(0, label)].decode()] = place, length
    # The name can be foreseen and the folder is everybody's: a link that somebody left there is not followed.
    file = os.open(f"/tmp/perf-{os.getpid()}.map", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with open(file, "a") as lines:
        symbol, address = next(iter(addresses.items()))
        base = address - places[symbol][0]
        lines.writelines(f"{base + place:x} {length:x} {label} {name}\n" for label, (place, length) in places.items())


def _object(key, build) -> bytes:
    path = _cache_path(key)
    if path is not None:
        try:
            blob = path.read_bytes()
            if len(blob) > 32 and hashlib.blake2b(blob[32:], digest_size=32).digest() == blob[:32]:
                return blob[32:]
        except OSError:
            pass
    text = build()
    try:
        module = optimise(text)
    except RuntimeError as error:
        raise RuntimeError(f"the kernel {key!r} is not valid LLVM IR: {error}") from None
    blob = target_machine().emit_object(module)
    if path is not None:
        _write(path, hashlib.blake2b(blob, digest_size=32).digest() + blob)
    return blob


_count = 0
_trackers: list[object] = []  # an object's code lives as long as its tracker


_provided: dict[str, int] = {}


def provide(name: str, address: int) -> None:
    """Modules that are linked from now on may name this external global."""
    _provided[name] = address


def _link(blob: bytes, symbols: tuple[str, ...]) -> tuple[int, ...]:
    global _lljit, _count
    if _lljit is None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        # JITLink keeps the sections of an object together. The older linker asks for memory section by section, and ends the process where a crowded address space
        # puts code and constants further apart than the 2 GiB that their references reach.
        _lljit = llvm.create_lljit_compiler(use_jit_link=True, suppress_errors=True)
    _count += 1
    library = llvm.JITLibraryBuilder().add_object_img(blob).add_current_process()
    for name, address in _provided.items():
        library.import_symbol(name, address)
    for symbol in symbols:
        library.export_symbol(symbol)
    tracker = library.link(_lljit, f"strided{_count}")
    _trackers.append(tracker)
    return tuple(tracker[s] for s in symbols)


# ---- the cache on disk ------------------------------------------------------------------------------------------------

_directory: pathlib.Path | None | bool = False  # False: not looked for yet; None: none may be used


def cache_directory() -> pathlib.Path | None:
    """The folder of compiled objects: private to the user (0700, owner checked), or None where no such folder can be had.

    `STRIDED_CACHE_DIR` names another place; set empty, it turns the cache on disk off.
    """
    global _directory
    if _directory is False:
        _directory = _find_directory()
    return _directory  # type: ignore[return-value]


def _find_directory():
    chosen = os.environ.get("STRIDED_CACHE_DIR")
    if chosen == "":
        return None
    try:
        if chosen:
            root = pathlib.Path(chosen)
        elif sys.platform == "darwin":
            root = pathlib.Path.home() / "Library" / "Caches" / "strided"
        else:
            root = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "strided"
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = root.stat()
        # A folder that others can write is a way to run code as this user: never load from it.
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            return None
    except (OSError, RuntimeError):  # RuntimeError: a user without a home, as in a container
        return None
    return root


_source: str | None = None


def _source_digest() -> str:
    """Identity of the generators: the size and time of every file beside this one, of the formats, and of the two others that write texts (a checkout being
    edited must not reuse its old code)."""
    global _source
    if _source is None:
        here = pathlib.Path(__file__).parent
        others = ("dtypes.py", "encoding.py", "block_formats.py", "ops/dlpack.py", "lens/limits.py")
        files = [*(entry for entry in os.scandir(here) if entry.name.endswith(".py")), *(here.parent / name for name in others)]
        marks = sorted((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
        _source = repr(marks)
    return _source


def _cache_path(key) -> pathlib.Path | None:
    directory = cache_directory()
    if directory is None:
        return None
    h = host()
    identity = repr((SOURCE_VERSION, _source_digest(), h.triple, h.cpu, h.feature_string, llvm.llvm_version_info, llvmlite.__version__, key))
    return directory / (hashlib.blake2b(identity.encode(), digest_size=20).hexdigest() + ".o")


_FILES = 16_384  # objects kept on disk; those of older versions of this package are never asked for again
_pruned = False


def _prune(directory: pathlib.Path, limit: int = _FILES) -> None:
    """Removes the older half of the objects where there are more than `limit`. A process that still wanted one compiles it again."""
    try:
        entries = list(os.scandir(directory))
        if len(entries) <= limit:
            return
        dated = []
        for entry in entries:
            try:
                dated.append((entry.stat().st_mtime_ns, entry.path))
            except OSError:  # another process removed it
                pass
        dated.sort()
        for _, path in dated[: -(limit // 2)]:
            try:
                os.unlink(path)
            except OSError:
                pass
    except OSError:
        pass


def _write(path: pathlib.Path, data: bytes) -> None:
    """Atomic: a reader sees the whole object or none. A full or read-only disk only costs the next process a compile."""
    global _pruned
    if not _pruned:
        _pruned = True
        _prune(path.parent)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass


def make_immortal() -> None:
    """Keeps all linked code for the life of the process: the interpreter must not free it while objects or threads still point into it.

    It is the list of trackers that is kept, so that this holds for kernels linked later, too: a daemon thread may be inside one at exit.
    """
    import ctypes

    for thing in (_lljit, _trackers):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
