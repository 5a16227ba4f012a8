"""One expression a line, evaluated with PyTorch and with this package: the same text printed, or the same error in the same words.

CREATE and SHAPE compare results and messages, GRAPH the recorded nodes, strides, values and gradients of shape operators.
"""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import strided

CREATE = """
torch.full((2,),-1,dtype=torch.uint8)
torch.full((2,),300,dtype=torch.uint8)
torch.full((2,),1.5,dtype=torch.int64)
torch.full((2,),float('nan'),dtype=torch.int64)
torch.full((2,),1e10,dtype=torch.int32)
torch.full((2,),1e39)
torch.full((2,),70000.,dtype=torch.half)
torch.full((2,),3)
torch.full((2,),True)
torch.full((2,),3.)
torch.full((2,),torch.tensor(3.))
torch.full((2,),torch.tensor(3))
torch.full(2,3)
torch.full((2,),None)
torch.tensor([torch.tensor([1,2]),torch.tensor([3,4])])
torch.tensor([torch.tensor(1),torch.tensor(2.5)])
torch.tensor([torch.tensor(1.,dtype=torch.float64),2.])
torch.tensor([[1,2,3],[4,5]])
torch.tensor([[1,2],3])
torch.tensor([1,[2,3]])
torch.tensor([np.array([1,2]),np.array([3,4])])
torch.tensor([np.float32(1),np.float32(2)])
torch.tensor(np.array([1.,2.]))
torch.tensor(np.float64(3))
torch.tensor([1,'a'])
torch.tensor('a')
torch.tensor(['a'])
torch.tensor(None)
torch.tensor([None])
torch.tensor([300],dtype=torch.uint8)
torch.tensor([-1],dtype=torch.uint8)
torch.tensor([1.7],dtype=torch.int32)
torch.tensor([float('nan')],dtype=torch.int32)
torch.tensor([2**70])
torch.tensor(2**63)
torch.tensor([2**63],dtype=torch.float32)
torch.tensor([1e39])
torch.tensor([1e39],dtype=torch.float16)
torch.tensor([True,2])
torch.tensor([True,2.5])
torch.tensor([1,2],dtype=torch.bool)
torch.tensor([])
torch.tensor([[]])
torch.tensor([[],[1]])
torch.tensor(())
torch.tensor(range(3))
torch.tensor({1,2})
torch.tensor({1:2})
torch.tensor(x for x in [1])
torch.tensor(torch.tensor([1,2]))
torch.tensor([1.,2.],requires_grad=True)
torch.tensor([1,2],requires_grad=True)
torch.tensor(5,dtype=torch.bfloat16)
torch.tensor([b'a'])
torch.tensor(bytearray(b'ab'))
torch.tensor(b'ab')
torch.tensor([1,2],device='meta')
torch.tensor([2**40],dtype=torch.int32)
torch.as_tensor([1,2])
torch.as_tensor(3.)
torch.as_tensor(np.array([1,2],dtype=np.int16))
torch.asarray([1,2])
torch.asarray(np.arange(3), copy=True)
torch.asarray(b'abcd',dtype=torch.uint8)
torch.from_numpy([1])
torch.from_numpy(np.array('a'))
torch.from_numpy(np.arange(3)[::-1])
torch.from_numpy(np.float32(3))
torch.from_numpy(np.array(3.))
torch.arange(5)
torch.arange(5.)
torch.arange(1,5)
torch.arange(1,2,0.25)
torch.arange(5,1,-1)
torch.arange(5,1)
torch.arange(1,5,0)
torch.arange(0,1,0.1,dtype=torch.int64)
torch.arange(3,dtype=torch.float16)
torch.arange(torch.tensor(3))
torch.arange(True)
torch.arange(float('nan'))
torch.arange(0,float('inf'))
torch.arange(1,5,2.)
torch.arange(start=1,end=4)
torch.arange(end=4)
torch.linspace(0,1,5)
torch.linspace(0,10,5,dtype=torch.int64)
torch.linspace(0,1,1)
torch.linspace(0,1,0)
torch.linspace(0,1,-1)
torch.linspace(torch.tensor(0.),torch.tensor(1.),3)
torch.logspace(0,2,3)
torch.logspace(0,2,3,base=2)
torch.logspace(0,2,3,2)
torch.eye(2)
torch.eye(2,3)
torch.eye(-1)
torch.eye(2,dtype=torch.int32)
torch.zeros(2,3)
torch.zeros((2,3),dtype=torch.int32)
torch.zeros([2])
torch.zeros(())
torch.zeros()
torch.zeros(size=(2,))
torch.zeros(2,requires_grad=True)
torch.zeros(2.5)
torch.zeros('a')
torch.zeros(torch.tensor(3))
torch.zeros(2,names=('a',))
torch.ones(2,dtype=torch.bool)
torch.zeros_like(torch.ones(2,3).t()).stride()
torch.zeros_like(torch.ones(2,3),dtype=torch.int64)
torch.full_like(torch.ones(2),7)
torch.full_like(torch.ones(2,dtype=torch.int64),7.5)
torch.ones(2).new_zeros(3).dtype
torch.ones(2).new_zeros((3,4)).shape
torch.ones(2).new_zeros(3,4).shape
torch.ones(2).new_full((2,),3)
torch.ones(2).long().new_tensor([1.5])
torch.ones(2).new_tensor([1,2])
torch.ones(2).new_empty(3).shape
torch.ones(2).new_ones(2,dtype=torch.int8)
torch.ones(2).new(3).shape
torch.scalar_tensor(3)
torch.frombuffer(bytearray(b'abcdefgh'),dtype=torch.int32)
torch.frombuffer(bytearray(b'abcdefgh'),dtype=torch.int32,count=1,offset=4)
torch.frombuffer(bytearray(b'abcdefgh'),dtype=torch.int32,offset=9)
torch.frombuffer(bytearray(b'abcdefg'),dtype=torch.int32)
torch.frombuffer(bytearray(b''),dtype=torch.int32)
torch.ones(2).item()
torch.ones(1,1).item()
bool(torch.ones(2))
bool(torch.zeros(0))
int(torch.tensor([2.7]))
float(torch.tensor(3))
[1,2,3][torch.tensor(1)]
[1,2,3][torch.tensor(1.)]
[1,2,3][torch.tensor([1])]
[1,2,3][torch.tensor(True)]
len(torch.tensor(1))
list(torch.tensor(1))
list(torch.arange(3))
3 in torch.arange(4)
torch.tensor(3) in torch.arange(4)
'a' in torch.arange(4)
torch.equal(torch.ones(2),torch.ones(2))
torch.equal(torch.ones(2),torch.ones(3))
torch.equal(torch.ones(2),torch.ones(2).long())
torch.allclose(torch.ones(2),torch.ones(2)+1e-7)
torch.allclose(torch.ones(2),torch.ones(2).double())
torch.isclose(torch.ones(2),torch.ones(2)+1e-3)
torch.isclose(torch.tensor([float('nan'),float('inf')]),torch.tensor([float('nan'),float('inf')]),equal_nan=True)
torch.isclose(torch.tensor([1,2]),torch.tensor([1,3]))
torch.isclose(torch.ones(2),torch.ones(2),rtol=-1)
int(torch.ones(2))
complex(torch.tensor(2.))
torch.ones(2,3).tolist()
torch.tensor(2.5).tolist()
np.array(torch.ones(2))
np.asarray(torch.ones(2),dtype=np.int32)
torch.ones(2,requires_grad=True).numpy()
torch.ones(2,requires_grad=True).numpy(force=True)
torch.ones(2,device='meta').numpy()
torch.ones(2,device='meta').item()
torch.ones(2,device='meta').tolist()
torch.empty(2,3,memory_format=torch.channels_last)
torch.empty(2,3,4,5,memory_format=torch.channels_last).stride()
torch.empty_strided((2,3),(1,2)).stride()
torch.empty_like(torch.zeros(2,3,4,5),memory_format=torch.channels_last).stride()
torch.zeros(2,out=torch.ones(3))
torch.ones(2,dtype='float32')
torch.ones(2,dtype=float)
torch.ones(2,dtype=int)
torch.tensor(1,dtype=float)
torch.ones(2,device='cuda')
torch.tril_indices(3,3)
torch.zeros(2,layout=torch.strided)
torch.zeros(2,pin_memory=True)
torch.zeros(3).fill_(torch.tensor([1.]))
torch.range(1,3)
torch.is_tensor(1)
torch.numel(torch.ones(2))
torch.ones(2).is_same_size(torch.ones(2))
torch.tensor([1.5]).__index__()
round(torch.tensor(1.567),2)
torch.tensor(1.567).__round__()
hash(torch.tensor(1)) is not None
torch.tensor([[1,2],[3,4]]).__reversed__()
""".strip().split("\n")

SHAPE = """
z(2, 3).t().view(6)
z(2, 3).expand(2, 2, 3).fill_(1)
z(3, 3).copy_(z(2, 3))
z(2, 3).repeat(2)
z(2, 3).repeat(-1, 2)
z(2, 3).flip(0, 0)
z(2, 3).flip(5)
z(2, 3).roll((1, 2), 0)
z(2, 3).roll((1, 2))
z(2).rot90()
z(2, 3).rot90(1, (0, 0))
z(2, 3).rot90(1, (0,))
z(2, 2, 2).fliplr()
z(2).fliplr()
torch.tensor(1).flipud()
z(2, 2, 2).diag()
z(2).diag_embed(0, 1, 1)
z(2, 3).T.shape
z(2, 3, 4).T.shape
z(2).mT
z(2, 3, 4).H
z(2).T.shape
torch.tensor(1).T.shape
torch.tensor(1).mT
torch.tensor(1).H.shape
z(2).mH
torch.meshgrid(z(2), z(3), indexing='zz')
torch.meshgrid()
torch.meshgrid(z(2), z(3).long(), indexing='ij')
z(2, 3).to('cuda')
z(2, 3).to(1)
z(2, 3).to(torch.float64, copy=True).dtype
z(2, 3).type()
z(2, 3).type('torch.DoubleTensor').dtype
z(2, 3).long().type()
z(2, 3).type(torch.int32).type()
z(2).to('float64')
z(2, device='meta').cpu()
z(2, device='meta').to('cpu')
z(2).to('meta')
z(2).bfloat16().type()
z(2).bool().type()
z(2, 3).contiguous(memory_format=torch.channels_last)
z(2, 3).clone(memory_format=1)
z(2, 3).permute((1, 0)).shape
z(2, 3).permute([1, 0]).shape
torch.permute(z(2, 3), (1, 0)).shape
torch.squeeze(z(1, 3), 0).shape
z(2, 3).as_strided((2,), (1,), 10)
z(2, 3)[1:].as_strided((2,), (1,)).storage_offset()
z(2, 3).unflatten(1, [3, 1]).shape
z(2, 3).repeat_interleave(torch.tensor([1, 2]), 0).shape
z(2, 3).repeat_interleave(torch.tensor([1, 2]), 1).shape
z(2, 3).repeat_interleave(-1)
torch.repeat_interleave(torch.tensor([1, 2]))
z(2, 3).repeat_interleave(2, dim=1, output_size=6).shape
z(2, 3).repeat_interleave(2, dim=1, output_size=7).shape
torch.combinations(torch.arange(3), 2, True)
torch.combinations(z(2, 2))
torch.cartesian_prod(torch.arange(2)).shape
torch.broadcast_tensors(z(2), z(3))
z(2, 3).tile(2, 2, 2).shape
z(2, 3).view(size=(3, 2)).shape
z(2, 3).reshape(shape=(3, 2)).shape
z(2, 3).view(dtype=torch.int32).dtype
torch.flip(z(2, 3), [0]).shape
torch.tensor(5).flip(0)
z(2, 3).flip()
z(2, 3).narrow(0, torch.tensor(1), 1).shape
z(2, 3).unfold(-1, 2, 1).shape
z(2, 3).set_(z(4)).shape
z(2, 3).set_().shape
z(2, 3).resize_(4, 4).shape
z(2, 3).resize_(-1)
z(2, 3).type_as(1)
z(2, 3).expand(2, 3, -1)
z(2, 3).movedim((0, 1), (1, 0)).shape
z(2, 3).swapaxes(0, 1).shape
z(2, 3).adjoint().shape
z(2).adjoint()
torch.atleast_2d(z(2), torch.tensor(1))
torch.atleast_1d([z(2), torch.tensor(1)])
torch.broadcast_to(z(3), (2, 3)).shape
z(2, 3).view(torch.Size([6])).shape
z(2, 3).view(torch.tensor(6)).shape
z(2, 3).unsqueeze(dim=0).shape
z(2, 3).transpose(dim0=0, dim1=1).shape
z(2, 3).permute(dims=(1, 0)).shape
z(2, 3).expand(size=(2, 3)).shape
z(2, 3).flatten(start_dim=0, end_dim=1).shape
z(2, 3).repeat(repeats=(1, 2)).shape
z(2, 3).tile(dims=(1, 2)).shape
""".strip().split("\n")

GRAPH = """
a.view(12)
a.reshape(12)
a.t().reshape(12)
a.reshape(3,4)
a.view(3,4)
a.transpose(0,1)
a.t()
a.T
a.mT
b.mT
b.permute(2,0,1)
a.expand(2,3,4)
a.expand(3,4)
a.broadcast_to(2,3,4)
a.unsqueeze(0)
a.squeeze()
a.squeeze(0)
a.unsqueeze(0).squeeze(0)
a.unsqueeze(0).squeeze((0,1))
a.flatten()
a.flatten(1)
b.flatten(1)
a.unflatten(1,(2,2))
a.ravel()
a.t().ravel()
a.t().flatten()
a.narrow(0,1,2)
a.select(0,1)
a[1]
a[1:]
a[:,None]
a[...]
a[None]
a.diagonal()
a.diag()
a[0].diag()
a[0].diag_embed()
a.unfold(1,2,1)
a.as_strided((2,2),(1,2))
a.contiguous()
a.t().contiguous()
a.clone()
a.repeat(2,1)
a.repeat(2,2,1)
a.repeat(1,1)
a.tile((2,))
a.repeat_interleave(2)
a.repeat_interleave(2,0)
a.flip(0)
a.fliplr()
a.flipud()
a.roll(1)
a.roll(1,0)
a.roll((1,2),(0,1))
a.rot90()
a.rot90(2)
a.movedim(0,1)
a.moveaxis(0,1)
a.swapaxes(0,1)
a.swapdims(0,1)
torch.broadcast_tensors(a,b)
torch.atleast_1d(a)
torch.atleast_3d(a)
torch.atleast_2d(a[0])
torch.atleast_3d(a[0])
torch.meshgrid(a[0],a[1],indexing='ij')
torch.meshgrid(a[0],a[1],indexing='xy')
a.double()
a.float()
a.half()
a.to(torch.float64)
a.to(a)
a.type(torch.float64)
a.type_as(torch.tensor(1.).double())
a.view_as(torch.zeros(12))
a.reshape_as(torch.zeros(12))
a.expand_as(b)
a.clone().copy_(b[0])
torch.zeros(3,4).copy_(a)
torch.zeros(2,3,4).copy_(a)
torch.zeros(3,4,dtype=torch.double).copy_(a)
a.clone().squeeze_()
a.clone().unsqueeze_(0)
a.clone().t_()
a.clone().transpose_(0,1)
a.clone().swapaxes_(0,1)
a.clone().zero_()
a.clone().fill_(2)
a.clone().fill_(a.sum())
a.view(torch.int32)
a.to(torch.int64)
i.to(memory_format=torch.channels_last)
i.contiguous(memory_format=torch.channels_last)
i.clone(memory_format=torch.channels_last)
a.detach()
a.unbind()
a.split(2)
a.chunk(2)
a.cpu()
torch.cartesian_prod(a[0],a[1])
a.H
a.adjoint()
a.mH
a.new_zeros(3)
torch.ones_like(a)
a.matrix_H
b.mT
a.view(3,2,2)
a.resize_(2)
a.real
a.alias()
torch.squeeze(a,[0])
a.t().view(4,3)
a.unsqueeze(0).expand(2,-1,-1).reshape(6,4)
a.expand(2,3,4).clone()
a.transpose(0,1).clone()
a.select(1,0).clone()
a[:, ::2].clone()
a[:, ::2]
a.squeeze(-1)
a.reshape(-1)
torch.reshape(a,(2,-1))
a.view(-1,2).view(12)
a.swapdims(0,0)
a.transpose(0,0)
""".strip().split("\n")


def evaluate(library, source):
    values = {"torch": library, "np": np, "z": library.zeros}
    for name, shape in (("a", (3, 4)), ("b", (2, 3, 4)), ("i", (2, 3, 4, 5))):
        values[name] = library.arange(float(np.prod(shape))).view(*shape).clone().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(source, values), values
        except Exception as error:
            return error, values


def text(result):
    if isinstance(result, Exception):
        return f"{type(result).__name__}: {str(result).splitlines()[0][:110]}"
    return repr(result).replace("strided.", "")


@pytest.mark.parametrize("source", CREATE + SHAPE)
def test_result(source):
    assert text(evaluate(strided, source)[0]) == text(evaluate(torch, source)[0])


def described(library, source):
    result, values = evaluate(library, source)
    if isinstance(result, Exception):
        return text(result)
    tensors = result if isinstance(result, (tuple, list)) else (result,)
    facts = []
    for t in tensors:
        below = tuple(type(node).__name__ for node, _ in t.grad_fn.next_functions) if t.grad_fn else ()
        facts.append((type(t.grad_fn).__name__, below, tuple(t.shape), t.stride(), t._is_view(), t.detach().double().tolist()))
        if t.requires_grad and t.is_floating_point() and t.grad_fn is not None:
            t.pow(2).sum().backward(retain_graph=True)
    return facts, [None if values[name].grad is None else values[name].grad.tolist() for name in "abi"]


@pytest.mark.parametrize("source", GRAPH)
def test_graph_and_gradients(source):
    assert described(strided, source) == described(torch, source)
