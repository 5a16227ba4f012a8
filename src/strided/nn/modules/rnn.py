"""Recurrent networks: RNN, LSTM, GRU over whole sequences, and their single-step cells. A layer is one operator (ops/recurrent.py), packed sequences and projections are a loop over time in Python."""
import math
import numbers
import warnings

from ... import ops
from ...amp import get_autocast_dtype, is_autocast_enabled
from ...ops import recurrent
from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter
from ..utils.rnn import PackedSequence, pad_packed_sequence


def _rnn_step(activation):
    def step(gates_x, state, w_hh, b_hh):
        h = activation(gates_x + F.linear(state[0], w_hh, b_hh))  # [N, H]
        return h, (h,)

    return step


def _lstm_step(gates_x, state, w_hh, b_hh, w_hr=None):
    h, c = state
    i, f, g, o = (gates_x + F.linear(h, w_hh, b_hh)).chunk(4, -1)  # each [N, H]
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    if w_hr is not None:
        h = F.linear(h, w_hr)  # [N, proj]
    return h, (h, c)


def _gru_step(gates_x, state, w_hh, b_hh):
    h = state[0]
    xr, xz, xn = gates_x.chunk(3, -1)
    hr, hz, hn = F.linear(h, w_hh, b_hh).chunk(3, -1)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = (xn + r * hn).tanh()
    h = n + z * (h - n)  # (1 − z)·n + z·h
    return h, (h,)


class RNNBase(Module):
    """Layers and directions of a recurrent network over [L, N, in] (batch_first: [N, L, in]; unbatched: [L, in])."""

    gates = 1
    states = 1

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check(dropout)
        directions = 2 if bidirectional else 1
        real = proj_size or hidden_size
        self._flat_weights_names = []
        for layer in range(num_layers):
            width = input_size if layer == 0 else real * directions
            for direction in range(directions):
                shapes = {"weight_ih": (self.gates * hidden_size, width), "weight_hh": (self.gates * hidden_size, real)}
                if bias:
                    shapes["bias_ih"] = shapes["bias_hh"] = (self.gates * hidden_size,)
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    name = f"{name}_l{layer}{'_reverse' if direction else ''}"
                    self._flat_weights_names.append(name)
                    setattr(self, name, Parameter(ops.empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def _check(self, dropout):
        if isinstance(dropout, bool) or not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={self.dropout} and num_layers={self.num_layers}",
                stacklevel=4,
            )
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
            if kind is int and value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self):
        """Nothing to do: weights need not lie side by side."""

    @property
    def all_weights(self):
        """The weights, a list for each layer and direction."""
        names = self._flat_weights_names
        count = 2 + 2 * self.bias + (self.proj_size > 0)
        return [[getattr(self, n) for n in names[i : i + count]] for i in range(0, len(names), count)]

    def _step(self):
        raise NotImplementedError

    def forward(self, input, hx=None):
        packed = isinstance(input, PackedSequence)
        if packed:
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D {'tensor ' if self.mode.startswith('RNN') else ''}instead")
        batched = input.dim() == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)  # [L, N, in]
        self._check_input(x)
        hidden = self._initial(x, hx, batched)
        if not x.size(0):
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        if self.states > 1 and not self.proj_size and is_autocast_enabled():  # autocast's list has the LSTM as a whole, of other networks the products alone
            hidden = tuple(h.to(get_autocast_dtype()) for h in hidden)
        x, last = self._run(x, hidden, None)
        if not batched:
            return x.squeeze(1), self._pack(tuple(s.squeeze(1) for s in last))
        return (x.transpose(0, 1) if self.batch_first else x), self._pack(last)

    def _check_input(self, x):
        weight = self.weight_ih_l0
        if x.dtype != weight.dtype and not is_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({x.dtype})"
            )
        if x.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.size(-1)}"
            )

    def _pack(self, states):
        return states if self.states > 1 else states[0]

    def _initial(self, x, hx, batched):
        """One tensor [layers·directions, N, width] for each part of the state."""
        rows = self.num_layers * (2 if self.bidirectional else 1)
        widths = (self.proj_size or self.hidden_size, self.hidden_size)[: self.states]
        if hx is None:
            return tuple(ops.zeros(rows, x.size(1), w, dtype=x.dtype, device=x.device) for w in widths)
        hx = hx if isinstance(hx, (tuple, list)) else (hx,)
        for h in hx:
            if h.dim() != 2 + batched:
                words = ("batched 3-D", 3) if batched else ("unbatched 2-D", 2)
                given = "hx" if self.states == 1 else "hx and cx"
                shown = f"{h.dim()}-D tensor" if self.states == 1 else f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
                raise RuntimeError(f"For {words[0]} input, {given} should also be {words[1]}-D but got {shown}")
        hx = tuple(h if batched else h.unsqueeze(1) for h in hx)
        for part, (h, w) in enumerate(zip(hx, widths)):
            if tuple(h.shape) != (rows, x.size(1), w):
                which = "hidden" if self.states == 1 else f"hidden[{part}]"
                raise RuntimeError(f"Expected {which} size {(rows, x.size(1), w)}, got {list(h.shape)}")
        return hx

    def _run(self, x, hidden, lengths):
        """All layers: x [L, N, in] → ([L, N, directions·H], final states)."""
        directions = 2 if self.bidirectional else 1
        finals = []
        for layer in range(self.num_layers):
            outs = []
            for direction in range(directions):
                index = layer * directions + direction
                state = tuple(h[index] for h in hidden)
                out, state = self._one(x, state, index, bool(direction), lengths)
                outs.append(out)
                finals.append(state)
            x = outs[0] if directions == 1 else ops.cat(outs, -1)  # [L, N, directions·H]
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = self._dropped(x, lengths)
        return x, tuple(ops.stack(parts) for parts in zip(*finals))

    def _dropped(self, x, lengths):
        """Dropout between layers. Of packed sequences only what is in them draws a number, in the order of packing, as in PyTorch."""
        if lengths is None:
            return F.dropout(x, self.dropout, True)
        from ..utils.rnn import pack_padded_sequence

        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
        return pad_packed_sequence(packed._with(F.dropout(packed.data, self.dropout, True)))[0]

    def _one(self, x, state, index, reverse, lengths):
        """One layer in one direction. The products with the input run for all steps at once."""
        w_ih, w_hh, *rest = self.all_weights[index]
        b_ih, b_hh = (rest.pop(0), rest.pop(0)) if self.bias else (None, None)
        if not rest and lengths is None and x.size(0) and not is_autocast_enabled() and recurrent.applies(x, w_ih, w_hh, *state):
            return self._layer(x, state, w_ih, w_hh, b_ih, b_hh, reverse)
        gates = F.linear(x, w_ih, b_ih).unbind(0)  # L of [N, gates·H]
        step = self._step()
        outs = [None] * x.size(0)
        for t in reversed(range(x.size(0))) if reverse else range(x.size(0)):
            out, new = step(gates[t], state, w_hh, b_hh, *rest)
            if lengths is not None:  # sequences that have ended (or not begun) keep their state
                alive = (lengths > t).unsqueeze(1)
                new = tuple(ops.where(alive, a, b) for a, b in zip(new, state))
                out = out * alive
            outs[t], state = out, new
        return ops.stack(outs), state  # [L, N, H]

    def _layer(self, x, state, w_ih, w_hh, b_ih, b_hh, reverse):
        """The same as one operator."""
        x = x.contiguous()  # batch_first: the input is smaller than its gates
        if self.mode == "GRU":  # the bias of the new gate is inside its product with the reset gate
            bias = ops.zeros(w_hh.size(0), dtype=x.dtype, device=x.device) if b_hh is None else b_hh
            out, h = recurrent.gru_layer(F.linear(x, w_ih, b_ih), *state, w_hh, bias, reverse)
            return out, (h,)
        gates = F.linear(x, w_ih, None if b_ih is None else b_ih + b_hh)  # [L, N, gates·H]
        if self.mode == "LSTM":
            out, h, c = recurrent.lstm_layer(gates, *state, w_hh, reverse)
            return out, (h, c)
        out, h = recurrent.rnn_layer(gates, *state, w_hh, self.nonlinearity, reverse)
        return out, (h,)

    def _forward_packed(self, packed, hx):
        from ..utils.rnn import pack_padded_sequence

        x, lengths = pad_packed_sequence(packed)  # [L, N, in] in the caller's order
        hidden = self._initial(x, hx, True)
        x, last = self._run(x, hidden, lengths.to(x.device))
        out = pack_padded_sequence(x, lengths, enforce_sorted=packed.sorted_indices is None)
        return out, self._pack(last)

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        parts += [f"proj_size={self.proj_size}"] * (self.proj_size != 0)
        parts += [f"num_layers={self.num_layers}"] * (self.num_layers != 1)
        parts += [f"bias={self.bias}"] * (self.bias is not True)
        parts += [f"batch_first={self.batch_first}"] * (self.batch_first is not False)
        parts += [f"dropout={self.dropout}"] * (self.dropout != 0)
        parts += [f"bidirectional={self.bidirectional}"] * (self.bidirectional is not False)
        return ", ".join(parts)


class RNN(RNNBase):
    """h_t = tanh(W_ih·x_t + b_ih + W_hh·h_{t−1} + b_hh), or relu."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, *args, **kwargs):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, *args, **kwargs)
        self.nonlinearity = nonlinearity

    def _step(self):
        return _rnn_step(F.tanh if self.nonlinearity == "tanh" else F.relu)


class LSTM(RNNBase):
    """Long short-term memory; gates in the order input, forget, cell, output. Returns (output, (h, c))."""

    gates = 4
    states = 2

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def _step(self):
        return _lstm_step


class GRU(RNNBase):
    """Gated recurrent unit; gates in the order reset, update, new. Returns (output, h)."""

    gates = 3

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def _step(self):
        return _gru_step


class RNNCellBase(Module):
    """One step: input [N, in] or [in], state [N, H] or [H]."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(ops.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(ops.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(ops.empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    reset_parameters = RNNBase.reset_parameters

    def _advance(self, step, input, state, parts):
        if input.dim() not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for i, s in enumerate(state or ()):
            if s.dim() not in (1, 2):
                name = f"hx[{i}]" if parts > 1 else "hidden"
                raise ValueError(f"{self._get_name()}: Expected {name} to be 1D or 2D, got {s.dim()}D instead")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if state is None:
            state = tuple(ops.zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device) for _ in range(parts))
        elif not batched:
            state = tuple(s.unsqueeze(0) for s in state)
        self._check_sizes(x, state)
        _, new = step(F.linear(x, self.weight_ih, self.bias_ih), state, self.weight_hh, self.bias_hh)
        return new if batched else tuple(s.squeeze(0) for s in new)

    def _check_sizes(self, x, state):
        if x.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.size(1)} expected {self.input_size}")
        for i, s in enumerate(state):
            if s.size(0) != x.size(0):
                raise RuntimeError(f"Input batch size {x.size(0)} doesn't match hidden{i} batch size {s.size(0)}")
            if s.size(1) != self.hidden_size:
                raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {s.size(1)}, expected {self.hidden_size}")

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias is True else f", bias={self.bias}")


class RNNCell(RNNCellBase):
    """One step of RNN."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        step = _rnn_step(F.tanh if self.nonlinearity == "tanh" else F.relu)
        return self._advance(step, input, None if hx is None else (hx,), 1)[0]

    def extra_repr(self):
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """One step of LSTM: returns (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        return self._advance(_lstm_step, input, hx, 2)


class GRUCell(RNNCellBase):
    """One step of GRU."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._advance(_gru_step, input, None if hx is None else (hx,), 1)[0]
