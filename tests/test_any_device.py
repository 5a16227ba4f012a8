"""Names of code that is written for any device and any tracer: torch.cpu, get_device_module, symbolic sizes, checks of whole tensors, gradients of softmax by name."""
import pytest

import strided as torch
from strided import symbolic


def test_the_processor_has_the_names_of_a_device():
    cpu = torch.get_device_module()
    assert cpu is torch.cpu is torch.get_device_module("cpu") is torch.get_device_module(torch.device("cpu", 0))
    assert torch.get_device_module("cuda:1") is torch.cuda and torch.get_device_module("mps") is torch.mps
    assert cpu.is_available() and cpu.is_initialized() and cpu.device_count() == 1 and cpu.current_device() == "cpu"
    cpu.synchronize()
    cpu.set_device("cpu")
    first, second = cpu.current_stream(), cpu.Stream()
    with cpu.stream(second):
        assert cpu.current_stream() is second
        with cpu.stream(None):
            assert cpu.current_stream() is second
        event = cpu.Event()
        event.record()
        assert event.query() and event.synchronize() is None and second.wait_event(event) is None
    assert cpu.current_stream() is first and cpu.amp is torch.amp and torch._C._get_accelerator() == torch.device("cpu")
    found = cpu.get_capabilities()
    from strided.kernels.jit import host

    assert found["architecture"] == host().arch
    if host().arch == "x86_64":
        assert found["avx2"] == ("+avx2" in host().features) and found["sse4_1"] and found["avx512_f"] == ("+avx512f" in host().features)
    with pytest.raises(RuntimeError, match="Device 'hpu' does not have a corresponding module"):
        torch.get_device_module("hpu")
    with pytest.raises(RuntimeError, match="Invalid value of device '3'"):
        torch.get_device_module(3)
    with pytest.raises(AttributeError, match=r"module 'torch\.cpu' has no attribute 'no_such'"):
        cpu.no_such


def test_streams_of_the_processor():
    """As in PyTorch without an accelerator."""
    stream, event = torch.Stream(), torch.Event("cpu", enable_timing=True)
    assert stream.query() and event.query() and stream.device == event.device == torch.device("cpu") and stream == torch.Stream(device="cpu")
    assert hash(stream) == hash(torch.Stream()) and stream != 3
    assert repr(stream) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0" and repr(event) == "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"
    stream.synchronize(), stream.wait_event(event), event.synchronize(), event.wait()
    with stream as current:
        assert current is stream and not stream.is_capturing()
    for use in (event.record, stream.record_event, lambda: stream.wait_stream(torch.Stream()), lambda: event.elapsed_time(event)):
        with pytest.raises(RuntimeError, match="cpu backend doesn't support events"):
            use()
    for kind in (torch.Stream, torch.Event):
        with pytest.raises(RuntimeError, match="PyTorch is not linked with support for meta devices"):
            kind("meta")


def test_functions_of_symbolic_numbers_take_plain_ones():
    """The values are PyTorch's for plain numbers."""
    assert torch.sym_int(-3.7) == -3 and torch.sym_float(3) == 3.0 and torch.sym_not(0) is True and torch.sym_ite(True, 1, 2) == 1
    assert repr([torch.sym_max(4, 4.0), torch.sym_max(3, 4), torch.sym_min(3, 4.0), torch.sym_sqrt(4)]) == "[4.0, 4, 3.0, 2.0]"
    assert torch.sym_sum([1, 2, 3]) == torch.sym_sum(1, 2, 3) == 6 and torch.sym_sum([]) == 0
    size = torch.ones(2, 3).shape[0]
    assert not isinstance(size, (torch.SymInt, torch.SymFloat)) and not isinstance(True, torch.SymBool) and torch.SymInt is symbolic.SymInt
    with pytest.raises(AssertionError, match="type mismatch"):
        torch.sym_ite(True, 1, 2.0)
    with pytest.raises(AssertionError, match="expected an int or a float"):
        torch.sym_max(torch.ones(1), 1)
    with pytest.raises(NotImplementedError, match="torch.SymInt: sizes are plain numbers here"):
        torch.SymInt(3)


def test_checks_of_whole_tensors():
    torch._check_tensor_all(torch.tensor([True, True]), lambda: "never asked")
    with pytest.raises(RuntimeError, match="two tokens are wrong"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "two tokens are wrong")
    with pytest.raises(ValueError, match="Expected cond to be True"):
        torch._check_tensor_all_with(ValueError, torch.tensor(False))
    with pytest.raises(TypeError, match="cond must be a tensor"):
        torch._check_tensor_all(True)
    with pytest.raises(TypeError, match="must have dtype torch.bool, but got torch.int64"):
        torch._check_tensor_all(torch.tensor([1]))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradients_of_softmax_by_name(name):
    torch.manual_seed(0)
    x, g = torch.randn(3, 5, dtype=torch.float64, requires_grad=True), torch.randn(3, 5, dtype=torch.float64)
    y = getattr(torch, name)(x, 1)
    expected = torch.autograd.grad(y, x, g, retain_graph=True)[0]
    data = getattr(torch, f"_{name}_backward_data")
    torch.testing.assert_close(data(g, y.detach(), 1, torch.float64), expected)
    assert data(g, y.detach(), -1, torch.float32).dtype is torch.float32
    assert torch.autograd.gradcheck(lambda g, y: data(g, y, 1, torch.float64), (g.clone().requires_grad_(), y.detach().requires_grad_()))


def test_older_names():
    assert torch.legacy_contiguous_format is torch.contiguous_format
    assert torch.zeros_like(torch.ones(2, 3).t(), memory_format=torch.legacy_contiguous_format).stride() == (2, 1)
    a, b, ends = torch.arange(12.0).view(4, 3), torch.ones(2, 3, 2), torch.tensor([1, 4], dtype=torch.int32)
    assert torch._grouped_mm(a, b, ends).tolist() == torch.nn.functional.grouped_mm(a, b, offs=ends).tolist() == [[3, 3], [12, 12], [21, 21], [30, 30]]


def test_cudnn_switches_in_a_block():
    cudnn = torch.backends.cudnn
    before = (cudnn.enabled, cudnn.deterministic)
    with pytest.raises(KeyError), cudnn.flags(enabled=True, deterministic=True):
        assert (cudnn.enabled, cudnn.deterministic) == (True, True)
        raise KeyError
    assert (cudnn.enabled, cudnn.deterministic) == before
    assert torch.backends.mps.is_macos_or_newer(14, 0) is False
