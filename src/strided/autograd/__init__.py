"""Define-by-run automatic differentiation: grad modes, nodes, the engine, custom functions, checkpointing, derivatives as functions.

The public face of `torch.autograd`, and what operators need to record themselves. No operator lives here.
"""

from strided.autograd.graph import (  # noqa: F401
    AccumulateGrad,
    Node,
    backward as backward_node,
    check_inplace,
    record,
    record_inplace,
    record_view,
    tracking,
)
from strided.autograd.modes import (  # noqa: F401
    STATE,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
