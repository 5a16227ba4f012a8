"""Settings of PyTorch's tracer with PyTorch's defaults. They are kept and change nothing, as no Python is traced here; but `disable = True` runs compiled functions eagerly.

Holds the names that public code sets; a misspelt one is refused, as in PyTorch.
"""
import sys

from .._inductor.config import _Settings
from ..dispatch import HOOKS

automatic_dynamic_shapes = assume_static_by_default = dynamic_shapes = True
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
suppress_errors = verbose = error_on_recompile = fail_on_recompile_limit_hit = disable = False
capture_scalar_outputs = capture_dynamic_output_shape_ops = specialize_int = False
optimize_ddp = guard_nn_modules = inline_inbuilt_nn_modules = force_parameter_static_shapes = True
compiled_autograd = optimize_ddp_lazy_compile = allow_rnn = allow_unspec_int_on_nn_module = skip_fwd_side_effects_in_bwd_under_checkpoint = False
trace_numpy = fake_tensor_cache_enabled = report_guard_failures = True
do_not_emit_runtime_asserts = allow_ignore_mark_dynamic = allow_empty_graphs = cprofile = False
numpy_default_float = "float64"
repro_after, repro_level, minimum_call_count = None, 2, 1



class _Switched(_Settings):
    def __setattr__(self, name, value):
        if name == "disable":
            HOOKS.eager += bool(value) - bool(self.disable)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Switched
