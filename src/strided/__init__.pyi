"""The names at the top level of the package. Written by tools/stubs.py."""
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator
from typing import Any, overload

from strided import _C as _C
from strided import __config__ as __config__
from strided import _dynamo as _dynamo
from strided import _functorch as _functorch
from strided import _higher_order_ops as _higher_order_ops
from strided import _inductor as _inductor
from strided import _lowrank as _lowrank
from strided import _utils as _utils
from strided import accelerator as accelerator
from strided import amp as amp
from strided import ao as ao
from strided import array_api as array_api
from strided import autograd as autograd
from strided import backends as backends
from strided import compiler as compiler
from strided import constraints as constraints
from strided import cpu as cpu
from strided import cuda as cuda
from strided import data as data
from strided import distributed as distributed
from strided import distributions as distributions
from strided import fft as fft
from strided import func as func
from strided import functional as functional
from strided import futures as futures
from strided import fx as fx
from strided import hub as hub
from strided import io as io
from strided import jit as jit
from strided import lens as lens
from strided import library as library
from strided import linalg as linalg
from strided import mps as mps
from strided import multiprocessing as multiprocessing
from strided import nn as nn
from strided import onnx as onnx
from strided import optim as optim
from strided import overrides as overrides
from strided import profiler as profiler
from strided import random as random
from strided import signal as signal
from strided import special as special
from strided import storage as storage
from strided import streams as streams
from strided import symbolic as symbolic
from strided import testing as testing
from strided import torch_alias as torch_alias
from strided import torch_version as torch_version
from strided import types as types
from strided import utils as utils
from strided import version as version
from strided import xpu as xpu
from strided._C import PyTorchFileReader as PyTorchFileReader
from strided._lowrank import pca_lowrank as pca_lowrank
from strided._lowrank import svd_lowrank as svd_lowrank
from strided.amp import GradScaler as GradScaler
from strided.amp import autocast as autocast
from strided.amp import clear_autocast_cache as clear_autocast_cache
from strided.amp import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from strided.amp import get_autocast_dtype as get_autocast_dtype
from strided.amp import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from strided.amp import is_autocast_cache_enabled as is_autocast_cache_enabled
from strided.amp import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from strided.amp import is_autocast_enabled as is_autocast_enabled
from strided.amp import set_autocast_cache_enabled as set_autocast_cache_enabled
from strided.amp import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from strided.amp import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from strided.amp import set_autocast_dtype as set_autocast_dtype
from strided.amp import set_autocast_enabled as set_autocast_enabled
from strided.autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from strided.autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from strided.autograd.modes import enable_grad as enable_grad
from strided.autograd.modes import inference_mode as inference_mode
from strided.autograd.modes import is_grad_enabled as is_grad_enabled
from strided.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from strided.autograd.modes import no_grad as no_grad
from strided.autograd.modes import set_grad_enabled as set_grad_enabled
from strided.block_formats import BlockFormat as BlockFormat
from strided.block_formats import grouped_int as grouped_int
from strided.block_tensor import BlockTensor as BlockTensor
from strided.compile import compile as compile
from strided.cuda import OutOfMemoryError as OutOfMemoryError
from strided.dtypes import DType as DType
from strided.dtypes import Device as Device
from strided.dtypes import Device as Device, DType as DType
from strided.dtypes import can_cast as can_cast
from strided.dtypes import finfo as finfo
from strided.dtypes import get_default_device as get_default_device
from strided.dtypes import get_default_dtype as get_default_dtype
from strided.dtypes import iinfo as iinfo
from strided.dtypes import promote_types as promote_types
from strided.dtypes import result_type as result_type
from strided.dtypes import set_default_device as set_default_device
from strided.dtypes import set_default_dtype as set_default_dtype
from strided.formats import MemoryFormat as MemoryFormat
from strided.formats import StorageLayout as StorageLayout
from strided.func import vmap as vmap
from strided.futures import Future as Future
from strided.io import serialization as serialization
from strided.io.saving import save as save
from strided.io.serialization import load as load
from strided.kernels.native import get_num_threads as get_num_threads
from strided.kernels.native import set_num_threads as set_num_threads
from strided.layout import Size as Size
from strided.library import Tag as Tag
from strided.memory import empty_cache as empty_cache
from strided.memory import max_memory_allocated as max_memory_allocated
from strided.memory import memory_allocated as memory_allocated
from strided.memory import memory_reserved as memory_reserved
from strided.memory import memory_stats as memory_stats
from strided.memory import reset_peak_memory_stats as reset_peak_memory_stats
from strided.memory import set_memory_limit as set_memory_limit
from strided.nn.functions.activation import celu_ as celu_
from strided.nn.functions.activation import rrelu as rrelu
from strided.nn.functions.activation import rrelu_ as rrelu_
from strided.nn.functions.activation import selu_ as selu_
from strided.nn.functions.activation import threshold_ as threshold_
from strided.nn.functions.bilinear import bilinear as bilinear
from strided.nn.functions.conv import conv1d as conv1d
from strided.nn.functions.conv import conv2d as conv2d
from strided.nn.functions.conv import conv3d as conv3d
from strided.nn.functions.conv import conv_transpose1d as conv_transpose1d
from strided.nn.functions.conv import conv_transpose2d as conv_transpose2d
from strided.nn.functions.conv import conv_transpose3d as conv_transpose3d
from strided.nn.functions.distance import pairwise_distance as pairwise_distance
from strided.nn.functions.distance import pdist as pdist
from strided.nn.functions.dropout import alpha_dropout as alpha_dropout
from strided.nn.functions.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from strided.nn.functions.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from strided.nn.functions.pooling import avg_pool1d as avg_pool1d
from strided.nn.functions.pooling import max_pool1d as max_pool1d
from strided.nn.functions.pooling import max_pool2d as max_pool2d
from strided.nn.functions.pooling import max_pool3d as max_pool3d
from strided.nn.functions.toplevel import affine_grid_generator as affine_grid_generator
from strided.nn.functions.toplevel import batch_norm as batch_norm
from strided.nn.functions.toplevel import embedding_bag as embedding_bag
from strided.nn.functions.toplevel import feature_alpha_dropout as feature_alpha_dropout
from strided.nn.functions.toplevel import feature_dropout as feature_dropout
from strided.nn.functions.toplevel import feature_dropout_ as feature_dropout_
from strided.nn.functions.toplevel import grid_sampler as grid_sampler
from strided.nn.functions.toplevel import group_norm as group_norm
from strided.nn.functions.toplevel import instance_norm as instance_norm
from strided.nn.functions.toplevel import native_batch_norm as native_batch_norm
from strided.nn.functions.toplevel import native_dropout as native_dropout
from strided.nn.functions.toplevel import native_group_norm as native_group_norm
from strided.nn.functions.vision import channel_shuffle as channel_shuffle
from strided.nn.functions.vision import pixel_shuffle as pixel_shuffle
from strided.nn.functions.vision import pixel_unshuffle as pixel_unshuffle
from strided.ops import return_types as return_types
from strided.ops.blocks.convert import as_blocks as as_blocks
from strided.ops.complexlike import is_conj as is_conj
from strided.ops.complexlike import is_neg as is_neg
from strided.ops.data import as_tensor as as_tensor
from strided.ops.data import asarray as asarray
from strided.ops.data import from_numpy as from_numpy
from strided.ops.data import frombuffer as frombuffer
from strided.ops.data import scalar_tensor as scalar_tensor
from strided.ops.generator import Generator as Generator
from strided.ops.generator import fork_rng as fork_rng
from strided.ops.generator import get_rng_state as get_rng_state
from strided.ops.generator import initial_seed as initial_seed
from strided.ops.generator import manual_seed as manual_seed
from strided.ops.generator import seed as seed
from strided.ops.generator import set_rng_state as set_rng_state
from strided.ops.legacy import set_default_tensor_type as set_default_tensor_type
from strided.ops.shape import block_diag as block_diag
from strided.ops.shape import broadcast_shapes as broadcast_shapes
from strided.ops.shape import cartesian_prod as cartesian_prod
from strided.ops.shape import combinations as combinations
from strided.printing import set_printoptions as set_printoptions
from strided.streams import Event as Event
from strided.streams import Stream as Stream
from strided.symbolic import SymBool as SymBool
from strided.symbolic import SymFloat as SymFloat
from strided.symbolic import SymInt as SymInt
from strided.symbolic import sym_float as sym_float
from strided.symbolic import sym_int as sym_int
from strided.symbolic import sym_ite as sym_ite
from strided.symbolic import sym_max as sym_max
from strided.symbolic import sym_min as sym_min
from strided.symbolic import sym_not as sym_not
from strided.symbolic import sym_sqrt as sym_sqrt
from strided.symbolic import sym_sum as sym_sum
from strided.tensor import Tensor as Tensor
from strided.tensor import Tensor as Tensor, _aminmax as _aminmax, _cummax as _cummax, _cummin as _cummin, _frexp as _frexp, _geqrf as _geqrf, _histogram as _histogram, _histogramdd as _histogramdd, _kthvalue as _kthvalue, _lu_unpack as _lu_unpack, _max as _max, _median as _median, _min as _min, _mode as _mode, _nanmedian as _nanmedian, _qr as _qr, _slogdet as _slogdet, _sort as _sort, _svd as _svd, _topk as _topk, _triangular_solve as _triangular_solve
from strided.tensor import TypedStorage as TypedStorage
from strided.tensor import UntypedStorage as UntypedStorage
from strided.torch_version import TorchVersion as TorchVersion

BFloat16Storage: Any
BFloat16Tensor: Any
BoolStorage: Any
BoolTensor: Any
ByteStorage: Any
ByteTensor: Any
CharStorage: Any
CharTensor: Any
DoubleStorage: Any
DoubleTensor: Any
FloatStorage: Any
FloatTensor: Any
HalfStorage: Any
HalfTensor: Any
IntStorage: Any
IntTensor: Any
LongStorage: Any
LongTensor: Any
ShortStorage: Any
ShortTensor: Any
__version__: TorchVersion
def _assert(condition: Any, message: Any) -> None:
    r"""AssertionError with the message unless the condition holds."""
def _check(cond: _bool, message: Any = None) -> None:
    r"""Raises RuntimeError with what `message()` returns unless cond is True."""
def _check_index(cond: _bool, message: Any = None) -> None:
    r"""`_check`, with IndexError."""
def _check_is_size(i: _int, message: Any = None, *, max: _int | None = None) -> None:
    r"""Raises RuntimeError unless 0 <= i (and i <= max)."""
def _check_not_implemented(cond: _bool, message: Any = None) -> None:
    r"""`_check`, with NotImplementedError."""
def _check_tensor_all(cond: Tensor, message: Any = None) -> None:
    r"""`_check_tensor_all_with`, with RuntimeError."""
def _check_tensor_all_with(error_type, cond: Tensor, message: Any = None) -> None:
    r"""Raises error_type with what `message()` returns unless all of cond, a tensor of bools, are True."""
def _check_type(cond: _bool, message: Any = None) -> None:
    r"""`_check`, with TypeError."""
def _check_value(cond: _bool, message: Any = None) -> None:
    r"""`_check`, with ValueError."""
def _check_with(kind, cond: Any, message: Any) -> None: ...
def _dirichlet_grad(x, concentration, total) -> Tensor:
    r"""How coordinates x of Dirichlet points move with their own concentration, of `total` in all, but for the factor that keeps their sum 1."""
def _grouped_mm(input: Tensor, mat2: Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Tensor:
    r"""`nn.functional.grouped_mm`, by its older name."""
def _int_mm(self, mat2, *, out=None) -> Tensor:
    r"""Product of a matrix of int8 (or uint8) and one of int8, summed and kept in int32: [m, k] @ [k, n] -> [m, n], without wrapping to eight bits."""
def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: _int, input_dtype: Any) -> Tensor:
    r"""The gradient of log_softmax's input from that of its `output`, in `input_dtype`."""
def _sample_dirichlet(input, generator=None) -> Tensor:
    r"""Points of simplices with concentrations `input` [.., K]: gamma numbers over their sum."""
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: _int, input_dtype: Any) -> Tensor:
    r"""The gradient of softmax's input from that of its `output`, in `input_dtype`: what autograd functions of one's own end with."""
def _standard_gamma(input, generator=None) -> Tensor:
    r"""Gamma numbers of concentrations `input` and rate 1. The gradient is that of a number at a fixed probability (implicit reparameterisation)."""
def _standard_gamma_grad(input, output) -> Tensor:
    r"""How gamma numbers `output` of concentrations `input` move with these; both floats of one shape."""
def abs(input, *, out=None) -> Tensor:
    r"""`abs` of each element of a tensor of any shape."""
def abs_(input) -> Tensor:
    r"""In-place form of `abs`."""
def absolute(input, *, out=None) -> Tensor:
    r"""`abs` of each element of a tensor of any shape."""
def absolute_(input) -> Tensor:
    r"""In-place form of `abs`."""
def acos(input, *, out=None) -> Tensor:
    r"""`acos` of each element of a tensor of any shape, as floats where it holds integers."""
def acos_(input) -> Tensor:
    r"""In-place form of `acos`."""
def acosh(input, *, out=None) -> Tensor:
    r"""`acosh` of each element of a tensor of any shape, as floats where it holds integers."""
def acosh_(input) -> Tensor:
    r"""In-place form of `acosh`."""
def add(input, other, *, alpha=1, out=None) -> Tensor:
    r"""`add` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def addbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None) -> Tensor:
    r"""beta * input + alpha * sum over the batch of batch1 @ batch2: [m, n], [b, m, k], [b, k, n] -> [m, n]."""
def addbmm_(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
    r"""In-place form of `addbmm`."""
def addcdiv(input, tensor1, tensor2, *, value=1, out=None) -> Tensor:
    r"""input + value * tensor1 / tensor2."""
def addcdiv_(input, tensor1, tensor2, *, value=1) -> Tensor:
    r"""In-place form of `addcdiv`."""
def addcmul(input, tensor1, tensor2, *, value=1, out=None) -> Tensor:
    r"""input + value * tensor1 * tensor2."""
def addcmul_(input, tensor1, tensor2, *, value=1) -> Tensor:
    r"""In-place form of `addcmul`."""
def addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None) -> Tensor:
    r"""beta * input + alpha * mat1 @ mat2: [m, n] (or what broadcasts to it), [m, k], [k, n] -> [m, n]."""
def addmm_(input, mat1, mat2, *, beta=1, alpha=1) -> Tensor:
    r"""In-place form of `addmm`."""
def addmv(input, mat, vec, *, beta=1, alpha=1, out=None) -> Tensor:
    r"""beta * input + alpha * mat @ vec: [m] (or what broadcasts to it), [m, k], [k] -> [m]."""
def addmv_(input, mat, vec, *, beta=1, alpha=1) -> Tensor:
    r"""In-place form of `addmv`."""
def addr(input, vec1, vec2, *, beta=1, alpha=1, out=None) -> Tensor:
    r"""beta * input + alpha * outer(vec1, vec2): [m, n] (or what broadcasts to it), [m], [n] -> [m, n]."""
def addr_(input, vec1, vec2, *, beta=1, alpha=1) -> Tensor:
    r"""In-place form of `addr`."""
def adjoint(input) -> Tensor:
    r"""The last two dimensions exchanged (and conjugated, for complex numbers)."""
def alias_copy(input, *, out=None) -> Tensor:
    r"""`alias`, with the result in memory of its own."""
def all(input, dim=None, keepdim=False, *, out=None) -> Tensor:
    r"""Whether all elements are non-zero, in all or along `dim`; True for none."""
def allclose(input, other, rtol=..., atol=..., equal_nan=False) -> _bool:
    r"""Whether all elements are close in the sense of `isclose`."""
def alpha_dropout_(input, p, train) -> Any:
    r"""In-place form of `alpha_dropout`."""
def amax(input, dim=..., keepdim=False, *, out=None) -> Tensor:
    r"""The largest element along `dim` (an int or several; empty: all). Equal ones share the gradient."""
def amin(input, dim=..., keepdim=False, *, out=None) -> Tensor:
    r"""The smallest element along `dim` (an int or several; empty: all). Equal ones share the gradient."""
def aminmax(input, *, dim=None, keepdim=False, out=None) -> _aminmax:
    r"""(smallest, largest) of all elements, or along `dim`, as a named tuple (min, max)."""
def angle(input, *, out=None) -> Tensor:
    r"""`angle` of each element of a tensor of any shape, as floats where it holds integers."""
def any(input, dim=None, keepdim=False, *, out=None) -> Tensor:
    r"""Whether any element is non-zero (NaN counts), in all or along `dim`."""
def arange(start=None, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    r"""start, start + step, … below `end`: `arange(end)`, `arange(start, end)`, `arange(start, end, step)`. int64 when all are integers, else the default float."""
def arccos(input, *, out=None) -> Tensor:
    r"""`acos` of each element of a tensor of any shape, as floats where it holds integers."""
def arccos_(input) -> Tensor:
    r"""In-place form of `acos`."""
def arccosh(input, *, out=None) -> Tensor:
    r"""`acosh` of each element of a tensor of any shape, as floats where it holds integers."""
def arccosh_(input) -> Tensor:
    r"""In-place form of `acosh`."""
def arcsin(input, *, out=None) -> Tensor:
    r"""`asin` of each element of a tensor of any shape, as floats where it holds integers."""
def arcsin_(input) -> Tensor:
    r"""In-place form of `asin`."""
def arcsinh(input, *, out=None) -> Tensor:
    r"""`asinh` of each element of a tensor of any shape, as floats where it holds integers."""
def arcsinh_(input) -> Tensor:
    r"""In-place form of `asinh`."""
def arctan(input, *, out=None) -> Tensor:
    r"""`atan` of each element of a tensor of any shape, as floats where it holds integers."""
def arctan2(input, other, *, out=None) -> Tensor:
    r"""`atan2` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
def arctan_(input) -> Tensor:
    r"""In-place form of `atan`."""
def arctanh(input, *, out=None) -> Tensor:
    r"""`atanh` of each element of a tensor of any shape, as floats where it holds integers."""
def arctanh_(input) -> Tensor:
    r"""In-place form of `atanh`."""
def are_deterministic_algorithms_enabled() -> _bool: ...
def argmax(input, dim=None, keepdim=False, *, out=None) -> Tensor:
    r"""Position of the first largest element (or first NaN): in the flattened input, or along `dim`."""
def argmin(input, dim=None, keepdim=False, *, out=None) -> Tensor:
    r"""Position of the first smallest element (or first NaN): in the flattened input, or along `dim`."""
def argsort(input, dim=-1, descending=False, stable=False, *, out=None) -> Tensor:
    r"""The indices of `sort`."""
def argwhere(input) -> Tensor:
    r"""`nonzero(input)`."""
def as_strided(input, size, stride, storage_offset=None) -> Tensor:
    r"""Any window of the storage: sizes, strides and offset in elements. Raises RuntimeError where it would leave the storage."""
def as_strided_(input, size, stride, storage_offset=None) -> Tensor:
    r"""This tensor becomes a window of its own memory with other sizes, strides and offset (in elements)."""
def as_strided_copy(input, size, stride, storage_offset=None, *, out=None) -> Tensor:
    r"""`as_strided`, with the result in memory of its own."""
def as_strided_scatter(input, src, size, stride, storage_offset=None, *, out=None) -> Tensor:
    r"""input with the window of `as_strided` replaced by `src`."""
def asin(input, *, out=None) -> Tensor:
    r"""`asin` of each element of a tensor of any shape, as floats where it holds integers."""
def asin_(input) -> Tensor:
    r"""In-place form of `asin`."""
def asinh(input, *, out=None) -> Tensor:
    r"""`asinh` of each element of a tensor of any shape, as floats where it holds integers."""
def asinh_(input) -> Tensor:
    r"""In-place form of `asinh`."""
def atan(input, *, out=None) -> Tensor:
    r"""`atan` of each element of a tensor of any shape, as floats where it holds integers."""
def atan2(input, other, *, out=None) -> Tensor:
    r"""`atan2` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
def atan_(input) -> Tensor:
    r"""In-place form of `atan`."""
def atanh(input, *, out=None) -> Tensor:
    r"""`atanh` of each element of a tensor of any shape, as floats where it holds integers."""
def atanh_(input) -> Tensor:
    r"""In-place form of `atanh`."""
def atleast_1d(*tensors) -> Tensor:
    r"""Views with at least 1 dimension(s): of one tensor, or of each of several."""
def atleast_2d(*tensors) -> Tensor:
    r"""Views with at least 2 dimension(s): of one tensor, or of each of several."""
def atleast_3d(*tensors) -> Tensor:
    r"""Views with at least 3 dimension(s): of one tensor, or of each of several."""
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None) -> Tensor:
    r"""beta * input + alpha * batch1 @ batch2, matrix by matrix: [b, m, n], [b, m, k], [b, k, n] -> [b, m, n]."""
def baddbmm_(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
    r"""In-place form of `baddbmm`."""
def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    r"""A triangle from 0 up to 1 and down to 0. [window_length]; symmetric unless `periodic` (as if one point longer, the last left out)."""
def bernoulli(input, p=None, *, generator=None, out=None) -> Tensor:
    r"""1 with the probability that the input's element gives (or p), else 0; shaped and typed as the input, drawn row by row."""
bfloat16: DType
def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction='mean', pos_weight=None) -> Any:
    r"""binary_cross_entropy of sigmoid(input), computed without overflow."""
def bincount(input, weights=None, minlength=0) -> Tensor:
    r"""How often each of 0, 1, 2, … occurs in a 1-d tensor of non-negative ints, at least `minlength` numbers; or the sums of `weights`."""
def binomial(count, prob, generator=None) -> Tensor:
    r"""Successes among `count` trials of probability `prob` (floats of one dtype, broadcast). Raises ValueError for integers, RuntimeError where the dtypes differ."""
bit: DType
def bitwise_and(input, other, *, out=None) -> Tensor:
    r"""`bitwise_and` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def bitwise_left_shift(input, other, *, out=None) -> Tensor:
    r"""`bitwise_left_shift` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def bitwise_not(input, *, out=None) -> Tensor:
    r"""`bitwise_not` of each element of a tensor of any shape."""
def bitwise_not_(input) -> Tensor:
    r"""In-place form of `bitwise_not`."""
def bitwise_or(input, other, *, out=None) -> Tensor:
    r"""`bitwise_or` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def bitwise_right_shift(input, other, *, out=None) -> Tensor:
    r"""`bitwise_right_shift` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def bitwise_xor(input, other, *, out=None) -> Tensor:
    r"""`bitwise_xor` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    r"""0.42 - 0.5 cos(2πi / N) + 0.08 cos(4πi / N). [window_length]; symmetric unless `periodic` (as if one point longer, the last left out)."""
def bmm(input, mat2, *, out=None) -> Tensor:
    r"""Products of matrices with the same batch size: [b, m, k] @ [b, k, n] -> [b, m, n]; nothing broadcasts."""
bool: DType
def broadcast_tensors(*tensors) -> tuple[Tensor, ...]:
    r"""Every tensor expanded to the shape they broadcast to together; a list of views."""
def broadcast_to(input, *shape, size=None) -> Tensor:
    r"""`input.expand(shape)`."""
def bucketize(input, boundaries, *, out_int32=False, right=False) -> Tensor:
    r"""The bucket of each value between 1-d sorted `boundaries`: the number of boundaries below it (right=True: not above it)."""
def cat(tensors, dim=0, *, axis=None, out=None) -> Tensor:
    r"""The tensors one after the other along `dim`; all other sizes must agree. [.., a, ..], [.., b, ..] -> [.., a + b, ..]"""
def cdist(x1, x2, p=..., compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor:
    r"""Distances between rows: [*, P, M] and [*, R, M] -> [*, P, R], in the p-norm."""
cdouble: DType
def ceil(input, *, out=None) -> Tensor:
    r"""`ceil` of each element of a tensor of any shape."""
def ceil_(input) -> Tensor:
    r"""In-place form of `ceil`."""
def celu(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation celu, elementwise; options alpha=1.0."""
cfloat: DType
def chain_matmul(*matrices, out=None) -> Tensor:
    r"""Product of several matrices, multiplied in the order that costs least."""
chalf: DType
channels_last: MemoryFormat
channels_last_3d: MemoryFormat
def cholesky(input, upper=False, *, out=None) -> Tensor:
    r"""`linalg.cholesky`."""
def cholesky_inverse(L, upper=False, *, out=None) -> Tensor:
    r"""A⁻¹ from A's Cholesky factor L [*, n, n]: A = L Lᴴ, or Lᴴ L if `upper`."""
def cholesky_solve(input, L, upper=False, *, out=None) -> Tensor:
    r"""X with A X = input, [*, n, k], from A's Cholesky factor L [*, n, n]: A = L Lᴴ, or Lᴴ L if `upper`."""
def chunk(input, chunks, dim=0) -> tuple[Tensor, ...]:
    r"""At most `chunks` windows of equal size along `dim` (the last may be shorter)."""
def clamp(input, min=None, max=None, *, out=None) -> Tensor:
    r"""input limited to [min, max]; either bound may be a number, a tensor or None. Raises RuntimeError when both are None."""
def clamp_(input, min=None, max=None) -> Tensor:
    r"""In-place form of `clamp`."""
def clamp_max(input, max, *, out=None) -> Tensor:
    r"""input, lowered to at most `max`."""
def clamp_max_(input, max) -> Tensor:
    r"""In-place form of `clamp_max`."""
def clamp_min(input, min, *, out=None) -> Tensor:
    r"""input, raised to at least `min`."""
def clamp_min_(input, min) -> Tensor:
    r"""In-place form of `clamp_min`."""
def clip(input, min=None, max=None, *, out=None) -> Tensor:
    r"""input limited to [min, max]; either bound may be a number, a tensor or None. Raises RuntimeError when both are None."""
def clip_(input, min=None, max=None) -> Tensor:
    r"""In-place form of `clamp`."""
def clone(input, *, memory_format=None) -> Tensor:
    r"""A copy with its own memory, part of the graph. Strides are kept where the input is dense."""
def column_stack(tensors, *, out=None) -> Tensor:
    r"""cat along dimension 1; 0-d and 1-d tensors become columns."""
def complex(real, imag, *, out=None) -> Tensor:
    r"""The complex tensor with these real and imaginary parts (float16, float32 or float64, of one dtype; they broadcast)."""
complex128: DType
complex32: DType
complex64: DType
def concat(tensors, dim=0, *, axis=None, out=None) -> Tensor:
    r"""The tensors one after the other along `dim`; all other sizes must agree. [.., a, ..], [.., b, ..] -> [.., a + b, ..]"""
def concatenate(tensors, dim=0, *, axis=None, out=None) -> Tensor:
    r"""The tensors one after the other along `dim`; all other sizes must agree. [.., a, ..], [.., b, ..] -> [.., a + b, ..]"""
def conj(input) -> Tensor:
    r"""The complex conjugate; a real tensor itself."""
def conj_physical(input, *, out=None) -> Tensor:
    r"""The complex conjugate; a real tensor itself."""
def conj_physical_(input) -> Tensor:
    r"""In-place form of `conj_physical`."""
def constant_pad_nd(input, pad, value=0) -> Tensor:
    r"""The input with `value` around it: pairs (before, after) in `pad`, the last dimension first; negative ones crop."""
contiguous_format: MemoryFormat
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) -> Tensor:
    r"""Cross-correlation of [N, C, S..] with [F, C/groups, K..] (+ bias [F]) → [N, F, O..], or its transpose: [N, C, S..] with [C, F/groups, K..]."""
def copysign(input, other, *, out=None) -> Tensor:
    r"""`copysign` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
def corrcoef(input) -> Tensor:
    r"""Pearson's correlation coefficients of variables (rows) over observations (columns), their parts within [-1, 1]: [v, n] -> [v, v], [n] -> []."""
def cos(input, *, out=None) -> Tensor:
    r"""`cos` of each element of a tensor of any shape, as floats where it holds integers."""
def cos_(input) -> Tensor:
    r"""In-place form of `cos`."""
def cosh(input, *, out=None) -> Tensor:
    r"""`cosh` of each element of a tensor of any shape, as floats where it holds integers."""
def cosh_(input) -> Tensor:
    r"""In-place form of `cosh`."""
def cosine_embedding_loss(input1, input2, target, margin=..., size_average=None, reduce=None, reduction='mean') -> Any:
    r"""1 − cos where target is 1; max(0, cos − margin) where it is −1."""
def cosine_similarity(x1, x2, dim=1, eps=...) -> Tensor:
    r"""x1·x2 / (|x1| |x2|) along `dim`, each length at least eps."""
def count_nonzero(input, dim=None) -> Tensor:
    r"""How many elements are not 0, in all or along `dim`; int64."""
def cov(input, *, correction=1, fweights=None, aweights=None) -> Tensor:
    r"""Covariances of variables (rows) over observations (columns): [v, n] -> [v, v], [n] -> []. Sums are divided by n - correction."""
def cross(input, other, dim=None, *, out=None) -> Tensor:
    r"""Cross products along `dim`, by default the first dimension of size 3."""
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False) -> Any:
    r"""−log of the probability of all alignments of a target with the input."""
def cummax(input, dim, *, out=None) -> _cummax:
    r"""(values, indices) of the running maximum along `dim`; the last of equal elements."""
def cummin(input, dim, *, out=None) -> _cummin:
    r"""(values, indices) of the running minimum along `dim`; the last of equal elements."""
def cumprod(input, dim, *, dtype=None, out=None) -> Tensor:
    r"""The running product along `dim`."""
def cumsum(input, dim, *, dtype=None, out=None) -> Tensor:
    r"""The running sum along `dim`; integers and bool give int64 unless `dtype` says otherwise."""
def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1) -> Tensor:
    r"""The running integral of y along `dim` by the trapezoidal rule. [.., n, ..] -> [.., n - 1, ..]"""
default_generator: Generator
def deg2rad(input, *, out=None) -> Tensor:
    r"""`deg2rad` of each element of a tensor of any shape, as floats where it holds integers."""
def deg2rad_(input) -> Tensor:
    r"""In-place form of `deg2rad`."""
def dequantize(input, dtype=None) -> Tensor:
    r"""The numbers that a block tensor holds, as float32 or the floating-point `dtype`; any other tensor as float32."""
def det(input, *, out=None) -> Tensor:
    r"""Determinants of square matrices: [*, n, n] -> [*]."""
def detach(input) -> Tensor:
    r"""The same memory without history: a tensor that requires no grad. Not counted as a view when it comes to writes in place: they go unrecorded."""
def detach_(input: Tensor) -> Tensor:
    r"""`input.detach_()`."""
def detach_copy(input) -> Tensor:
    r"""`detach`, with the result in memory of its own."""
device = Device
def diag(input, diagonal=0, *, out=None) -> Tensor:
    r"""A matrix's diagonal as a copy, or the matrix with a vector on its diagonal. [n, m] -> [min(n, m)]; [n] -> [n, n]"""
def diag_embed(input, offset=0, dim1=-2, dim2=-1) -> Tensor:
    r"""Matrices with the input's last dimension on a diagonal, zero elsewhere. [.., n] -> [.., n+|offset|, n+|offset|]"""
def diagflat(input, offset=0) -> Tensor:
    r"""A matrix with all elements of the input on its diagonal. [..] -> [n, n]"""
def diagonal(input, offset=0, dim1=0, dim2=1) -> Tensor:
    r"""The diagonal of dimensions `dim1` and `dim2`, `offset` above the main one, as a new last dimension. [n, m] -> [min(n, m)]"""
def diagonal_copy(input, offset=0, dim1=0, dim2=1, *, out=None) -> Tensor:
    r"""`diagonal`, with the result in memory of its own."""
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1, *, out=None) -> Tensor:
    r"""input with a diagonal (as in `diagonal`) replaced by `src`."""
def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None) -> Tensor:
    r"""Differences of neighbours along `dim`, n times; prepend and append are joined to the input first."""
def digamma(input, *, out=None) -> Tensor:
    r"""`digamma` of each element of a tensor of any shape, as floats where it holds integers."""
def digamma_(input) -> Tensor:
    r"""In-place form of `digamma`."""
def dist(input, other, p=2) -> Tensor:
    r"""The p-norm of input - other."""
def div(input, other, *, rounding_mode=None, out=None) -> Tensor:
    r"""input / other, elementwise with broadcasting. rounding_mode: None (true division), "trunc" or "floor"."""
def divide(input, other, *, rounding_mode=None, out=None) -> Tensor:
    r"""input / other, elementwise with broadcasting. rounding_mode: None (true division), "trunc" or "floor"."""
def dot(input, tensor, *, out=None) -> Tensor:
    r"""Sum of products of two vectors: [k], [k] -> scalar."""
double: DType
def dropout(input, p, train) -> Tensor:
    r"""input with elements zeroed with probability p and the others scaled by 1/(1 − p), while `train`; else input itself."""
def dropout_(input, p, train) -> Any:
    r"""In-place form of `dropout`."""
def dsmm(input, mat2, *, out=None) -> Tensor:
    r"""Product of two matrices [m, k] @ [k, n] -> [m, n]; nothing broadcasts."""
def dsplit(input, indices_or_sections) -> tuple[Tensor, ...]:
    r"""tensor_split along dimension 2; a number of sections must divide it."""
def dstack(tensors, *, out=None) -> Tensor:
    r"""cat along dimension 2; tensors of fewer dimensions get more."""
dtype = DType
e: _float
def einsum(*args) -> Tensor:
    r"""Sums of products in Einstein's notation: einsum("bij,bjk->bik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=..., scale_grad_by_freq=False, sparse=False) -> Tensor:
    r"""The rows of `weight` that `input` (int64 or int32, any shape) names. [*], [V, D] -> [*, D]"""
def empty(*size_given, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None) -> Tensor:
    r"""A tensor of a shape with undefined elements."""
def empty_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:
    r"""A tensor shaped as `input` with undefined elements."""
def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    r"""An uninitialised tensor without gaps; physical_layout lists its dimensions in the order in which they lie in memory, the outermost first."""
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    r"""A tensor with undefined elements and given strides (in elements)."""
def eq(input, other, *, out=None) -> Tensor:
    r"""`eq` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def equal(input, other) -> _bool:
    r"""Whether two tensors have the same shape and elements."""
def erf(input, *, out=None) -> Tensor:
    r"""`erf` of each element of a tensor of any shape, as floats where it holds integers."""
def erf_(input) -> Tensor:
    r"""In-place form of `erf`."""
def erfc(input, *, out=None) -> Tensor:
    r"""`erfc` of each element of a tensor of any shape, as floats where it holds integers."""
def erfc_(input) -> Tensor:
    r"""In-place form of `erfc`."""
def erfinv(input, *, out=None) -> Tensor:
    r"""`erfinv` of each element of a tensor of any shape, as floats where it holds integers."""
def erfinv_(input) -> Tensor:
    r"""In-place form of `erfinv`."""
def exp(input, *, out=None) -> Tensor:
    r"""`exp` of each element of a tensor of any shape, as floats where it holds integers."""
def exp2(input, *, out=None) -> Tensor:
    r"""`exp2` of each element of a tensor of any shape, as floats where it holds integers."""
def exp2_(input) -> Tensor:
    r"""In-place form of `exp2`."""
def exp_(input) -> Tensor:
    r"""In-place form of `exp`."""
def expand_copy(input, *shape, size=None, implicit=False, out=None) -> Tensor:
    r"""`expand`, with the result in memory of its own."""
def expit(input, *, out=None) -> Tensor:
    r"""`sigmoid` of each element of a tensor of any shape, as floats where it holds integers."""
def expit_(input) -> Tensor:
    r"""In-place form of `sigmoid`."""
def expm1(input, *, out=None) -> Tensor:
    r"""`expm1` of each element of a tensor of any shape, as floats where it holds integers."""
def expm1_(input) -> Tensor:
    r"""In-place form of `expm1`."""
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    r"""The identity matrix: ones on the main diagonal. [n, m or n]"""
def feature_alpha_dropout_(input, p, train) -> Any:
    r"""In-place form of `feature_alpha_dropout`."""
def fill(input, value) -> Tensor:
    r"""A copy of the input's shape with every element set to `value`."""
def fill_(input, value) -> Tensor:
    r"""Every element set to `value`: a number or a 0-d tensor."""
def fix(input, *, out=None) -> Tensor:
    r"""`trunc` of each element of a tensor of any shape."""
def fix_(input) -> Tensor:
    r"""In-place form of `trunc`."""
def flatten(input, start_dim=0, end_dim=-1) -> Tensor:
    r"""Dimensions `start_dim` to `end_dim` merged into one: a view where they lie in one run, else a copy. [.., a, b, ..] -> [.., a*b, ..]"""
def flip(input, *given, dims=None) -> Tensor:
    r"""The order of entries reversed along `dims`."""
def fliplr(input) -> Tensor:
    r"""The second dimension reversed."""
def flipud(input) -> Tensor:
    r"""The first dimension reversed."""
float: DType
float16: DType
float32: DType
float4_e2m1fn: DType
float4_e2m1fn_x2: DType
float64: DType
float6_e2m3fn: DType
float6_e3m2fn: DType
float8_e4m3fn: DType
float8_e4m3fnuz: DType
float8_e5m2: DType
float8_e5m2fnuz: DType
float8_e8m0fnu: DType
def float_power(input, exponent, *, out=None) -> Tensor:
    r"""input ** exponent, computed in float64 (complex128 where one of them is complex); either may be a number."""
def floor(input, *, out=None) -> Tensor:
    r"""`floor` of each element of a tensor of any shape."""
def floor_(input) -> Tensor:
    r"""In-place form of `floor`."""
def floor_divide(input, other, *, out=None) -> Tensor:
    r"""`floor_divide` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def fmax(input, other, *, out=None) -> Tensor:
    r"""`fmax` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def fmin(input, other, *, out=None) -> Tensor:
    r"""`fmin` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def fmod(input, other, *, out=None) -> Tensor:
    r"""`fmod` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def frac(input, *, out=None) -> Tensor:
    r"""`frac` of each element of a tensor of any shape."""
def frac_(input) -> Tensor:
    r"""In-place form of `frac`."""
def frexp(input, *, out=None) -> _frexp:
    r"""(mantissa, exponent): input = mantissa * 2**exponent with 1/2 <= |mantissa| < 1; exponents are int32, 0 for 0, infinities and NaN."""
def frobenius_norm(input, dim=..., keepdim=False) -> Tensor:
    r"""The root of the sum of squares, of all or along one or two dimensions."""
def from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor:
    r"""A tensor over the memory of an object with `__dlpack__`, or of a DLPack capsule; writes are seen on both sides. copy: True always, False never copies."""
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    r"""A tensor of a shape with every element `fill_value`, whose type (bool, int, float) gives the dtype unless one is given."""
def full_like(input, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:
    r"""A tensor shaped as `input` with every element `fill_value`."""
def gather(input, dim, index, *, sparse_grad=False, out=None) -> Tensor:
    r"""out[i][j] = input[i][index[i][j]] along `dim`; index may be smaller than input in the other dimensions."""
def gcd(input, other, *, out=None) -> Tensor:
    r"""The greatest common divisor of two integers, not negative."""
def gcd_(input, other) -> Tensor:
    r"""In-place form of `gcd`."""
def ge(input, other, *, out=None) -> Tensor:
    r"""`ge` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def geqrf(input, *, out=None) -> _geqrf:
    r"""(a, tau): R in a's upper triangle and, below it, the vectors of the reflections 1 - tau v vᴴ whose product is Q: [*, m, n], [*, k], k = min(m, n)."""
def ger(input, vec2, *, out=None) -> Tensor:
    r"""Every element of one vector times every one of another: [m], [n] -> [m, n]."""
def get_deterministic_debug_mode() -> _int: ...
def get_device(input: Tensor) -> _int:
    r"""The number of the tensor's device; -1 for the CPU."""
def get_device_module(device: Any = None) -> Any:
    r"""The module of a device, such as `torch.cpu`; without an argument the accelerator's, which is the CPU's where there is none. Raises RuntimeError for what names no device."""
def get_float32_matmul_precision() -> _str:
    r"""What `set_float32_matmul_precision` was given: "highest" at first."""
def get_num_interop_threads() -> _int: ...
def gradient(input, *, spacing=1, dim=None, edge_order=1) -> tuple[Tensor, ...]:
    r"""The derivative of sampled values along each of `dim` (all by default), as a tuple of tensors of input's shape."""
def greater(input, other, *, out=None) -> Tensor:
    r"""`gt` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def greater_equal(input, other, *, out=None) -> Tensor:
    r"""`ge` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners) -> Any:
    r"""`grid_sampler` for 2-d images: [N, C, H, W]."""
def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners) -> Any:
    r"""`grid_sampler` for 3-d images: [N, C, D, H, W]."""
def gt(input, other, *, out=None) -> Tensor:
    r"""`gt` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
half: DType
def hamming_window(window_length, periodic=True, alpha=..., beta=..., *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    r"""alpha - beta cos(2πi / N). [window_length]; symmetric unless `periodic` (as if one point longer, the last left out)."""
def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    r"""0.5 - 0.5 cos(2πi / N). [window_length]; symmetric unless `periodic` (as if one point longer, the last left out)."""
def hardshrink(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation hardshrink, elementwise; options lambd=0.5."""
def hash_tensor(input, dim=..., *, keepdim=False, mode=0, out=None) -> Tensor:
    r"""The exclusive or of the elements' 64-bit patterns along `dim` (all by default), as uint64: integers extended, floats as float64."""
def heaviside(input, values, *, out=None, **kwargs) -> Tensor:
    r"""`heaviside` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def hinge_embedding_loss(input, target, margin=..., size_average=None, reduce=None, reduction='mean') -> Any:
    r"""x where t is 1, max(0, margin − x) where it is −1."""
def histc(input, bins=100, min=0, max=0, *, out=None) -> Tensor:
    r"""Counts of input's elements in `bins` equal bins between min and max (both 0: the data's), in input's dtype; others are not counted. [*] -> [bins]"""
def histogram(input, bins, *, range=None, weight=None, density=False, out=None) -> _histogram:
    r"""(hist, bin_edges) of input's elements: `bins` equal bins over `range` (the data's by default), or between the edges given as a tensor. [*] -> [bins], [bins + 1]"""
def histogramdd(input, bins, *, range=None, weight=None, density=False) -> _histogramdd:
    r"""(hist, bin_edges) of points: [*, d] -> [bins of dimension 1, …, bins of dimension d]. bins: a number for all dimensions, one each, or the edges of each."""
def hsplit(input, indices_or_sections) -> tuple[Tensor, ...]:
    r"""tensor_split along dimension 1 (0 for 1-d); a number of sections must divide it."""
def hstack(tensors, *, out=None) -> Tensor:
    r"""cat along dimension 1, along dimension 0 for 1-d tensors."""
def hypot(input, other, *, out=None) -> Tensor:
    r"""`hypot` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def i0(input, *, out=None) -> Tensor:
    r"""The modified Bessel function of the first kind, order 0."""
def i0_(input) -> Tensor:
    r"""In-place form of `i0`."""
def igamma(input, other, *, out=None) -> Tensor:
    r"""The regularized lower incomplete gamma function P(input, other)."""
def igamma_(input, other) -> Tensor:
    r"""In-place form of `igamma`."""
def igammac(input, other, *, out=None) -> Tensor:
    r"""The regularized upper incomplete gamma function Q(input, other) = 1 - P."""
def igammac_(input, other) -> Tensor:
    r"""In-place form of `igammac`."""
def imag(input) -> Tensor:
    r"""The imaginary part of a complex tensor, a view. Raises RuntimeError for a real tensor."""
def index_add(input, *args, out=None, **kwargs) -> Tensor:
    r"""A copy of input with `alpha * source` added to the entries of `dim` that `index` names, several times where named several times."""
def index_add_(input, *args, **kwargs) -> Tensor:
    r"""In-place form of `index_add`."""
def index_copy(input, *args, out=None, **kwargs) -> Tensor:
    r"""A copy of input with the entries of `dim` that `index` names replaced by those of source."""
def index_copy_(input, *args, **kwargs) -> Tensor:
    r"""In-place form of `index_copy`."""
def index_fill(input, *args, out=None, **kwargs) -> Tensor:
    r"""A copy of input with the entries of `dim` that `index` names filled with a number (or 0-d tensor). Negative indices count from the end."""
def index_fill_(input, *args, **kwargs) -> Tensor:
    r"""In-place form of `index_fill`."""
def index_put(input, indices, values, accumulate=False) -> Tensor:
    r"""A copy of input with `values` (broadcast) at `indices`, a tuple of int tensors or masks; accumulate: added to what is there."""
def index_put_(input, indices, values, accumulate=False) -> Tensor:
    r"""In-place form of `index_put`."""
def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None) -> Tensor:
    r"""A copy of input whose entries of `dim` that `index` names are combined with source's by "prod", "mean", "amax" or "amin"."""
def index_reduce_(input, dim, index, source, reduce, *, include_self=True) -> Tensor:
    r"""In-place form of `index_reduce`."""
def index_select(input, dim, index, *, out=None) -> Tensor:
    r"""The entries of dimension `dim` that `index` (1-d) names, in its order. [.., n, ..], [k] -> [.., k, ..]"""
inf: _float
def inner(input, other, *, out=None) -> Tensor:
    r"""Sums of products along the last dimension: [*a, k], [*b, k] -> [*a, *b]; with a number, a plain product."""
int: DType
int1: DType
int16: DType
int2: DType
int3: DType
int32: DType
int4: DType
int5: DType
int6: DType
int64: DType
int7: DType
int8: DType
def inverse(input, *, out=None) -> Tensor:
    r"""`linalg.inv`."""
def is_complex(input: Tensor) -> _bool: ...
def is_deterministic_algorithms_warn_only_enabled() -> _bool: ...
def is_distributed(input: Tensor) -> _bool: ...
def is_floating_point(input: Tensor) -> _bool: ...
def is_inference(input: Tensor) -> _bool: ...
def is_nonzero(input) -> _bool:
    r"""Whether the one element of a tensor is not zero. Raises RuntimeError unless there is exactly one."""
def is_same_size(input, other) -> _bool:
    r"""Whether both have the same shape."""
def is_signed(input: Tensor) -> _bool:
    r"""Whether the tensor's dtype has negative numbers."""
def is_storage(obj: Any) -> _bool: ...
def is_tensor(obj: Any) -> _bool:
    r"""Whether obj is a tensor."""
def is_vulkan_available() -> _bool: ...
def is_warn_always_enabled() -> _bool: ...
def isclose(input, other, rtol=..., atol=..., equal_nan=False) -> Tensor:
    r"""Elementwise |input - other| <= atol + rtol * |other|; equal infinities are close, and NaNs with `equal_nan`."""
def isfinite(input, *, out=None) -> Tensor:
    r"""`isfinite` of each element of a tensor of any shape, as bool."""
def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None) -> Tensor:
    r"""Whether each element is among test_elements (invert: is not); either may be a number."""
def isinf(input, *, out=None) -> Tensor:
    r"""`isinf` of each element of a tensor of any shape, as bool."""
def isnan(input, *, out=None) -> Tensor:
    r"""`isnan` of each element of a tensor of any shape, as bool."""
def isneginf(input, *, out=None) -> Tensor:
    r"""`isneginf` of each element of a tensor of any shape, as bool."""
def isposinf(input, *, out=None) -> Tensor:
    r"""`isposinf` of each element of a tensor of any shape, as bool."""
def isreal(input) -> Tensor:
    r"""Whether each element has no imaginary part: true everywhere, for a real tensor."""
def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, return_complex=False) -> Tensor:
    r"""The signal whose `stft` this is, in the sense of least squares: [b, frequencies, frames] -> [b, length], real unless return_complex."""
def kaiser_window(window_length, periodic=True, beta=..., *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    r"""I₀(beta √(1 - (2i / N - 1)²)) / I₀(beta), I₀ Bessel's function. [window_length]; symmetric unless `periodic` (as if one point longer, the last left out)."""
def kl_div(input, target, size_average=None, reduce=None, reduction='mean', log_target=False) -> Any:
    r"""target·(log target − input), the input being log-probabilities; "batchmean" divides the sum by the batch."""
def kron(input, other, *, out=None) -> Tensor:
    r"""Kronecker product: every element of input times the whole of other, laid out as blocks. Sizes multiply dimension by dimension."""
def kthvalue(input, k, dim=-1, keepdim=False, *, out=None) -> _kthvalue:
    r"""(values, indices) of the k-th smallest element (from 1) along `dim`."""
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=..., cudnn_enable=True) -> Tensor:
    r"""(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, whose sizes `normalized_shape` repeats; weight and bias have that shape."""
layout = StorageLayout
def lcm(input, other, *, out=None) -> Tensor:
    r"""The least common multiple of two integers, not negative."""
def lcm_(input, other) -> Tensor:
    r"""In-place form of `lcm`."""
def ldexp(input, other, *, out=None) -> Tensor:
    r"""input * 2**other."""
def ldexp_(input, other) -> Tensor:
    r"""In-place form of `ldexp`."""
def le(input, other, *, out=None) -> Tensor:
    r"""`le` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
legacy_contiguous_format: MemoryFormat
def lerp(input, end, weight, *, out=None) -> Tensor:
    r"""input + weight * (end - input); weight a number or a tensor. RuntimeError where the tensors' dtypes differ."""
def lerp_(input, end, weight) -> Tensor:
    r"""In-place form of `lerp`."""
def less(input, other, *, out=None) -> Tensor:
    r"""`lt` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def less_equal(input, other, *, out=None) -> Tensor:
    r"""`le` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def lgamma(input, *, out=None) -> Tensor:
    r"""`lgamma` of each element of a tensor of any shape, as floats where it holds integers."""
def lgamma_(input) -> Tensor:
    r"""In-place form of `lgamma`."""
def linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    r"""`steps` numbers from `start` to `end`, both included, evenly spaced."""
def log(input, *, out=None) -> Tensor:
    r"""`log` of each element of a tensor of any shape, as floats where it holds integers."""
def log10(input, *, out=None) -> Tensor:
    r"""`log10` of each element of a tensor of any shape, as floats where it holds integers."""
def log10_(input) -> Tensor:
    r"""In-place form of `log10`."""
def log1p(input, *, out=None) -> Tensor:
    r"""`log1p` of each element of a tensor of any shape, as floats where it holds integers."""
def log1p_(input) -> Tensor:
    r"""In-place form of `log1p`."""
def log2(input, *, out=None) -> Tensor:
    r"""`log2` of each element of a tensor of any shape, as floats where it holds integers."""
def log2_(input) -> Tensor:
    r"""In-place form of `log2`."""
def log_(input) -> Tensor:
    r"""In-place form of `log`."""
def log_softmax(input, dim, dtype=None, *, out=None) -> Tensor:
    r"""x - log(sum(exp(x))) along `dim`, without overflow."""
def logaddexp(input, other, *, out=None) -> Tensor:
    r"""`logaddexp` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
def logaddexp2(input, other, *, out=None) -> Tensor:
    r"""`logaddexp2` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
def logcumsumexp(input, dim, *, out=None) -> Tensor:
    r"""log of the running sum of exp(x) along `dim`, without overflow."""
def logdet(input) -> Tensor:
    r"""Logarithms of the determinants: [*, n, n] -> [*]. -inf for a singular matrix, NaN where a real determinant is negative."""
def logical_and(input, other, *, out=None) -> Tensor:
    r"""`logical_and` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def logical_not(input, *, out=None) -> Tensor:
    r"""`logical_not` of each element of a tensor of any shape, as bool."""
def logical_not_(input) -> Tensor:
    r"""In-place form of `logical_not`."""
def logical_or(input, other, *, out=None) -> Tensor:
    r"""`logical_or` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def logical_xor(input, other, *, out=None) -> Tensor:
    r"""`logical_xor` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def logit(input, eps=None, *, out=None) -> Tensor:
    r"""log(x / (1 - x)); with eps, x is first limited to [eps, 1 - eps]. An eps below 0 limits nothing, as in PyTorch."""
def logit_(input, eps=None) -> Tensor:
    r"""In-place form of `logit`."""
def logspace(start, end, steps, base=..., *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    r"""`base` to the powers `linspace(start, end, steps)`."""
def logsumexp(input, dim, keepdim=False, *, out=None) -> Tensor:
    r"""log(sum(exp(x))) along `dim` (an int or several), without overflow."""
long: DType
def lt(input, other, *, out=None) -> Tensor:
    r"""`lt` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def lu(A, pivot=True, get_infos=False, *, out=None) -> tuple[Tensor, ...]:
    r"""(LU, pivots) of `linalg.lu_factor`, or with `get_infos` (LU, pivots, info). Singular matrices are no error."""
def lu_solve(input, LU_data, LU_pivots, *, out=None) -> Tensor:
    r"""X with AX = input from A's `linalg.lu_factor`: [*, n, k], [*, n, n], [*, n]."""
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None) -> _lu_unpack:
    r"""(P, L, U) from the results of `linalg.lu_factor`; what is not asked for is an empty tensor."""
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean') -> Any:
    r"""max(0, −t·(x1 − x2) + margin)."""
def masked_fill(input, mask, value) -> Tensor:
    r"""input with `value` where `mask` holds; mask and input broadcast together."""
def masked_scatter(input, mask, source) -> Tensor:
    r"""A copy of input whose elements where `mask` holds are those of source, in order. Raises RuntimeError where source has too few."""
def masked_scatter_(input, mask, source) -> Tensor:
    r"""In-place form of `masked_scatter`."""
def masked_select(input, mask, *, out=None) -> Tensor:
    r"""The elements of input where `mask` (bool, broadcast against it) holds, in row-major order, 1-d."""
def matmul(input, other, *, out=None) -> Tensor:
    r"""Matrix product [*, m, k] @ [*, k, n] -> [*, m, n]; batch dimensions broadcast, vectors lose their dimension in the result."""
def matrix_exp(input) -> Tensor:
    r"""e^A = 1 + A + A² / 2 + …: [*, n, n] -> [*, n, n]."""
def matrix_power(input, n, *, out=None) -> Tensor:
    r"""A multiplied n times with itself (n >= 0) or its inverse |n| times: [*, m, m] -> [*, m, m]. LinAlgError for n < 0 and a singular matrix."""
@overload
def max(input, dim: _int, keepdim: _bool = ...) -> _max:
    r"""The maximum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
@overload
def max(input) -> Tensor:
    r"""The maximum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
@overload
def max(input, other: Tensor) -> Tensor:
    r"""The maximum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
def maximum(input, other, *, out=None) -> Tensor:
    r"""`maximum` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def mean(input, dim=None, keepdim=False, *, dtype=None, out=None) -> Tensor:
    r"""Arithmetic mean of all elements, or along `dim`. Raises RuntimeError for integers without a floating `dtype`."""
@overload
def median(input, dim: _int, keepdim: _bool = ...) -> _median:
    r"""The lower median of all elements, or (values, indices) along `dim`. NaN where any element is."""
@overload
def median(input) -> Tensor:
    r"""The lower median of all elements, or (values, indices) along `dim`. NaN where any element is."""
memory_format = MemoryFormat
def meshgrid(*tensors, indexing=None) -> tuple[Tensor, ...]:
    r"""Coordinate grids of vectors: result i holds tensor i's values along dimension i, expanded. indexing: "ij" (default) or "xy" (first two exchanged)."""
@overload
def min(input, dim: _int, keepdim: _bool = ...) -> _min:
    r"""The minimum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
@overload
def min(input) -> Tensor:
    r"""The minimum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
@overload
def min(input, other: Tensor) -> Tensor:
    r"""The minimum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
def minimum(input, other, *, out=None) -> Tensor:
    r"""`minimum` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def mm(input, mat2, *, out=None) -> Tensor:
    r"""Product of two matrices [m, k] @ [k, n] -> [m, n]; nothing broadcasts."""
def mode(input, dim=-1, keepdim=False, *, out=None) -> _mode:
    r"""(values, indices) of the most frequent element along `dim`: the smallest of equally frequent ones, at its position in the sorted row."""
def moveaxis(input, source, destination) -> Tensor:
    r"""Dimensions `source` moved to the positions `destination`; the others keep their order."""
def movedim(input, source, destination) -> Tensor:
    r"""Dimensions `source` moved to the positions `destination`; the others keep their order."""
def msort(input, *, out=None) -> Tensor:
    r"""The values of `sort` along dimension 0."""
def mul(input, other, *, out=None) -> Tensor:
    r"""`mul` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def multinomial(input, num_samples, replacement=False, *, generator=None, out=None) -> Tensor:
    r"""Indices drawn with the probabilities that the rows of input [columns] or [rows, columns] give (not necessarily summing to 1): int64 [..., num_samples]."""
def multiply(input, other, *, out=None) -> Tensor:
    r"""`mul` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def mv(input, vec, *, out=None) -> Tensor:
    r"""Matrix times vector: [m, k] @ [k] -> [m]."""
def mvlgamma(input, p, *, out=None) -> Tensor:
    r"""The logarithm of the multivariate gamma function of dimension p >= 1."""
def mvlgamma_(input, p) -> Tensor:
    r"""In-place form of `mvlgamma`."""
mxfp4: BlockFormat
mxfp6_e2m3: BlockFormat
mxfp6_e3m2: BlockFormat
mxfp8_e4m3: BlockFormat
mxfp8_e5m2: BlockFormat
mxint8: BlockFormat
nan: _float
def nan_to_num(input, nan=None, posinf=None, neginf=None, *, out=None) -> Tensor:
    r"""input with NaN and infinities replaced (by 0 and the dtype's extremes unless given)."""
def nan_to_num_(input, nan=None, posinf=None, neginf=None) -> Tensor:
    r"""In-place form of `nan_to_num`."""
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None) -> Tensor:
    r"""Mean along `dim` of the elements that are not NaN."""
@overload
def nanmedian(input, dim: _int, keepdim: _bool = ...) -> _nanmedian:
    r"""The lower median of all elements, or (values, indices) along `dim`. NaN is ignored."""
@overload
def nanmedian(input) -> Tensor:
    r"""The lower median of all elements, or (values, indices) along `dim`. NaN is ignored."""
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation='linear', out=None) -> Tensor:
    r"""The q-quantiles (q in [0, 1], a number or 1-d) of all elements or along `dim`, NaN ignored. [q, ..] for 1-d q."""
def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None) -> Tensor:
    r"""Sum along `dim` with NaN counted as 0."""
def narrow(input, dim, start, length) -> Tensor:
    r"""`length` entries of dimension `dim` from `start` (an int or a 0-d integer tensor)."""
def narrow_copy(input, dim, start, length, *, out=None) -> Tensor:
    r"""`narrow`, with the result in memory of its own."""
def native_layer_norm(input, normalized_shape, weight, bias, eps) -> tuple[Tensor, ...]:
    r"""(layer_norm, mean, 1 / sqrt(var + eps)), the last two of size 1 along the normalised dimensions."""
def ne(input, other, *, out=None) -> Tensor:
    r"""`ne` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def neg(input, *, out=None) -> Tensor:
    r"""`neg` of each element of a tensor of any shape."""
def neg_(input) -> Tensor:
    r"""In-place form of `neg`."""
def negative(input, *, out=None) -> Tensor:
    r"""`neg` of each element of a tensor of any shape."""
def negative_(input) -> Tensor:
    r"""In-place form of `neg`."""
newaxis: None
def nextafter(input, other, *, out=None) -> Tensor:
    r"""The next number of the dtype after input in the direction of other."""
def nextafter_(input, other) -> Tensor:
    r"""In-place form of `nextafter`."""
def nonzero(input, *, as_tuple=False, out=None) -> Tensor:
    r"""Coordinates of the non-zero elements in row-major order: int64 [n, ndim], or with as_tuple one [n] a dimension, fit for x[...]."""
def nonzero_static(input, *, size, fill_value=-1, out=None) -> Tensor:
    r"""`nonzero` with a fixed number of rows: cut off, or filled up with fill_value. [size, ndim]"""
def norm(input, p='fro', dim=None, keepdim=False, dtype=None, *, out=None) -> Tensor:
    r"""The norm of all elements as one vector, or along `dim`: p a number, or "fro" (2)."""
def norm_except_dim(v, pow=2, dim=0) -> Tensor:
    r"""The norms of the slices along `dim`, each other dimension of size 1; dim = -1: the norm of all elements."""
def normal(mean=..., std=..., size=None, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, out=None) -> Tensor:
    r"""Normal numbers: mean and std are numbers or tensors; for two numbers give the size."""
def not_equal(input, other, *, out=None) -> Tensor:
    r"""`ne` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
def nuclear_norm(input, dim=..., keepdim=False) -> Tensor:
    r"""`linalg.matrix_norm` with ord "nuc"."""
def numel(input: Tensor) -> _int:
    r"""Number of elements."""
nvfp4: BlockFormat
def ones(*size_given, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    r"""A tensor of a shape with every element 1."""
def ones_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:
    r"""A tensor shaped as `input` with every element 1."""
def orgqr(input, input2, *, out=None) -> Tensor:
    r"""`linalg.householder_product`."""
def ormqr(input, tau, other, left=True, transpose=False, *, out=None) -> Tensor:
    r"""Q @ other, or other @ Q without `left`, Q (or Qᴴ if `transpose`) the whole m x m product of the reflections that `geqrf` stores in input [*, m, n] and tau [*, k]."""
def outer(input, vec2, *, out=None) -> Tensor:
    r"""Every element of one vector times every one of another: [m], [n] -> [m, n]."""
def permute(input, *dims_given, dims=None) -> Tensor:
    r"""Dimension i of the result is dimension `dims[i]` of the input."""
def permute_copy(input, *dims_given, dims=None, out=None) -> Tensor:
    r"""`permute`, with the result in memory of its own."""
pi: _float
def pinverse(input, rcond=...) -> Tensor:
    r"""`linalg.pinv` with rtol = rcond."""
def poisson(input, generator=None) -> Tensor:
    r"""Counts of events whose mean the input's element is; shaped and typed as the input, a float. Raises RuntimeError for a negative rate."""
def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=..., reduce=None, reduction='mean') -> Any:
    r"""exp(x) − t·x (or x − t·log(x+eps) unless `log_input`), with `full` plus Stirling's term where t > 1."""
def polar(abs, angle, *, out=None) -> Tensor:
    r"""The complex tensor with these magnitudes and angles (radians): abs · (cos angle + i sin angle)."""
def polygamma(n, input, *, out=None) -> Tensor:
    r"""The n-th derivative of digamma, n >= 0."""
def positive(input) -> Tensor:
    r"""The input itself, as +x is. Raises RuntimeError for bool."""
def pow(input, exponent, *, out=None) -> Tensor:
    r"""`pow` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def prelu(input, weight) -> Tensor:
    r"""x where positive, weight * x elsewhere; weight: one number a channel (dimension 1), or one in all."""
preserve_format: MemoryFormat
def prod(input, dim=None, keepdim=False, *, dtype=None, out=None) -> Tensor:
    r"""Product of all elements, or along one dimension. Integers and bool give int64 unless `dtype` says otherwise."""
def put(input, index, source, accumulate=False) -> Tensor:
    r"""A copy of input with source's elements at flat (row-major) positions; accumulate: added."""
def put_(input, index, source, accumulate=False) -> Tensor:
    r"""In-place form of `put`."""
def qr(input, some=True, *, out=None) -> _qr:
    r"""`linalg.qr`, reduced if `some`, else complete."""
def quantile(input, q, dim=None, keepdim=False, *, interpolation='linear', out=None) -> Tensor:
    r"""The q-quantiles (q in [0, 1], a number or 1-d) of all elements or along `dim`. [q, ..] for 1-d q."""
def quantize(input, format, *, scale_rule=None, group=128, scale='float16', zero_point=False, tensor_scale=None, pad=False) -> Tensor:
    r"""`input` [*, n] in blocks of low-precision elements along its last dimension, rounded to nearest even. No gradient flows through it."""
def rad2deg(input, *, out=None) -> Tensor:
    r"""`rad2deg` of each element of a tensor of any shape, as floats where it holds integers."""
def rad2deg_(input) -> Tensor:
    r"""In-place form of `rad2deg`."""
def rand(*size, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, out=None, **named) -> Tensor:
    r"""Uniform numbers from [0, 1), shape `size`."""
def rand_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:
    r"""Uniform numbers from [0, 1), shaped as input."""
def randint(*args, low=None, high=None, size=None, generator=None, dtype=..., layout=None, device=None, requires_grad=False, pin_memory=False, out=None) -> Tensor:
    r"""`randint(low=0, high, size)`: integers from [low, high), shape `size`."""
def randint_like(input, *args, low=None, high=None, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:
    r"""`randint_like(input, low=0, high)`: integers from [low, high), shaped as input."""
def randn(*size, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, out=None, **named) -> Tensor:
    r"""Standard normal numbers, shape `size`."""
def randn_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:
    r"""Standard normal numbers, shaped as input."""
def randperm(n, *, generator=None, dtype=..., layout=None, device=None, requires_grad=False, pin_memory=False, out=None) -> Tensor:
    r"""The integers 0 … n − 1 in random order, shape [n]."""
def range(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False) -> Tensor:
    r"""`arange` with `end` included. Deprecated in favour of arange."""
def ravel(input) -> Tensor:
    r"""All elements in one dimension: a view of contiguous memory, else of a contiguous copy."""
def real(input) -> Tensor:
    r"""The real part, a view; a real tensor itself."""
def reciprocal(input, *, out=None) -> Tensor:
    r"""`reciprocal` of each element of a tensor of any shape, as floats where it holds integers."""
def reciprocal_(input) -> Tensor:
    r"""In-place form of `reciprocal`."""
def relu(input, *, out=None) -> Tensor:
    r"""`relu` of each element of a tensor of any shape."""
def relu_(input) -> Tensor:
    r"""In-place form of `relu`."""
def remainder(input, other, *, out=None) -> Tensor:
    r"""`remainder` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def renorm(input, p, dim, maxnorm, *, out=None) -> Tensor:
    r"""Slices along `dim` whose p-norm exceeds maxnorm, scaled down to it. The shape stays."""
def renorm_(input, p, dim, maxnorm) -> Tensor:
    r"""In-place form of `renorm`."""
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None) -> Tensor:
    r"""Each entry along `dim` (None: of the flattened tensor) repeated `repeats` times: a number, or one number an entry."""
def reshape(input, *sizes, shape=None) -> Tensor:
    r"""Another shape of the same elements (one size may be -1): a view where strides can express it, else a copy."""
def resize_as_(input: Tensor, the_template: Tensor) -> Tensor:
    r"""`input.resize_as_(the_template)`."""
def resolve_conj(input) -> Tensor:
    r"""The tensor with a pending conjugation carried out: itself, since none is ever pending."""
def resolve_neg(input) -> Tensor:
    r"""The tensor with a pending negation carried out: itself, since none is ever pending."""
def rms_norm(input, normalized_shape, weight=None, eps=None) -> Tensor:
    r"""x / sqrt(mean(x²) + eps) * weight over the last dimensions; eps: the dtype's epsilon unless given."""
def roll(input, shifts, dims=None) -> Tensor:
    r"""Entries moved by `shifts` along `dims`, those that fall off the end coming in at the start; without dims, of the flattened tensor."""
def rot90(input, k=1, dims=...) -> Tensor:
    r"""Rotated by k quarter turns in the plane of `dims`, from the first towards the second."""
def round(input, *, decimals=0, out=None) -> Tensor:
    r"""`round` of each element of a tensor of any shape."""
def round_(input, *, decimals=0) -> Tensor:
    r"""In-place form of `round`."""
def round_to(input, dtype, rounding='nearest', *, generator=None) -> Tensor:
    r"""`input` in another dtype, rounded as asked: [*] -> [*]. Gradients pass as through a cast."""
def row_stack(tensors, *, out=None) -> Tensor:
    r"""cat along dimension 0; 1-d tensors become rows."""
def rsqrt(input, *, out=None) -> Tensor:
    r"""`rsqrt` of each element of a tensor of any shape, as floats where it holds integers."""
def rsqrt_(input) -> Tensor:
    r"""In-place form of `rsqrt`."""
def rsub(input, other, *, alpha=1) -> Tensor:
    r"""other - alpha * input."""
def scatter(input, *args, out=None, **kwargs) -> Tensor:
    r"""A copy of input with `src` (a tensor or a number) written at `index` along `dim`: out[i][index[i][j]] = src[i][j]."""
def scatter_(input, *args, **kwargs) -> Tensor:
    r"""In-place form of `scatter`."""
def scatter_add(input, *args, out=None, **kwargs) -> Tensor:
    r"""A copy of input with `src` added at `index` along `dim`; places named several times take every addend."""
def scatter_add_(input, *args, **kwargs) -> Tensor:
    r"""In-place form of `scatter_add`."""
def scatter_reduce(input, *args, out=None, **kwargs) -> Tensor:
    r"""A copy of input with `src` combined at `index` along `dim` by "sum", "prod", "mean", "amax" or "amin"; include_self: with what is there."""
def scatter_reduce_(input, *args, **kwargs) -> Tensor:
    r"""In-place form of `scatter_reduce`."""
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None) -> Tensor:
    r"""Where each value would be inserted into the last dimension of `sorted_sequence`: before its equals, or with right=True (side="right") behind them."""
def select(input, dim=None, index=None, axis=None) -> Tensor:
    r"""Entry `index` of dimension `dim` (or `axis`), without that dimension."""
def select_copy(input, dim=None, index=None, axis=None, *, out=None) -> Tensor:
    r"""`select`, with the result in memory of its own."""
def select_scatter(input, src, dim, index, *, out=None) -> Tensor:
    r"""input with entry `index` of dimension `dim` replaced by `src`."""
def selu(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation selu, elementwise."""
def set_deterministic_debug_mode(debug_mode: _int | _str) -> None:
    r"""0 "default", 1 "warn" or 2 "error": kept, since every operator is deterministic."""
def set_float32_matmul_precision(precision: _str) -> None:
    r"""What products of float32 round their operands to: "highest" nothing, "high" TF32 (10 bits of mantissa), "medium" bfloat16 (7 bits)."""
def set_flush_denormal(mode: _bool) -> _bool:
    r"""False: subnormal numbers are computed with as they are, and no mode of the processor is changed."""
def set_num_interop_threads(n: _int) -> None:
    r"""Operators run one after another: there is no second pool to size."""
def set_warn_always(b: _bool) -> None:
    r"""Kept for code that sets it: Python's warnings filters decide how often a warning is shown."""
def sgn(input, *, out=None) -> Tensor:
    r"""`sgn` of each element of a tensor of any shape."""
def sgn_(input) -> Tensor:
    r"""In-place form of `sgn`."""
short: DType
def sigmoid(input, *, out=None) -> Tensor:
    r"""`sigmoid` of each element of a tensor of any shape, as floats where it holds integers."""
def sigmoid_(input) -> Tensor:
    r"""In-place form of `sigmoid`."""
def sign(input, *, out=None) -> Tensor:
    r"""`sign` of each element of a tensor of any shape."""
def sign_(input) -> Tensor:
    r"""In-place form of `sign`."""
def signbit(input, *, out=None) -> Tensor:
    r"""`signbit` of each element of a tensor of any shape, as bool."""
def sin(input, *, out=None) -> Tensor:
    r"""`sin` of each element of a tensor of any shape, as floats where it holds integers."""
def sin_(input) -> Tensor:
    r"""In-place form of `sin`."""
def sinc(input, *, out=None) -> Tensor:
    r"""`sinc` of each element of a tensor of any shape, as floats where it holds integers."""
def sinc_(input) -> Tensor:
    r"""In-place form of `sinc`."""
def sinh(input, *, out=None) -> Tensor:
    r"""`sinh` of each element of a tensor of any shape, as floats where it holds integers."""
def sinh_(input) -> Tensor:
    r"""In-place form of `sinh`."""
def slice_copy(input, dim=0, start=None, end=None, step=1, *, out=None) -> Tensor:
    r"""`slice`, with the result in memory of its own."""
def slice_scatter(input, src, dim=0, start=None, end=None, step=1, *, out=None) -> Tensor:
    r"""input with `input[start:end:step]` along `dim` replaced by `src`."""
def slogdet(input) -> _slogdet:
    r"""`linalg.slogdet`."""
def softmax(input, dim, dtype=None, *, out=None) -> Tensor:
    r"""exp(x) / sum(exp(x)) along `dim`, computed from x - max(x). `dtype`: convert first. Raises IndexError for a dimension out of range."""
def sort(input, dim=-1, descending=False, stable=False, *, out=None) -> _sort:
    r"""(values, indices) along `dim` in ascending (or descending) order; NaN counts as the largest. Equal elements keep their order."""
sparse_bsc: StorageLayout
sparse_bsr: StorageLayout
sparse_coo: StorageLayout
sparse_csc: StorageLayout
sparse_csr: StorageLayout
def split(tensor, split_size_or_sections=None, dim=0, *, split_size=None) -> tuple[Tensor, ...]:
    r"""Windows along `dim`: of `split_size` entries each (the last may be shorter), or of the given sizes, which must add up to the dimension."""
def split_copy(tensor, split_size_or_sections=None, dim=0, *, split_size=None, out=None) -> tuple[Tensor, ...]:
    r"""`split`, with the result in memory of its own."""
def split_with_sizes(input, split_sizes, dim=0) -> tuple[Tensor, ...]:
    r"""Windows of the given sizes along `dim`."""
def split_with_sizes_copy(input, split_sizes, dim=0, *, out=None) -> tuple[Tensor, ...]:
    r"""`split_with_sizes`, with the result in memory of its own."""
def spmm(input, mat2, *, out=None) -> Tensor:
    r"""Product of two matrices [m, k] @ [k, n] -> [m, n]; nothing broadcasts."""
def sqrt(input, *, out=None) -> Tensor:
    r"""`sqrt` of each element of a tensor of any shape, as floats where it holds integers."""
def sqrt_(input) -> Tensor:
    r"""In-place form of `sqrt`."""
def square(input, *, out=None) -> Tensor:
    r"""`square` of each element of a tensor of any shape."""
def square_(input) -> Tensor:
    r"""In-place form of `square`."""
def squeeze(input, dim=None, axis=None, *more) -> Tensor:
    r"""Without its dimensions of size 1: all, or those named by `dim` (or `axis`; an int or several, also one by one)."""
def squeeze_copy(input, dim=None, axis=None, *more, out=None) -> Tensor:
    r"""`squeeze`, with the result in memory of its own."""
def stack(tensors, dim=0, *, out=None) -> Tensor:
    r"""The tensors side by side along a new dimension `dim`; all of one shape. n x [a, b] -> [n, a, b]"""
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None) -> Tensor:
    r"""The standard deviation of all elements, or along `dim`: squares divided by n - correction (default 1)."""
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None) -> tuple[Tensor, ...]:
    r"""(standard deviation, mean) of all elements, or along `dim`."""
def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect', normalized=False, onesided=None, return_complex=None, align_to_window=None) -> Tensor:
    r"""Fourier transforms of overlapping frames, windowed: [length] or [b, length] -> [b, frequencies, frames]."""
def stochastic_round(input, dtype, *, generator=None) -> Tensor:
    r"""`round_to(input, dtype, "stochastic")`: every element becomes one of its two neighbours in `dtype`, the nearer one more often, so that sums stay"""
strided: StorageLayout
def sub(input, other, *, alpha=1, out=None) -> Tensor:
    r"""`sub` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def subtract(input, other, *, alpha=1, out=None) -> Tensor:
    r"""`sub` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
def sum(input, dim=None, keepdim=False, *, dtype=None, out=None) -> Tensor:
    r"""Sum of all elements, or along `dim` (an int or several). Integers and bool give int64 unless `dtype` says otherwise."""
def svd(input, some=True, compute_uv=True, *, out=None) -> _svd:
    r"""(U, S, V) with input = U diag(S) Vᴴ, as `linalg.svd` has it; zeros for U and V without compute_uv."""
def swapaxes(input, axis0, axis1) -> Tensor:
    r"""`transpose`, by NumPy's name."""
def swapdims(input, dim0, dim1) -> Tensor:
    r"""Dimensions `dim0` and `dim1` exchanged. [.., a, .., b, ..] -> [.., b, .., a, ..]"""
def t(input) -> Tensor:
    r"""The transpose of a matrix; tensors of fewer dimensions as they are. [a, b] -> [b, a]"""
def t_copy(input, *, out=None) -> Tensor:
    r"""`t`, with the result in memory of its own."""
def take(input, index, *, out=None) -> Tensor:
    r"""Elements at flat (row-major) positions; result of index's shape. Negative positions count from the end."""
def take_along_dim(input, indices, dim=None, *, out=None) -> Tensor:
    r"""gather with input and indices broadcast against each other; without `dim` both are flattened. Negative indices count from the end."""
def tan(input, *, out=None) -> Tensor:
    r"""`tan` of each element of a tensor of any shape, as floats where it holds integers."""
def tan_(input) -> Tensor:
    r"""In-place form of `tan`."""
def tanh(input, *, out=None) -> Tensor:
    r"""`tanh` of each element of a tensor of any shape, as floats where it holds integers."""
def tanh_(input) -> Tensor:
    r"""In-place form of `tanh`."""
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    r"""A new tensor with a copy of `data`: a number, nested lists or tuples of numbers, an array, or another tensor."""
def tensor_split(input, indices_or_sections=None, dim=0, *, sections=None, indices=None) -> tuple[Tensor, ...]:
    r"""Windows along `dim`: so many of nearly equal size, or cut at the given indices."""
def tensordot(a, b, dims=2, *, out=None) -> Tensor:
    r"""Sums of products over several dimensions at once."""
def threshold(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation threshold, elementwise; options threshold=0.0, value=0.0."""
def tile(input, *sizes, dims=None) -> Tensor:
    r"""`repeat`, with missing leading numbers taken as 1."""
def topk(input, k, dim=-1, largest=True, sorted=True, *, out=None) -> _topk:
    r"""(values, indices) of the k largest (or smallest) along `dim`, in order; NaN counts as the largest. Raises RuntimeError for k out of range."""
def trace(input) -> Tensor:
    r"""Sum of the diagonal of a matrix: [n, m] -> []. Raises RuntimeError for another number of dimensions."""
def transpose(input, dim0, dim1) -> Tensor:
    r"""Dimensions `dim0` and `dim1` exchanged. [.., a, .., b, ..] -> [.., b, .., a, ..]"""
def transpose_copy(input, dim0, dim1, *, out=None) -> Tensor:
    r"""`transpose`, with the result in memory of its own."""
def trapezoid(y, x=None, *, dx=None, dim=-1) -> Tensor:
    r"""The integral of y along `dim` by the trapezoidal rule, at points x or dx apart (default 1)."""
def trapz(y, x=None, *, dx=None, dim=-1) -> Tensor:
    r"""The integral of y along `dim` by the trapezoidal rule, at points x or dx apart (default 1)."""
def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False, *, out=None) -> _triangular_solve:
    r"""(solution, cloned_coefficient) of AX = input (or AᵀX = input), both [*, n, ..]. Prefer `linalg.solve_triangular`."""
def tril(input, diagonal=0, *, out=None) -> Tensor:
    r"""Matrices with only the elements on and below diagonal number `diagonal` (0: the main one, above it positive) kept, others 0. [.., n, m]"""
def tril_(input, diagonal=0) -> Tensor:
    r"""In-place form of `tril`."""
def tril_indices(row, col, offset=0, *, dtype=None, layout=None, device=None, pin_memory=None) -> Tensor:
    r"""Coordinates of the lower triangle of a row × col matrix, [2, n]; `offset` as in tril."""
def triplet_margin_loss(anchor, positive, negative, margin=..., p=2, eps=..., swap=False, size_average=None, reduce=None, reduction='mean') -> Any:
    r"""max(0, d(anchor, positive) − d(anchor, negative) + margin), d the p-norm distance along the last dimension."""
def triu(input, diagonal=0, *, out=None) -> Tensor:
    r"""Matrices with only the elements on and above diagonal number `diagonal` (0: the main one, above it positive) kept, others 0. [.., n, m]"""
def triu_(input, diagonal=0) -> Tensor:
    r"""In-place form of `triu`."""
def triu_indices(row, col, offset=0, *, dtype=None, layout=None, device=None, pin_memory=None) -> Tensor:
    r"""Coordinates of the upper triangle of a row × col matrix, [2, n]; `offset` as in triu."""
def true_divide(input, other, *, out=None) -> Tensor:
    r"""`true_divide` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
def trunc(input, *, out=None) -> Tensor:
    r"""`trunc` of each element of a tensor of any shape."""
def trunc_(input) -> Tensor:
    r"""In-place form of `trunc`."""
def typename(obj: Any) -> _str:
    r"""The full name of an object's type; a tensor's by its dtype, as in torch.FloatTensor."""
uint1: DType
uint16: DType
uint2: DType
uint3: DType
uint32: DType
uint4: DType
uint5: DType
uint6: DType
uint64: DType
uint7: DType
uint8: DType
def unbind(input, dim=0) -> tuple[Tensor, ...]:
    r"""The entries of dimension `dim`, each without it. [n, a] -> n x [a]"""
def unbind_copy(input, dim=0, *, out=None) -> tuple[Tensor, ...]:
    r"""`unbind`, with the result in memory of its own."""
def unflatten(input, dim, sizes) -> Tensor:
    r"""Dimension `dim` split into `sizes`, of which one may be -1."""
def unfold_copy(input, dimension, size, step, *, out=None) -> Tensor:
    r"""`unfold`, with the result in memory of its own."""
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None) -> Tensor:
    r"""The distinct elements (or, along `dim`, slices) in ascending order; with the places of the input's elements among them and their counts if asked."""
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None) -> Tensor:
    r"""The elements (or slices along `dim`) without immediate repetitions."""
def unravel_index(indices, shape) -> Tensor:
    r"""Flat (row-major) positions in a tensor of `shape` as one tensor of coordinates a dimension."""
def unsafe_chunk(input, chunks, dim=0) -> tuple[Tensor, ...]:
    r"""`chunk` whose pieces autograd takes for separate tensors: they may be written in place, the input must then not be used."""
def unsafe_split(tensor, split_size_or_sections=None, dim=0, *, split_size=None) -> tuple[Tensor, ...]:
    r"""`split` whose pieces autograd takes for separate tensors: they may be written in place, the input must then not be used."""
def unsafe_split_with_sizes(input, split_sizes, dim=0) -> tuple[Tensor, ...]:
    r"""`split_with_sizes` whose pieces autograd takes for separate tensors: they may be written in place, the input must then not be used."""
def unsqueeze(input, dim=None, axis=None) -> Tensor:
    r"""A new dimension of size 1 at position `dim` (or `axis`) of the result."""
def unsqueeze_copy(input, dim=None, axis=None, *, out=None) -> Tensor:
    r"""`unsqueeze`, with the result in memory of its own."""
def use_deterministic_algorithms(mode: _bool, *, warn_only: _bool = False) -> None:
    r"""Every operator is deterministic for a given number of threads; the switch is kept for code that sets it."""
def vander(x, N=None, increasing=False) -> Tensor:
    r"""Powers of a vector's elements, N of them, the highest first unless `increasing`: [n] -> [n, N]."""
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None) -> Tensor:
    r"""The variance of all elements, or along `dim`: squares divided by n - correction (default 1). unbiased=False is correction=0."""
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None) -> tuple[Tensor, ...]:
    r"""(variance, mean) of all elements, or along `dim`."""
def vdot(input, other, *, out=None) -> Tensor:
    r"""`dot` of the first vector's conjugate with the second."""
def view_as_complex(input) -> Tensor:
    r"""A last dimension of size 2 as complex numbers, in the same memory. [.., 2] -> [..]"""
def view_as_real(input) -> Tensor:
    r"""Real and imaginary parts in a last dimension of size 2, in the same memory. [..] -> [.., 2]. Raises RuntimeError for a real tensor."""
def view_copy(input, *shape, size=None, dtype=None, out=None) -> Tensor:
    r"""`view`, with the result in memory of its own."""
def vsplit(input, indices_or_sections) -> tuple[Tensor, ...]:
    r"""tensor_split along dimension 0; a number of sections must divide it."""
def vstack(tensors, *, out=None) -> Tensor:
    r"""cat along dimension 0; 1-d tensors become rows."""
def where(condition, input=None, other=None, *, out=None) -> Tensor:
    r"""Elements of `input` where `condition` holds, of `other` elsewhere; all broadcast. With a condition alone: the indices of its true elements, one tensor a dimension."""
def xlogy(input, other, *, out=None) -> Tensor:
    r"""`xlogy` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
def xlogy_(input: Tensor, other: Any) -> Tensor:
    r"""`input.xlogy_(other)`."""
def zero_(input) -> Tensor:
    r"""Every element set to 0."""
def zeros(*size_given, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    r"""A tensor of a shape with every element 0."""
def zeros_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:
    r"""A tensor shaped as `input` with every element 0."""
