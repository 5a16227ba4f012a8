"""Mixed precision: `autocast` regions, `GradScaler`, and the decorators for custom functions.

What each operator does inside a region is in its table entry (`autocast="lower" | "float32" | "promote"`) and is applied by dispatch;
here is only the switch, and the scaling of losses.
"""
import collections
import functools
import sys
import types
import warnings

from . import dispatch, dtypes, ops
from .autograd.modes import no_grad
from .tensor import Tensor

_SUPPORTED = (dtypes.bfloat16, dtypes.float16)
_settings = {"dtype": dtypes.bfloat16, "cache": True}


def is_autocast_available(device_type):
    """Whether autocast works on a kind of device."""
    return device_type == "cpu"


def is_autocast_enabled(device_type="cpu"):
    """Whether this is inside an enabled region."""
    return device_type == "cpu" and dispatch.CONTEXT.autocast_dtype is not None


def get_autocast_dtype(device_type="cpu"):
    """The dtype of the present region, or the default one outside."""
    if device_type == "cpu" and dispatch.CONTEXT.autocast_dtype is not None:
        return dispatch.CONTEXT.autocast_dtype
    return _settings["dtype"] if device_type == "cpu" else dtypes.float16


def set_autocast_enabled(device_type, enabled=None):
    """Switches autocast on or off for this thread. `autocast` as a context manager undoes itself; this does not."""
    if enabled is None:
        device_type, enabled = "cpu", device_type
    if device_type == "cpu":
        dispatch.set_autocast(_settings["dtype"] if enabled else None)


def set_autocast_dtype(device_type, dtype):
    """The default dtype of regions that name none."""
    if device_type == "cpu":
        _settings["dtype"] = dtype


def get_autocast_gpu_dtype():
    """The dtype that regions on a GPU would have; PyTorch deprecates the name for get_autocast_dtype("cuda")."""
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype():
    """get_autocast_dtype("cpu"), by its deprecated name."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype):
    """set_autocast_dtype("cpu", dtype), by its deprecated name."""
    set_autocast_dtype("cpu", dtype)


def is_autocast_cpu_enabled():
    """is_autocast_enabled("cpu"), by its deprecated name."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled):
    """set_autocast_enabled("cpu", enabled), by its deprecated name."""
    set_autocast_enabled("cpu", enabled)


def is_autocast_cache_enabled():
    return _settings["cache"]


def set_autocast_cache_enabled(enabled):
    """Whether regions keep the casts of weights (unless they say so themselves)."""
    _settings["cache"] = bool(enabled)


def clear_autocast_cache():
    """Forgets the casts of weights made in this region so far."""
    if dispatch.CONTEXT.autocast_cache is not None:
        dispatch.CONTEXT.autocast_cache.clear()


class autocast:
    """A region where matrix products run in `dtype` (bfloat16, or float16) and losses in float32. Context manager and decorator.

    Regions nest; `enabled=False` switches autocast off inside another one. Only device_type "cpu" exists: "cuda" warns and does nothing.
    """

    def __init__(self, device_type="cpu", dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if device_type == "cuda" and enabled:
            warnings.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling", stacklevel=2)
            enabled = False
        elif device_type not in ("cpu", "cuda"):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        if enabled and self.fast_dtype not in _SUPPORTED:
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtype of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._before = []

    def __enter__(self):
        context = dispatch.CONTEXT
        self._before.append((context.autocast_dtype, context.autocast_cache))
        if self.device == "cpu":
            dispatch.set_autocast(self.fast_dtype if self._enabled else None)
            if self._enabled:  # casts of weights are kept until the outermost region ends
                context.autocast_cache = (self._before[-1][1] or {}) if self._cache_enabled else None
        return self

    def __exit__(self, *exc):
        dtype, cache = self._before.pop()
        dispatch.set_autocast(dtype)
        dispatch.CONTEXT.autocast_cache = cache
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return inside


# ---- custom functions -------------------------------------------------------------------------


def _cast(value, dtype):
    """Floating-point tensors (float64 aside) inside a structure, cast."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() and value.dtype is not dtypes.float64 else value
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_cast(item, dtype) for item in value)
    if isinstance(value, dict):
        return {_cast(k, dtype): _cast(v, dtype) for k, v in value.items()}
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorates `forward` of an autograd Function: remembers the region for backward.

    With `cast_inputs`, inputs inside an enabled region are cast to that dtype and forward runs with autocast off.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = is_autocast_enabled(device_type)
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        if not is_autocast_enabled(device_type):
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type):
    """Decorates `backward` of an autograd Function: runs it under the autocast state its forward had."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated


# ---- loss scaling -----------------------------------------------------------------------------

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """Scales the loss so that float16 gradients do not vanish; skips steps whose gradients are not finite and adapts the scale.

    scale(loss).backward(); step(optimizer); update(). The scale grows after `growth_interval` good steps and shrinks after a bad one.
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device = device
        self._enabled = enabled
        if enabled and device != "cpu":
            warnings.warn(f"torch.{device}.amp.GradScaler is enabled, but {device.upper()} is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale = None  # a 0-dimensional float32 tensor, made at the first use
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker = None
        self._stage = collections.defaultdict(lambda: READY)  # of each optimizer since the last update()
        self._found_inf = {}

    def _check_scale(self, name):
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) "
                "earlier in the iteration."
            )

    def _begin(self):
        self._scale = ops.tensor(float(self._init_scale), dtype=dtypes.float32)
        self._growth_tracker = self._init_growth_tracker

    def scale(self, outputs):
        """A tensor, or tensors nested in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._begin()
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(o) for o in outputs)
        if isinstance(outputs, collections.abc.Iterable):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer):
        """Divides the optimizer's gradients by the scale (done by step() unless called before, e.g. for clipping)."""
        if not self._enabled:
            return
        self._check_scale("unscale_")
        stage = self._stage[id(optimizer)]
        if stage is UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if stage is STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        factor = 1.0 / self._scale.double().item()
        self._found_inf[id(optimizer)] = self._unscale(optimizer, factor)
        self._stage[id(optimizer)] = UNSCALED

    @staticmethod
    def _unscale(optimizer, factor):
        """Whether any gradient is not finite (None: there is no gradient), after dividing all of them."""
        found = None
        with no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if p.grad.dtype is dtypes.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    finite = bool(ops.isfinite(p.grad).all())
                    found = (found or False) or not finite
                    p.grad.mul_(factor)
        return found

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(), unless a gradient is inf or nan. Returns its result, or None where skipped."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale("step")
        if self._stage[id(optimizer)] is STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if self._stage[id(optimizer)] is READY:
            self.unscale_(optimizer)
        found = self._found_inf[id(optimizer)]
        if found is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if found else optimizer.step(*args, **kwargs)
        self._stage[id(optimizer)] = STEPPED
        return result

    def update(self, new_scale=None):
        """Adapts the scale after an iteration's steps, or sets it."""
        if not self._enabled:
            return
        self._check_scale("update")
        if new_scale is not None:
            self._scale.fill_(new_scale if not isinstance(new_scale, Tensor) else new_scale.item())
        else:
            found = [f for f in self._found_inf.values() if f is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(any(found))
        self._stage.clear()
        self._found_inf.clear()

    def _adapt(self, bad):
        if bad:
            self._scale.mul_(self._backoff_factor)
            self._growth_tracker = 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            if bool(ops.isfinite(self._scale * self._growth_factor)):  # the scale itself must stay finite
                self._scale.mul_(self._growth_factor)
            self._growth_tracker = 0

    def get_scale(self):
        """The scale as a number; 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker

    def is_enabled(self):
        return self._enabled

    def state_dict(self):
        """Scale, factors, interval and the count of good steps; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker = state_dict["_growth_tracker"]


# ---- the older names under torch.cuda.amp ---------------------------------------------------------


def _deprecated(name):
    warnings.warn(f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', args...)` instead.", FutureWarning, stacklevel=3)


class _CudaGradScaler(GradScaler):
    """`GradScaler("cuda", …)`: disabled with a warning, since there is no such device. Use `torch.amp.GradScaler("cpu")`."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _deprecated("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


class _CudaAutocast(autocast):
    """`autocast("cuda", …)`: disabled with a warning, since there is no such device. Use `torch.autocast("cpu")`."""

    def __init__(self, enabled=True, dtype=dtypes.float16, cache_enabled=True):
        _deprecated("autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


def _cuda_custom(decorator):
    @functools.wraps(decorator)
    def decorate(function=None, **kwargs):
        _deprecated(decorator.__name__)
        return decorator(function, device_type="cuda", **kwargs)

    return decorate


cuda_amp = types.ModuleType("torch.cuda.amp", "Mixed precision by the names of older scripts.")
for _name, _value in (("GradScaler", _CudaGradScaler), ("autocast", _CudaAutocast), ("custom_fwd", _cuda_custom(custom_fwd)), ("custom_bwd", _cuda_custom(custom_bwd))):
    if isinstance(_value, type):
        _value.__name__ = _value.__qualname__ = _name
    setattr(cuda_amp, _name, _value)

autocast_mode = grad_scaler = sys.modules[__name__]  # PyTorch's files of these names
