"""Public names of torch that are deliberately not here: `REFUSED` says of each why, and what to use instead.

Such a name is absent, so that `hasattr` says so; the AttributeError of who asks for it carries the reason. Holds no feature and imports nothing.
A module's name stands for all that lies in it. Names that exist and raise NotImplementedError when they are called are listed too.
"""


class Refused(AttributeError, NotImplementedError):
    """A name of PyTorch's that this package does not have on purpose. `hasattr` is False for it, as for every absent name."""


REFUSED: dict[str, tuple[str, str]] = {}  # "torch.vmap" → (reason, what to use instead)


def _group(reason: str, instead: str, names: str, prefix: str = "torch.") -> None:
    REFUSED.update({prefix + name: (reason, instead) for name in names.split()})


# ---- number formats and layouts -----------------------------------------------------------------------------------------------

_DENSE = "tensors here are dense"
_group(_DENSE, "use a dense tensor, or index_add and gather on the indices", "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor")
_group(_DENSE, "use mm, matmul or addmm", "sparse hsmm hspmm smm sspaddmm saddmm")
_group(
    _DENSE, "keep values and indices in tensors of their own",
    """values indices _values _indices coalesce is_coalesced to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc sparse_dim dense_dim
    sparse_mask sparse_resize_ sparse_resize_and_clear_ crow_indices col_indices ccol_indices row_indices smm sspaddmm""", "torch.Tensor.",
)  # fmt: skip
_group(_DENSE, "the tensor itself is dense: leave the call out", "to_mkldnn", "torch.Tensor.")
_group("gradients here are dense", "use Adam or SGD", "SparseAdam", "torch.optim.")

_NESTED = "a tensor here has one size along each dimension"
_group(_NESTED, "pad (nn.utils.rnn.pad_sequence) and mask, or keep a list of tensors", "nested jagged")
_group(_NESTED, "pad (nn.utils.rnn.pad_sequence) and mask", "to_padded_tensor", "torch.Tensor.")

_QUANTIZED = "quantized tensors are block tensors here"
_group(
    _QUANTIZED, "use torch.quantize(x, \"int8\") and dequantize (docs/block_formats.md), or keep integers and their scale in two tensors",
    """qint8 quint8 qint32 quint4x2 quint2x4 qscheme per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric per_channel_affine_float_qparams
    quantize_per_tensor quantize_per_tensor_dynamic quantize_per_channel int_repr q_scale q_zero_point q_per_channel_scales q_per_channel_zero_points
    q_per_channel_axis fake_quantize_per_tensor_affine fake_quantize_per_channel_affine empty_quantized ao.nn ao.ns ao.pruning ao.quantization.convert ao.quantization.prepare
    ao.quantization.prepare_qat ao.quantization.quantize_dynamic ao.quantization.fuse_modules ao.quantization.get_default_qconfig quantization backends.quantized nn.quantized nn.quantizable
    nn.qat nn.intrinsic""",
)  # fmt: skip
_group(
    _QUANTIZED, "use torch.quantize(x, \"int8\") and dequantize (docs/block_formats.md), or keep integers and their scale in two tensors",
    "int_repr qscheme q_scale q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis", "torch.Tensor.",
)  # fmt: skip
_group("products of scaled low-precision matrices have no kernel", "convert to float32 or bfloat16, scale and multiply",
       "_scaled_mm nn.functional.scaled_mm nn.functional.scaled_grouped_mm nn.functional.ScalingType nn.functional.SwizzleType")


# ---- programs as data ----------------------------------------------------------------------------------------------------------

_GRAPH = "what is recorded here are kernels, not a graph of Python"
_group(_GRAPH, "call the function or module itself; save its state_dict() with torch.save", "export package jit.save jit.load jit.CompilationUnit")
_group(_GRAPH, "use hooks (register_forward_hook), or `strided annotate` for what each line does", "fx.experimental fx.passes")
_group(_GRAPH, "export from PyTorch: a state_dict() saved here loads there", "onnx.dynamo_export onnx.ExportOptions onnx.ONNXProgram onnx.OperatorExportTypes onnx.TrainingMode onnx.utils")
_group(_GRAPH, "torch.compile runs a call eagerly where it must, and says why in the result's `reasons`", "_dynamo.explain _dynamo.export _dynamo.optimize _dynamo.backends")
_group(_GRAPH, "torch.compile needs no settings", "_inductor.compile _inductor.ir _inductor.utils")
_group("first-class dimensions are not here", "index with positions; for the place of a value, x.tolist().index(v)", "index", "torch.Tensor.")
_group(_GRAPH, "write if and while in Python", "cond while_loop")
_group(
    "operators here are Python functions, without a registry for other languages", "use library.custom_op, or autograd.Function",
    """library.Library library.define library.impl library.impl_abstract library.infer_schema library.opcheck
    library.triton_op library.wrap_triton library.register_vmap library.register_torch_dispatch library.get_ctx""",
)  # fmt: skip
_group("operators here are Python functions, without a registry for other languages", "use library.custom_op", "_custom_ops")
_group("operators here have no overloads by name", "call torch.<name>, as in torch.add", "ops.aten ops.prims ops.prim")
_group("there is no C++ core behind these tensors", "use the public function of the same purpose", "_C._nn _C._functions _C._jit_internal _C._distributed_c10d ops.torchvision")

# ---- machines ------------------------------------------------------------------------------------------------------------------

_group("strided computes on the CPU", "guard it with torch.cuda.is_available()", "cuda")
_group("strided computes on the CPU", "guard it with torch.backends.mps.is_available()", "mps")
_group("strided computes on the CPU", "leave it out, or write .to(device) with a device that was chosen by is_available()", "cuda xpu ipu mtia", "torch.Tensor.")
_group("strided computes on the CPU", "guard it with torch.xpu.is_available()", "xpu")
_group("strided computes on the CPU", "guard it with torch.accelerator.is_available()", "accelerator mtia")
_group("autocast has the device 'cpu' only", "use get_autocast_dtype('cpu')", "set_autocast_gpu_dtype get_autocast_xla_dtype set_autocast_xla_dtype")
_group("strided runs in one process", "the group that init_process_group makes has this process only: use ordinary tensors and the module itself", "distributed")
_group("strided runs in one process", "a DataLoader's num_workers reads in processes of its own; torch.multiprocessing starts others", "fork wait jit.fork jit.wait")
_group("there are no dual numbers: derivatives are computed backwards", "use torch.func.jvp, jacfwd or autograd.functional.jvp, which take the same products", "autograd.forward_ad")
_group("events go to the lenses", "use torch.profiler.profile, or `strided annotate script.py`: time, bytes and FLOPs a line", "monitor autograd.profiler.emit_nvtx autograd.profiler.emit_itt")

# ---- left out ------------------------------------------------------------------------------------------------------------------

_group(
    "data is read by datasets and loaders", "write an IterableDataset whose __iter__ is a generator",
    """utils.data.datapipes utils.data.graph utils.data.IterDataPipe utils.data.MapDataPipe utils.data.DFIterDataPipe utils.data.DataChunk utils.data.functional_datapipe
    utils.data.argument_validation utils.data.runtime_validation utils.data.runtime_validation_disabled utils.data.guaranteed_datapipes_determinism
    utils.data.non_deterministic""",
)  # fmt: skip
_group("there is one way to compute attention", "call scaled_dot_product_attention; sdpa_kernel accepts any backend",
       "nn.attention.activate_flash_attention_impl nn.attention.current_flash_attention_impl nn.attention.list_flash_attention_impls "
       "nn.attention.register_flash_attention_impl nn.attention.restore_flash_attention_impl nn.attention.WARN_FOR_UNFUSED_KERNELS")
_group("strided computes on one device", "call the module itself", "nn.parallel.replicate nn.parallel.parallel_apply")
_group("a masked tensor is two tensors", "keep the mask, and use where, masked_fill and masked_select", "masked")
_group("recurrent cells are modules", "use nn.LSTM, nn.GRU, nn.RNN and their cells", "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell")

_group("it iterates for a few eigenvalues", "use linalg.eigh, which has all", "lobpcg")
_group("PyTorch has removed it", "use linalg.solve", "solve")
_group("PyTorch has removed it", "use linalg.solve", "solve", "torch.Tensor.")
_group("PyTorch has removed it", "use linalg.eigh", "symeig")
_group("PyTorch has removed it", "use linalg.eigh", "symeig", "torch.Tensor.")
_group("PyTorch has removed it", "use linalg.lstsq", "lstsq")
_group("PyTorch has removed it", "use linalg.lstsq", "lstsq", "torch.Tensor.")
_group("PyTorch has removed it", "use linalg.matrix_rank", "matrix_rank")


# ---- asking for a name ---------------------------------------------------------------------------------------------------------


def why(name: str) -> tuple[str, str] | None:
    """(reason, what to use instead) for a full name such as "torch.fft.rfft", by its own row or that of a module around it; None for other names."""
    while name != "torch":
        if name in REFUSED:
            return REFUSED[name]
        name = name.rpartition(".")[0] or "torch"
    return None


def absent(name: str) -> AttributeError:
    """The error for a full name such as "torch.vmap" that does not exist: PyTorch's sentence, then reason and alternative where they are known."""
    holder, _, last = name.rpartition(".")
    sentence = f"'Tensor' object has no attribute '{last}'" if holder == "torch.Tensor" else f"module '{holder}' has no attribute '{last}'"
    row = why(name)
    return AttributeError(sentence) if row is None else Refused(f"{sentence}: {row[0]}; {row[1]}")


def missing(module: str):
    """The `__getattr__` of a module that has nothing beyond its own names."""

    def __getattr__(name: str):
        raise absent(f"{module}.{name}")

    return __getattr__


class _RefusedAttribute:
    """Stands in a class for an attribute that is refused: looking it up raises; an instance may still be given one of that name."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance, owner):
        raise absent(self.name)


def guard(Tensor: type) -> None:
    """Makes the refused attributes of tensors say why. As descriptors: a `__getattr__` on the class would slow down every attribute there is."""
    for name in REFUSED:
        if name.startswith("torch.Tensor.") and name[13:] not in vars(Tensor):
            setattr(Tensor, name[13:], _RefusedAttribute(name))
