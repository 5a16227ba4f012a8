"""Parameters as one vector, and back."""
from ... import ops


def parameters_to_vector(parameters):
    """All parameters, flattened and joined: [Σ numel]."""
    return ops.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Gives the parameters the values (and memory) of consecutive pieces of a vector."""
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p).data
        start += p.numel()
