"""`AdaptiveLogSoftmaxWithLoss`: a softmax over very many classes whose rare ones lie in clusters of narrower projections."""
import collections

from ... import ops
from .. import functional as F
from ..module import Module
from .container import ModuleList, Sequential
from .linear import Linear

_ASMoutput = collections.namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Input [N, in_features] (or [in_features]) and classes [N] (or []) → (log-probability of each class given [N], mean of its negative).

    `cutoffs` splits the classes, sorted by frequency, into a shortlist and clusters; cluster i has projections of width in_features / div_value^i.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or any(int(c) != c for c in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        factory = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, width, bias=False, **factory), Linear(width, size, bias=False, **factory)))

    def reset_parameters(self):
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_, target_):
        self._check(input_, target_)
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))  # [N, in], [N]
        output = input.new_zeros(target.size(0))
        places = target.clone()  # [N]: the column of the head that each sample reads
        for i, tail in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel():
                inside = F.log_softmax(tail(input.index_select(0, rows)), dim=1)  # [rows, classes of the cluster]
                within = (target[rows] - low).unsqueeze(1)
                output = output.index_copy(0, rows, inside.gather(1, within).squeeze(1))
                places[rows] = self.shortlist_size + i
        head = F.log_softmax(self.head(input), dim=1)  # [N, head_size]
        output = output + head.gather(1, places.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _check(self, input, target):
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() == 1 and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with size {input.size()}")
        if target.numel() and bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, {target.max().item()}] were found. "
            )

    def _get_full_log_prob(self, input, head_output):
        """Log-probabilities of all classes, [N, n_classes], from the head's result."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            parts.append(F.log_softmax(tail(input), dim=1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return ops.cat(parts, dim=1)

    def log_prob(self, input):
        """Log-probabilities of all classes: [N, in_features] → [N, n_classes]."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The likeliest class of each sample, [N]: `log_prob(input).argmax(1)`, without the clusters that cannot hold it."""
        head = self.head(input)
        output = head.argmax(1)
        elsewhere = output >= self.shortlist_size
        if bool(elsewhere.any()):
            log_prob = self._get_full_log_prob(input[elsewhere], head[elsewhere])
            output[elsewhere] = log_prob.argmax(1)
        return output
