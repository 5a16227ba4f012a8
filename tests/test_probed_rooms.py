"""Rooms that public training code reaches for: `torch.jit` as under PYTORCH_JIT=0, `torch.hub` without downloads, settings of PyTorch's own compilers."""

import pytest

import strided as torch
from strided.torch_alias import torch_alias


def test_scripted_and_traced_code_is_the_python_it_was():
    def double(x):
        return x * 2

    model = torch.nn.Linear(2, 2)
    assert torch.jit.script(double) is double and torch.jit.trace(model, torch.ones(1, 2)) is model and torch.jit.unused(double) is double
    assert torch.jit.ignore(double) is double and torch.jit.ignore(drop=True)(double) is double and torch.jit.export(double) is double
    assert torch.jit.script_if_tracing(double)(torch.ones(2)).tolist() == [2, 2]
    assert not torch.jit.is_scripting() and not torch.jit.is_tracing() and torch.jit.annotate(list[int], [1]) == [1] and torch.jit.Attribute(3, int) == 3

    class Twice(torch.jit.ScriptModule):
        __constants__ = ["k"]

        @torch.jit.script_method
        def forward(self, x):
            return double(x)

    assert Twice()(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Please call .eval"):
        torch.jit.freeze(model)
    assert torch.jit.optimize_for_inference(model) is model and not model.training
    with pytest.raises(NotImplementedError, match="state_dict"):
        torch.jit.save(model, "m.pt")


@pytest.mark.parametrize("value, kind, answer", [
    ([1], list[int], True), (["a"], list[int], False), ([], list[int], True), ({"a": 1}, dict[str, int], True), ({"a": "b"}, dict[str, int], False),
    ((1, "a"), tuple[int, str], True), ((1, 2), tuple[int, str], False), ((1,), tuple[int, str], False), (None, int | None, True), (3, int | None, True),
    ("a", int | None, False), (3, (int, str), True), (3, int, True), ([[1], [2]], list[list[int]], True), ((1, 2, 3), tuple[int, ...], True),
])  # fmt: skip
def test_isinstance_looks_into_containers(value, kind, answer):
    assert torch.jit.isinstance(value, kind) is answer


def test_modules_of_the_script_compiler_are_found():
    with torch_alias():
        from torch._jit_internal import Final
        from torch.jit.annotations import BroadcastingList2

        assert BroadcastingList2[int] is None and Final is torch.jit.Final


def test_weights_that_were_downloaded_before_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "_DIRECTORY", None)
    assert torch.hub.get_dir() == str(tmp_path / "hub")
    url = "https://example.org/models/tiny-1234.pth?x=1"
    with pytest.raises(NotImplementedError, match="nothing is downloaded here; put what .* gives at .*tiny-1234.pth"):
        torch.hub.load_state_dict_from_url(url)
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    torch.save({"w": torch.arange(3)}, tmp_path / "hub" / "checkpoints" / "tiny-1234.pth")
    assert torch.hub.load_state_dict_from_url(url, progress=False)["w"].tolist() == [0, 1, 2]
    torch.save({"w": torch.ones(1)}, tmp_path / "other.pth")
    assert torch.hub.load_state_dict_from_url(url, model_dir=str(tmp_path), file_name="other.pth")["w"].tolist() == [1]
    torch.hub.set_dir(str(tmp_path / "elsewhere"))
    assert torch.hub.get_dir() == str(tmp_path / "elsewhere")


def test_a_repository_in_a_folder(tmp_path):
    (tmp_path / "part_of_it.py").write_text("SIZE = 3\n")
    (tmp_path / "hubconf.py").write_text('dependencies = ["torch"]\nfrom part_of_it import SIZE\n\ndef ones(n=SIZE):\n    "So many ones."\n    return [1] * n\n\ndef _own():\n    pass\n')
    folder = str(tmp_path)
    assert torch.hub.load(folder, "ones", source="local") == [1, 1, 1] and torch.hub.load(folder, "ones", 2, source="local") == [1, 1]
    assert torch.hub.list(folder, source="local") == ["ones"] and torch.hub.help(folder, "ones", source="local") == "So many ones."
    with pytest.raises(RuntimeError, match="Cannot find callable twos in hubconf"):
        torch.hub.load(folder, "twos", source="local")
    with pytest.raises(NotImplementedError, match='clone pytorch/vision and give its folder with source="local"'):
        torch.hub.load("pytorch/vision", "resnet18")
    with pytest.raises(ValueError, match="Unknown source"):
        torch.hub.load(folder, "ones", source="web")
    (tmp_path / "hubconf.py").write_text('dependencies = ["no_such_package"]\n')
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        torch.hub.list(folder, source="local")


def test_settings_of_compilers_that_are_not_here():
    with torch_alias():
        import torch._dynamo.config
        import torch._functorch.config
        from torch._dynamo import OptimizedModule
        from torch._dynamo.eval_frame import OptimizedModule as same

        assert same is OptimizedModule and isinstance(torch.compile(torch.nn.Linear(2, 2)), OptimizedModule)
        torch._dynamo.config.cache_size_limit = 64
        assert torch._dynamo.config.cache_size_limit == 64
        torch._dynamo.config.cache_size_limit = 8
        for config in (torch._dynamo.config, torch._functorch.config):
            name = config.__name__.replace("strided", "torch")
            with pytest.raises(AttributeError, match=f"{name}.no_such_setting does not exist"):
                config.no_such_setting = 1
        torch._dynamo.reset()
        torch._dynamo.mark_dynamic(torch.ones(2), 0)
        assert torch._dynamo.disable(len)([1]) == 1 and torch._dynamo.allow_in_graph(len) is len and not torch._dynamo.is_compiling()
        with pytest.raises(NotImplementedError, match="reasons"):
            torch._dynamo.explain(len)


def test_graphs_are_imported_and_refused_when_made():
    with torch_alias():
        from torch import fx
        from torch.fx.graph_module import GraphModule
        from torch.fx.node import Node

        assert fx.Node is Node is fx.node.Node and not isinstance(torch.nn.Linear(1, 1), (GraphModule, fx.Proxy)) and fx.wrap("len") == "len" and fx.wrap(len) is len

    class Own(fx.Tracer):
        pass

    for make in (Own, fx.symbolic_trace, GraphModule):
        with pytest.raises(NotImplementedError, match="what is recorded here are kernels, not a graph of Python"):
            make(torch.nn.Linear(1, 1))


def test_exports_are_asked_about_and_refused():
    with torch_alias():
        from torch.onnx import symbolic_opset11 as opset11
        from torch.onnx.symbolic_helper import parse_args

        assert torch.onnx.is_in_onnx_export() is False and parse_args("v", "f")(len) is len and torch.onnx.register_custom_op_symbolic("a::b", len, 11) is None
        with pytest.raises(AttributeError, match="module 'torch.onnx.symbolic_opset11' has no attribute 'unsqueeze'"):
            opset11.unsqueeze
        with pytest.raises(NotImplementedError, match="export from PyTorch"):
            torch.onnx.export(torch.nn.Linear(1, 1), (torch.ones(1, 1),), "m.onnx")


def test_profiles_are_planned():
    step = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [step(i).name for i in range(10)] == ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE"]
    with torch.profiler.record_function("part"):
        assert torch.profiler.ProfilerActivity.CPU.name == "CPU"
    with pytest.raises(NotImplementedError, match="execution_trace_observer is not here"):
        torch.profiler.profile(execution_trace_observer=object())


def test_marks_of_quantisation_are_identities():
    wrapped = torch.ao.quantization.QuantWrapper(torch.nn.Linear(2, 1, bias=False).eval())
    torch.nn.init.ones_(wrapped.module.weight)
    assert wrapped(torch.tensor([[1.0, 2.0]])).item() == 3 and not wrapped.quant.training and list(wrapped.state_dict()) == ["module.weight"]
    assert not hasattr(torch.ao.quantization, "convert")


def test_a_package_registers_what_its_library_would_compute():
    with pytest.raises(OSError, match="Could not load this library: /x/_C.so: its operators are compiled for PyTorch's C"):
        torch.ops.load_library("/x/_C.so")

    @torch.library.register_fake("tests_probed::later")
    def fake(x):
        return x.new_empty(x.shape[0])

    @torch.library.custom_op("tests_probed::later", mutates_args=())
    def later(x: torch.Tensor) -> torch.Tensor:
        return x.sum(1)

    assert later(torch.ones(2, 3)).tolist() == [3, 3] and later(torch.ones(2, 3, device="meta")).shape == (2,)
    with pytest.raises(NotImplementedError, match="cannot be extended"):
        torch.library.register_fake("aten::add")(fake)
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU) | torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)
    assert keys.has(torch._C.DispatchKey.Meta) and not keys.has(torch._C.DispatchKey.CUDA)
    torch._C._log_api_usage_once("a.b")
    assert torch._C._get_tracing_state() is None


def test_kinds_of_values():
    with torch_alias():
        from torch.types import Device, Number, _device, _dtype, _size  # noqa: F401

        assert _device is torch.device and _dtype is torch.dtype and isinstance(torch.Size([1]), _size) and isinstance(1.5, Number)


@pytest.mark.parametrize("name, fits", [
    ("boolean", [True, False, False, True]), ("real", [True, True, True, True]), ("positive", [False, True, True, True]), ("unit_interval", [True, True, False, True]),
    ("nonnegative_integer", [True, False, True, True]), ("positive_integer", [False, False, True, True]),
])  # fmt: skip
def test_constraints_of_numbers(name, fits):
    constraints = torch.distributions.constraints
    assert getattr(constraints, name).check(torch.tensor([0.0, 0.5, 2.0, 1.0])).tolist() == fits
    assert constraints.real.check(torch.tensor([float("nan")])).tolist() == [False] and repr(constraints.positive) == "GreaterThan(lower_bound=0.0)"
    assert constraints.half_open_interval(0, 1).check(torch.tensor([0.0, 1.0])).tolist() == [True, False]


def test_constraints_of_vectors_and_matrices():
    with torch_alias():
        from torch.distributions import constraints
    x = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    assert constraints.positive_definite.check(x).item() and not constraints.positive_definite.check(-x).item() and constraints.symmetric.check(x).item()
    assert constraints.lower_cholesky.check(x.tril()).item() and not constraints.lower_cholesky.check(x).item() and not constraints.lower_triangular.check(x).item()
    assert constraints.simplex.check(torch.tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [True, False] and constraints.simplex.event_dim == 1
    assert constraints.one_hot.check(torch.eye(2)).all() and constraints.independent(constraints.positive, 1).check(x).tolist() == [True, True]


def test_classes_of_a_device_that_is_not_there():
    x = torch.ones(2)
    assert not isinstance(x, torch.cuda.FloatTensor) and torch.cuda.Stream is torch.cuda.Stream and (torch.cuda.CUDAGraph | None) is not None
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.cuda.Stream()
    assert x.type(torch.LongTensor).dtype is torch.int64 and x.long().type(torch.FloatTensor).dtype is torch.float32


def test_a_factor_that_is_a_tensor_is_recorded():
    step = torch.compile(lambda p, update, a: p.add_(update, alpha=a), fullgraph=True)
    p = torch.zeros(3)
    for a in (1.0, -2.0, 0.5, 1.0):
        step(p, torch.arange(3.0), torch.tensor(a))
    assert p.tolist() == [0, 0.5, 1.0]
    less = torch.compile(lambda x, y, a: torch.sub(x, y, alpha=a), fullgraph=True)
    assert [less(torch.ones(2), torch.arange(2.0), torch.tensor(a)).tolist() for a in (1.0, 3.0, 2.0)] == [[1, 0], [1, -2], [1, -1]]
    assert torch.add(torch.ones(2), 2, alpha=torch.tensor(3)).tolist() == [7, 7]


def test_what_shares_memory_by_safetensors_names():
    from strided.io.safetensors import storage_ptr, storage_size

    x = torch.zeros(3, 4)
    assert storage_size(x[1:]) == 48 and storage_ptr(x[1:]) == storage_ptr(x) == x.data_ptr()


def test_tensors_over_processes_are_tested_for():
    with torch_alias():
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.tensor import DTensor

    assert not isinstance(torch.ones(1), DTensor)
    with pytest.raises(NotImplementedError, match="torch.distributed.DeviceMesh: not available, strided runs in one process"):
        DeviceMesh("cpu", [0])
