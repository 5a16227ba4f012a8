"""Wrong input in every family: the exception and its first line, as PyTorch 2.13 words them (torch_compare/error_inputs.py compares many more)."""
import pytest

import strided as l
import strided.nn.functional as F

CASES = [
    ('l.maximum(x, 2)', TypeError, "maximum(): argument 'other' (position 2) must be Tensor, not int"),
    ('l.maximum(2, x)', TypeError, "maximum(): argument 'input' (position 1) must be Tensor, not int"),
    ('l.eq(2, x)', TypeError, 'eq() received an invalid combination of arguments - got (int, Tensor), but expected one of:'),
    ('l.eq(2, 3)', TypeError, 'eq() received an invalid combination of arguments - got (int, int), but expected one of:'),
    ('l.pow(2, 3)', TypeError, 'pow() received an invalid combination of arguments - got (int, int), but expected one of:'),
    ('l.max(2, x)', TypeError, 'max() received an invalid combination of arguments - got (int, Tensor), but expected one of:'),
    ('l.clamp_max(2, 3)', TypeError, 'clamp_max() received an invalid combination of arguments - got (int, int), but expected one of:'),
    ('l.special.zeta(2, 3)', TypeError, 'special_zeta() received an invalid combination of arguments - got (int, int), but expected one of:'),
    ('l.isclose(x, 2)', TypeError, "isclose(): argument 'other' (position 2) must be Tensor, not int"),
    ('l.logical_and(2, x)', TypeError, "logical_and(): argument 'input' (position 1) must be Tensor, not int"),
    ('-m', RuntimeError, 'Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.'),
    ('x - m', RuntimeError, 'Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.'),
    ('m - m', RuntimeError, 'Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.'),
    ('1 - m', RuntimeError, 'Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.'),
    ('l.roll(x, [])', RuntimeError, '`shifts` required'),
    ('l.roll(l.tensor(1.), 0, 0)', IndexError, 'Dimension specified as 0 but tensor has no dimensions'),
    ('l.tensor(1.).unbind()', IndexError, 'Dimension specified as 0 but tensor has no dimensions'),
    ('l.hsplit(x, 0)', RuntimeError, 'torch.hsplit attempted to split along dimension 1, but the size of the dimension 3 is not divisible by the split_size 0!'),
    ('x.narrow(0, m[0, 0], 1)', RuntimeError, 'start must be an 0-dim integral Tensor.'),
    ('l.linspace(x, x, 3)', RuntimeError, 'linspace only supports 0-dimensional start and end tensors, but got start with 2 dimension(s) and end with 2 dimension(s).'),
    ('l.linspace(0, 1, 2.5)', TypeError, 'linspace() received an invalid combination of arguments - got (int, int, float), but expected one of:'),
    ('l.zeros(0, 2).aminmax()', RuntimeError, 'aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.'),
    ('l.zeros(0, 2).aminmax(dim=0)', IndexError, 'aminmax: Expected reduction dim 0 to have non-zero size.'),
    ('x.masked_fill(m, 1j)', RuntimeError, 'value cannot be converted to type float without overflow'),
    ('l.gather(x, 0, i, out=l.zeros(2, 3).double())', RuntimeError, 'Expected out tensor to have dtype float, but got double instead'),
    ('l.gather(x, 0, i, out=l.zeros(1).expand(2, 3))', RuntimeError, 'unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('l.cat([x, x], out=x)', RuntimeError, 'unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.'),
    ('l.take(x, i, out=x)', RuntimeError, 'unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.'),
    ('l.amax(x, 0, out=l.zeros(3, dtype=l.int32))', RuntimeError, "Expected the dtype for input and out to match, but got Float for input's dtype and Int for out's dtype."),
    ('l.add(x[0], 1, out=x.view(-1)[1:4])', RuntimeError, 'unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.'),
    ('x.index_add(0, l.tensor([0]), l.zeros(1, 2))', RuntimeError, 'source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = [2, 3] source.shape = [1, 2]'),
    ('F.max_pool2d(x, 2)', RuntimeError, 'non-empty 3D or 4D (batch mode) tensor expected for input'),
    ('F.max_pool2d(c, 0)', RuntimeError, 'stride should not be zero'),
    ('F.max_pool2d(c, 2, 2, 2)', RuntimeError, 'pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1'),
    ('F.max_pool2d(c, 9)', RuntimeError, 'Given input size: (1x4x4). Calculated output size: (1x0x0). Output size is too small'),
    ('F.max_pool1d(l.zeros(2, 4), 7)', RuntimeError, 'max_pool1d() Invalid computed output size: 0'),
    ('F.avg_pool3d(l.zeros(1, 2, 2, 2), 4, padding=2)', RuntimeError, 'input image (T: 2 H: 2 W: 2) smaller than kernel size (kT: 4 kH: 4 kW: 4)'),
    ('F.avg_pool3d(l.zeros(1, 2, 2, 2), 5)', RuntimeError, 'input image (T: 2 H: 2 W: 2) smaller than kernel size (kT: 5 kH: 5 kW: 5)'),
    ('F.avg_pool1d(l.zeros(3), 2)', RuntimeError, "Expected 2 to 3 dimensions, but got 1-dimensional tensor for argument #1 'self' (while checking arguments for avg_pool1d)"),
    ('F.max_pool2d(l.zeros(1, 0, 4), 2)', RuntimeError, 'Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:[1, 0, 4]'),
    ('F.adaptive_avg_pool2d(c, (2, -1))', RuntimeError, 'adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received {2, -1}'),
    ('F.adaptive_max_pool2d(c, (2, 2, 2))', RuntimeError, 'adaptive_max_pool2d(): internal error: output_size.size() must be 2'),
    ('F.adaptive_max_pool2d(c, ())', RuntimeError, 'adaptive_max_pool2d(): internal error: output_size.size() must be 2'),
    ('F.adaptive_max_pool1d(c[0], -1)', RuntimeError, 'Trying to create tensor with negative dimension -1: [1, 4, 1, -1]'),
    ('F.conv2d(c, l.zeros(2, 2, 2, 2))', RuntimeError, 'Given groups=1, weight of size [2, 2, 2, 2], expected input[1, 1, 4, 4] to have 2 channels, but got 1 channels instead'),
    ('F.conv2d(c, l.zeros(2, 1, 2, 2), groups=3)', RuntimeError, 'Given groups=3, expected weight to be at least 3 at dimension 0, but got weight of size [2, 1, 2, 2] instead'),
    ('F.conv2d(c, l.zeros(2, 1, 2, 2), l.zeros(3))', RuntimeError, 'Given weight of size [2, 1, 2, 2], expected bias to be 1-dimensional with 2 elements, but got bias of size [3] instead'),
    ('F.conv2d(c, l.zeros(2, 1, 2, 2), padding=-1)', RuntimeError, 'negative padding is not supported'),
    ('F.conv2d(c, l.zeros(2, 1, 2, 2), stride=0)', RuntimeError, 'non-positive stride is not supported'),
    ('F.conv2d(c, l.zeros(2, 1, 2, 2).double())', RuntimeError, 'expected scalar type Float but found Double'),
    ('F.conv2d(c, l.zeros(2, 1, 2, 2), l.zeros(2).double())', RuntimeError, 'Input type (float) and bias type (double) should be the same'),
    ('F.multi_margin_loss(x, i)', RuntimeError, 'multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target size [2], but got [2, 3]. Input has shape [2, 3].'),
    ('F.multi_margin_loss(x, i[:, 0], weight=x[0, :2])', RuntimeError, 'inconsistent weight size, expected 3 but got [2]'),
    ('F.triplet_margin_loss(x, x, x, margin=-1.0)', ValueError, 'margin must be greater than 0, got -1.0'),
    ('F.triplet_margin_loss(x, x[0], x)', RuntimeError, 'The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor 2D, positive 1D, and negative 2D inputs'),
    ('F.softshrink(x, -0.5)', RuntimeError, 'lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -0.5'),
    ('F.prelu(x, x)', RuntimeError, 'Mismatch of parameter numbers and input channel size. Found parameter numbers = 6 and channel size = 3.'),
    ('F.prelu(l.tensor(1.), x[0])', RuntimeError, 'Not allow zero-dim input tensor.'),
    ('F.margin_ranking_loss(x, x, x[0])', RuntimeError, 'margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: torch.Size([2, 3]), input2: torch.Size([2, 3]), target: torch.Size([3])'),
    ('x[None, 5]', IndexError, 'index 5 is out of bounds for dimension 1 with size 2'),
    ('x[..., 3]', IndexError, 'index 3 is out of bounds for dimension 1 with size 3'),
    ('x[0, 0, 0]', IndexError, 'too many indices for tensor of dimension 2'),
    ('x[i[:, :1], 5]', IndexError, 'index 5 is out of bounds for dimension 1 with size 3'),
    ("x['a']", TypeError, "new(): invalid data type 'str'"),
    ('x[1.5]', IndexError, 'only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)'),
    ('x[::-1]', ValueError, 'step must be greater than zero'),
    ('x[m[0]]', IndexError, 'The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0'),
    ('x[l.tensor([0, 4])]', IndexError, 'index 4 is out of bounds for dimension 0 with size 2'),
    ('x[l.tensor(1.)]', IndexError, 'tensors used as indices must be long, int, byte or bool tensors'),
    ('x[0].index_add(0, i[0], x[1, 0])', IndexError, 'Dimension specified as 0 but tensor has no dimensions'),
    ('x[0, 0].index_add(0, i[0, :1], x[0, :1])', RuntimeError, 'source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = [] source.shape = [1]'),
    ('x.index_add(1, i[0, 0], x[0, 0])', RuntimeError, 'index_add_(): Indexing dim 1 is out of bounds of the source tensor with dim 0'),
    ('x[0].index_copy(0, i[0], x)', IndexError, 'index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality (2), destination dimensionality (1)'),
    ('x[0].index_copy(0, i[0], x[0, 0])', IndexError, 'index_copy_(): When source is scalar, index should have one element (got 3)'),
    ('x.index_fill(0, i, 1)', RuntimeError, 'Index has to be a vector/scalar'),
    ('x.index_reduce(0, i[0], x, "amax")', RuntimeError, 'index_reduce_(): Number of indices (3) should be equal to source.size(dim): (2), for dim: 0'),
    ('x[0].scatter(0, i[0], x[0, 0])', RuntimeError, 'Expected index [3] to be no larger than self [3] apart from dimension 0 and to be no larger size than src []'),
    ('l.tensor(1.).index_select(0, i[0])', RuntimeError, 'index_select(): Index to scalar can have only 1 value, got 3 value(s)'),
    ('x.put(i[0], x)', IndexError, 'put_(): Expected source and index to have the same number of elements, but got source.numel() = 6, index.numel() = 3'),
    ('l.lerp(i, i, 0.5)', NotImplementedError, '"lerp_kernel_scalar" not implemented for \'Long\': what lies between two integers is no integer, convert them with .float()'),
    ('l.add("a", 2)', TypeError, 'add() received an invalid combination of arguments - got (str, int), but expected one of:'),
    ('l.tensor(1.)[0]', IndexError, 'invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number'),
    ('l.tensor(1.)[:]', IndexError, 'slice() cannot be applied to a 0-dim tensor.'),
    ('l.zeros(0, 3)[i]', IndexError, 'index is out of bounds for dimension with size 0'),
    ('x[[0], [0, 1], [0]]', IndexError, 'too many indices for tensor of dimension 2'),
    ("F.layer_norm(x, (3,), d, d)", RuntimeError, 'mixed dtype (CPU): expect parameter to have scalar type of Float'),
    ("F.layer_norm(x, (3,), x[0], d)", RuntimeError, 'expected scalar type Float but found Double'),
    ("F.layer_norm(x.double(), (3,), x[0])", RuntimeError, 'mixed dtype (CPU): all inputs must share same datatype.'),
    ("F.layer_norm(x.bfloat16(), (3,), d.half())", RuntimeError, 'mixed dtype (CPU): expect parameter to have scalar type of Float'),
    ("F.batch_norm(x, None, None, d, d, training=True)", RuntimeError, 'mixed dtype (CPU): expect parameter to have scalar type of Float'),
    ("F.batch_norm(x, d, d, x[0], x[0])", RuntimeError, 'expected scalar type Float but found Double'),
    ("F.batch_norm(i, d, d)", NotImplementedError, '"batch_norm" not implemented for \'Long\''),
    ("F.group_norm(x, 1, d, d)", RuntimeError, 'mixed dtype (CPU): expect parameter to have scalar type of Float'),
    ("F.group_norm(x.half(), 1, d.bfloat16())", RuntimeError, 'mixed dtype (CPU): expect parameter to have scalar type of Float'),
    ("F.instance_norm(c, weight=d[:1])", RuntimeError, 'mixed dtype (CPU): expect parameter to have scalar type of Float'),
    ("F.conv_transpose2d(c, c.double())", RuntimeError, 'Input type (torch.FloatTensor) and weight type (torch.DoubleTensor) should be the same or input should be a MKLDNN tensor and weight is a dense tensor'),
    ("F.conv_transpose2d(c.double(), c)", RuntimeError, 'expected scalar type Double but found Float'),
    ("F.bilinear(x, x, d.reshape(1, 1, 3))", RuntimeError, 'All tensors must have the same dtype, got input1: float, input2: float, weight: double'),
    ("F.prelu(x, d[:1])", RuntimeError, 'prelu: Type promoting not supported. Got Float and Double'),
    ("F.binary_cross_entropy(x / 6, x.double())", RuntimeError, 'Found dtype Double but expected Float'),
    ('F.max_pool1d(c[0], 3, 2, 2, 2)', RuntimeError, 'max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=3'),
    ('F.max_pool1d(c[0], 3, 2, 2, 2, return_indices=True)', RuntimeError, 'pad should be smaller than or equal to half of kernel size, but got padW = 2, padH = 0, kW = 3, kH = 1'),
    ('F.max_pool2d(c, 3, 2, 2, 2)', RuntimeError, 'pad should be smaller than or equal to half of kernel size, but got padW = 2, padH = 2, kW = 3, kH = 3'),
    ('F.max_pool2d(c, (3, 5), 1, (1, 3), 2)', RuntimeError, 'pad should be smaller than or equal to half of kernel size, but got padW = 3, padH = 1, kW = 5, kH = 3'),
    ('F.max_pool3d(c, 3, 2, 2, 2)', RuntimeError, 'pad should be smaller than or equal to half of kernel size, but got kT: 3 kW: 3 kH: 3 padT: 2 padW: 2 padH: 2'),
    ('l.nn.BatchNorm2d(3)(l.zeros(2, 4, 3, 3))', RuntimeError, 'running_mean should contain 4 elements not 3'),
    ('l.nn.BatchNorm2d(3).eval()(l.zeros(2, 4, 3, 3))', RuntimeError, 'running_mean should contain 4 elements not 3'),
    ('l.nn.BatchNorm1d(3, track_running_stats=False)(l.zeros(2, 4))', RuntimeError, 'weight should contain 4 elements not 3'),
    ('F.batch_norm(x, d[:3].float(), l.ones(4))', RuntimeError, 'running_var should contain 3 elements not 4'),
    ('F.batch_norm(x, d[:3].float(), l.ones(3), None, l.ones(4))', RuntimeError, 'bias should contain 3 elements not 4'),
    ('l.nn.InstanceNorm2d(3, track_running_stats=True)(l.zeros(2, 4, 3, 3))', RuntimeError, 'running_mean should contain 8 elements not 6'),
    ('F.binary_cross_entropy_with_logits(x, i)', RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ('F.binary_cross_entropy_with_logits(x, i.int(), pos_weight=x[0])', RuntimeError, "result type Float can't be cast to the desired output type Int"),
    ('F.binary_cross_entropy_with_logits(x, m)', RuntimeError, 'Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.'),
    ('F.binary_cross_entropy_with_logits(i, x)', NotImplementedError, "\"log_sigmoid_cpu\" not implemented for 'Long'"),
    ('l.nn.Conv2d(3, 4)', TypeError, "Conv2d.__init__() missing 1 required positional argument: 'kernel_size'"),
    ('l.nn.ConvTranspose1d(3)', TypeError, "ConvTranspose1d.__init__() missing 2 required positional arguments: 'out_channels' and 'kernel_size'"),
    ('l.nn.Conv3d(3, 4, 3, foo=1)', TypeError, "Conv3d.__init__() got an unexpected keyword argument 'foo'"),
]

ATTENTION = [  # keyword of nn.MultiheadAttention(8, 2) over 4 queries, 5 keys and 3 samples
    ("key_padding_mask", (3, 4), AssertionError, "Expected key_padded_mask.shape[1] to be 5, but got 4"),
    ("key_padding_mask", (2, 5), AssertionError, "Expected key_padded_mask.shape[0] to be 3, but got 2"),
    ("key_padding_mask", (5,), AssertionError, "For batched (3-D) `query`, expected `key_padding_mask` to be `None` or 2-D but found 1-D tensor instead"),
    ("attn_mask", (4, 4), RuntimeError, "The shape of the 2D attn_mask is torch.Size([4, 4]), but should be (4, 5)."),
    ("attn_mask", (3, 4, 5), RuntimeError, "The shape of the 3D attn_mask is torch.Size([3, 4, 5]), but should be (6, 4, 5)."),
    ("attn_mask", (5,), AssertionError, "For batched (3-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found 1-D tensor instead"),
]


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("name,shape,kind,line", ATTENTION, ids=[f"{c[0]} {c[1]}" for c in ATTENTION])
def test_masks_of_attention(name, shape, kind, line, need_weights):
    query, key = l.zeros(4, 3, 8), l.zeros(5, 3, 8)
    with pytest.raises(kind) as caught:
        l.nn.MultiheadAttention(8, 2)(query, key, key, need_weights=need_weights, **{name: l.zeros(shape, dtype=l.bool)})
    assert str(caught.value).splitlines()[0] == line


def test_masks_of_attention_without_a_batch():
    attention, query, key = l.nn.MultiheadAttention(8, 2), l.zeros(4, 8), l.zeros(5, 8)
    with pytest.raises(AssertionError, match=r"Expected `attn_mask` shape to be \(2, 4, 5\) but got torch.Size\(\[3, 4, 5\]\)"):
        attention(query, key, key, attn_mask=l.zeros(3, 4, 5))
    assert attention(query, key, key, attn_mask=l.zeros(2, 4, 5))[0].shape == (4, 8)
    with pytest.raises(AssertionError, match=r"key shape torch.Size\(\[5, 1, 8\]\) does not match value shape torch.Size\(\[6, 1, 8\]\)"):
        attention(query, key, l.zeros(6, 8))
    widened = l.nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)  # the masks are those of the given keys
    assert widened(query, key, key, key_padding_mask=l.zeros(5, dtype=l.bool))[1].shape == (4, 7)
    with pytest.raises(AssertionError, match=r"Expected key_padded_mask.shape\[1\] to be 7, but got 6"):
        widened(query, key, key, key_padding_mask=l.zeros(4, dtype=l.bool))


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_refuse_no_steps_and_states_of_another_size(kind):
    layer = getattr(l.nn, kind)(3, 4)
    for x in (l.zeros(0, 2, 3), l.zeros(0, 3)):
        with pytest.raises(RuntimeError, match="^Expected sequence length to be larger than 0 in RNN$"):
            layer(x)
    right, wrong = l.zeros(1, 2, 4), l.zeros(1, 3, 4)
    states = {"hidden": wrong} if kind != "LSTM" else {"hidden[0]": (wrong, right), "hidden[1]": (right, wrong)}
    for name, state in states.items():
        with pytest.raises(RuntimeError) as caught:
            layer(l.zeros(5, 2, 3), state)
        assert str(caught.value) == f"Expected {name} size (1, 2, 4), got [1, 3, 4]"


@pytest.fixture
def operands():
    return {
        "l": l,
        "F": F,
        "x": l.arange(6.0).reshape(2, 3),
        "m": l.tensor([[True, False, True], [False, True, False]]),
        "i": l.zeros(2, 3, dtype=l.int64),
        "c": l.zeros(1, 1, 4, 4),
        "d": l.ones(3, dtype=l.float64),
    }


@pytest.mark.parametrize("text,kind,line", CASES, ids=[c[0] for c in CASES])
def test_wrong_input(operands, text, kind, line):
    with pytest.raises(kind) as caught:
        eval(text, operands)
    assert type(caught.value) is kind
    assert str(caught.value).splitlines()[0].rstrip() == line
    assert operands["x"].tolist() == [[0, 1, 2], [3, 4, 5]]  # a call that fails writes nothing


def test_parameters_of_float32_go_with_sixteen_bits():
    one = l.ones(4)
    for low in (l.bfloat16, l.float16):
        x = l.randn(2, 4, 3, dtype=low)
        for norm in (lambda x: F.batch_norm(x, one.clone(), one.clone(), one, one), lambda x: F.group_norm(x, 2, one, one), lambda x: F.layer_norm(x.mT, (4,), one, one)):
            assert norm(x).dtype is low
    assert F.rms_norm(x.mT, (4,), one).dtype is low and F.rms_norm(l.ones(2, 4), (4,), one.double()).dtype is l.float32  # the input's own, always


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_sizes_are_ints_also_where_an_equal_one_was_met(name):
    make = getattr(l, name)
    assert make(2).shape == (2,) and make(2, 3).shape == (2, 3)
    for size in ((2.0,), (2, 3.0)):
        with pytest.raises(TypeError, match=f"^{name}\\(\\).*argument 'size'"):
            make(*size)
    with pytest.raises(TypeError, match=f"^{name}\\(\\): argument 'size' failed to unpack the object at pos 1"):
        make(2**70)
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        make(2**62)


def test_complex_factors_of_real_products():
    x = l.ones(2, 2)
    for call in (lambda: l.addmm(x, x, x, alpha=1j), lambda: l.addmm(x, x, x, beta=1j), lambda: l.addmv(l.ones(2), x, l.ones(2), alpha=1j)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
            call()


def test_distances_between_two_dtypes():
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        l.cdist(l.ones(2, 3), l.ones(2, 3).double())
