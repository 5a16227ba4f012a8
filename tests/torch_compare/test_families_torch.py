"""Reductions, row operators, indexing, joins and order against PyTorch: values, dtypes, gradients, gradients of gradients, and the first line of errors.

Each case is one expression, evaluated with `l` (the library), `F`, and the operands: x, y float32 [3, 4, 5], v [5], ix int64 [3, 2, 5] in 0…3, m bool [3, 4, 5].
"""
import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as TF

import strided
import strided.nn.functional as SF

rng = np.random.default_rng(0)
DATA = {
    "x": rng.standard_normal((3, 4, 5), np.float32),
    "y": rng.standard_normal((3, 4, 5), np.float32),
    "z": rng.standard_normal((3, 2, 5), np.float32),
    "v": rng.standard_normal(5, np.float32),
    "ix": rng.integers(0, 4, (3, 2, 5)),
    "m": rng.random((3, 4, 5)) > 0.5,
}
REDUCTIONS = """
x.sum() | x.sum(1) | x.sum((0,2),True) | x.mean() | x.mean((0,1)) | x.prod() | x.prod(1) | x.max() | x.max(1) | x.min(-1,True) | x.amax(1) | x.amin((0,1)) | x.argmax()
x.argmin(1,keepdim=True) | x.any() | x.all(1) | m.any(()) | x.var() | x.var(1) | x.var((0,2),correction=0) | x.std() | x.std(-1,keepdim=True) | l.var_mean(x,1) | l.std_mean(x)
x.norm() | x.norm(1) | x.norm(3,1) | x.norm(float('inf'),1) | x.norm(0.5,2) | x.logsumexp(1) | x.logsumexp((0,2),True) | x.count_nonzero(1) | x.nansum(1) | x.aminmax(dim=1)
x.cumsum(1) | x.cumsum(0) | x.cumprod(-1) | x.cummax(1) | x.cummin(0) | x.logcumsumexp(1) | x.diff(2,1) | ix.sum() | ix.prod(1) | ix.max(1) | ix.cumsum(1) | m.sum(1) | ix.mean()
x.sum(7) | x.sum((1,1)) | l.zeros(0).max() | l.zeros(2,0).max(1) | l.zeros(0).sum() | l.zeros(0,3).mean(0) | l.tensor(2.5).softmax(0) | l.tensor(2.5).max(0)
(x*0).prod(1) | l.max(x,y) | x.median() | x.median(1) | x.nanmedian(1) | x.kthvalue(2,1) | (x>0).long().mode(1) | x.quantile(0.3) | x.quantile(0.4,1)
"""
ROWS = """
x.softmax(1) | x.softmax(-1) | x.softmax(0) | x.log_softmax(-1) | x.log_softmax(0) | x.softmax(1,dtype=l.float64) | ix.softmax(0) | x.softmax(3)
F.layer_norm(x,(5,),v,v) | F.layer_norm(x,(4,5)) | F.layer_norm(x,(5,),None,v) | F.layer_norm(x,(3,)) | F.rms_norm(x,(5,),v) | F.rms_norm(x,(4,5),None,1e-3)
F.cross_entropy(x,ix[:,0]%4) | F.cross_entropy(x[0],ix[0,0,:4]) | F.cross_entropy(x[0],ix[0,0,:4],v.detach().abs(),reduction='sum') | F.cross_entropy(x[0],ix[0,0,:4],ignore_index=1)
F.cross_entropy(x[0],ix[0,0,:4],label_smoothing=0.1) | F.cross_entropy(x[0],ix[0,0,:4],v.detach().abs(),label_smoothing=0.1) | F.cross_entropy(x[0],y[0].detach().softmax(1)) | F.cross_entropy(v,ix[0,0,0])
F.cross_entropy(x[0],ix[0,0,:4]+9) | F.cross_entropy(x[0],ix[0,0,:3]) | F.nll_loss(x[0].log_softmax(1),ix[0,0,:4]) | F.nll_loss(x[0].log_softmax(1),ix[0,0,:4],reduction='none')
"""
INDEX = """
x[0] | x[-1] | x[1,2] | x[0:2] | x[:,1] | x[...,0] | x[None,...,None,0] | x[::2,1:,None] | x[1:1] | x[True] | x[False] | x[[0,2]] | x[[[0,1],[1,2]]] | x[[True,False,True]] | x[5] | x[0,0,0,0]
x[1.5] | x['a'] | x[::-1] | x[[]] | x[[0,5]] | x[ix] | x[ix[0,0]%3] | x[ix[:,0,0]%3,ix[:,:1,0]] | x[:,ix[0,0]] | x[ix[0,0]%3,:,ix[0,0]] | x[ix[0,0]%3,None,1] | x[m] | x[m[:,:,0]] | x[:,m[0]] | x[m[0]]
x[0:2,[0,1]] | x.transpose(0,2)[ix[0,0],:,ix[0,0]%3] | x[ix.float()] | x[ix[0,0]-9] | x.masked_select(m) | x.masked_select(m[0,:,:1]) | x.masked_scatter(m,y) | x.masked_fill(m,2.) | (x>0).nonzero()
l.where(m) | x.gather(1,ix) | x.gather(-1,ix) | x.gather(1,ix+9) | x.gather(1,ix.float()) | x.scatter(1,ix,2.5) | x.scatter_add(1,ix,z) | x.scatter_add(0,ix%3,z) | x.scatter_reduce(1,ix,z,'sum') | x.scatter_reduce(1,ix,z,'mean')
x.scatter_reduce(1,ix,z,'amax') | x.scatter_reduce(1,ix,z,'prod') | x.scatter_reduce(1,ix,z,'amin',include_self=False) | x.scatter_reduce(1,ix,z,'foo') | x.scatter(1,ix,z[:1]) | x.index_select(1,ix[0,0]) | x.index_select(0,ix[0])
x.index_add(1,ix[0,0,:4],y) | x.index_add(1,ix[0,0,:4],y,alpha=2.) | x.index_copy(1,ix[0,0,:1],y[:,:1]) | x.index_fill(1,ix[0,0],3.) | x.index_add(1,ix[0,0,:3],y) | x.take(ix) | x.take(ix-4) | x.take(ix+99)
x.put(ix,z,accumulate=True) | x.index_put((ix[:,0,0]%3,),y[0],accumulate=True) | x.index_put((m,),y[0,0,0]) | x.take_along_dim(x.argmax(1,keepdim=True),1) | x.tril() | x.triu(1) | l.tril_indices(3,4) | l.triu_indices(4,3,1)
F.embedding(ix,x[0]) | F.embedding(ix,x[0],padding_idx=2) | F.embedding(ix+9,x[0]) | F.one_hot(ix) | F.one_hot(ix,9) | F.one_hot(ix,2) | ix.flatten().bincount(minlength=6) | l.searchsorted(v.detach().sort().values,x.detach(),right=True)
l.bucketize(x.detach(),v.detach().sort().values) | (x*1).scatter_add_(1,ix,z) | (x*1).index_put_((ix[:,0,0]%3,),y[0]) | (x*1).masked_scatter_(m,y) | (x*1).tril_() | (x*1).index_fill_(1,ix[0,0],3.)
"""
JOINS = """
l.cat([x,y],1) | l.cat([x,y.double()]) | l.cat((x,y,x),-1) | l.cat([x,y[:,:2]]) | l.cat([]) | l.cat([x,y[0]]) | l.cat([l.zeros(0),x]) | l.cat(x) | l.stack([x,y]) | l.stack([x,y],-1) | l.stack([x,y[0]]) | l.hstack([x,y])
l.vstack([x[0,0],y[0,0]]) | l.dstack([x[0],y[0]]) | l.column_stack([x[0,0],y[0,0]]) | l.concat([x.transpose(1,2),y.transpose(1,2)],dim=1) | x.split(2,1) | x.split([1,3],dim=1) | x.split([1,1]) | x.split(-1)
x.chunk(3,1) | x.chunk(2,-1) | x.unbind() | x.unbind(1) | l.tensor_split(x,3,1) | l.tensor_split(x,(1,3),2) | l.hsplit(x,2) | l.hsplit(x,3) | l.vsplit(x,3) | x.sort() | x.sort(0,True) | x.argsort(1) | x.topk(2) | x.topk(3,1,False)
x.topk(9) | x.msort() | ix.sort(dim=1,stable=True) | ix.unique() | ix.unique(return_inverse=True,return_counts=True) | ix.unique(dim=0) | ix.unique_consecutive() | m.sort(dim=1,stable=True)
"""
SETTING = [(k, value) for k in ["0", "1,2", "...,1:3", "ix[0,0]%3", ":,ix[0,0]", "m[:,:,0]", "m", "ix[:,0,0]%3,:,ix[:,0,0]", "0:2,[0,1]", "None,0", "1:1", "9", "True", "m[:,:,0],1"]
           for value in ["1.5", "v", "v[0]", "v[None]", "v[:2]", "l.ones(5).double()", "'a'", "l.tensor(3)"]]  # fmt: skip


def cases(text):
    return [case.strip() for line in text.strip().splitlines() for case in line.split(" | ")]


def operands(library):
    found = {name: library.from_numpy(value.copy()) for name, value in DATA.items()}
    for t in found.values():
        if t.is_floating_point():
            t.requires_grad_()
    return found


def flat(value):
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, (tuple, list)) else [value]


def close(mine, theirs, tolerance):
    assert tuple(mine.shape) == tuple(theirs.shape) and str(mine.dtype) == str(theirs.dtype)
    np.testing.assert_allclose(mine.detach().numpy(), (theirs + 0).detach().numpy(), rtol=tolerance, atol=tolerance)


def run(library, functional, work):
    leaves = operands(library)
    try:
        result = flat(work(library, functional, leaves))
    except Exception as error:
        return error, leaves
    return result, leaves


def loss_of(library, results):
    terms = [(r * library.arange(r.numel(), dtype=r.dtype).reshape(r.shape).sin()).sum() for r in results if r.requires_grad]
    return sum(terms) if terms else None


def compare(work):
    mine, own = run(strided, SF, work)
    theirs, other = run(torch, TF, work)
    if isinstance(theirs, Exception):
        assert isinstance(mine, Exception) and type(mine) is type(theirs), mine
        assert str(mine).splitlines()[0][:60] == str(theirs).splitlines()[0].strip()[:60]
        return
    if isinstance(mine, Exception):
        raise mine
    for a, b in zip(mine, theirs, strict=True):
        close(a, b, 1e-5)
        assert a.requires_grad == b.requires_grad
    wanted = [n for n, t in own.items() if t.requires_grad]
    first, second = loss_of(strided, mine), loss_of(torch, theirs)
    for _ in range(2):  # gradients, then gradients of gradients
        if second is None:
            return
        try:
            expected = torch.autograd.grad(second, [other[n] for n in wanted], allow_unused=True, create_graph=True)
        except Exception:  # PyTorch has no second derivative here
            return
        got = strided.autograd.grad(first, [own[n] for n in wanted], allow_unused=True, create_graph=True)
        pairs = [(a, b) for a, b in zip(got, expected) if b is not None]
        for a, b in pairs:
            if a is None:
                assert not (b + 0).count_nonzero()
            else:
                close(a, b, 1e-3)
        again = [(a, b) for a, b in pairs if b.requires_grad and a is not None and a.requires_grad]
        first = sum((a * a).sum() for a, _ in again) if again else None
        second = sum((b * b).sum() for _, b in again) if again else None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases(REDUCTIONS) + cases(ROWS) + cases(INDEX) + cases(JOINS))
def test_like_pytorch(case):
    compare(lambda l, F, t: eval(case, {"l": l, "F": F, **t}))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key, value", SETTING)
def test_assignment(key, value):
    def work(library, functional, t):
        target = t["x"] * 1
        exec(f"target[{key}] = {value}", {"l": library, "target": target, **t})
        return target

    compare(work)
