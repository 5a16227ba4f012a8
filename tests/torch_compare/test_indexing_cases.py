"""1,000 random keys of indexing_cases.py, which runs any number by hand, and odd keys and values, on both libraries."""
import enum
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from indexing_cases import Case, difference, gradients

import strided

# l: the library. x is [3, 4, 2].
ODD = """
np.array([0,1]) | np.array([[0,1],[1,0]]) | np.array([True,False,True]) | np.array(1) | np.array(True) | np.bool_(True) | np.uint8(1) | np.float64(1)
E.A | range(2) | (0,np.array([1,2])) | [l.tensor(0),l.tensor(1)] | [l.tensor([0,1]),l.tensor([1,0])] | [0,l.tensor(1)]
(slice(None),[l.tensor(0),l.tensor(2)]) | [True,0] | [0,True] | [[True,False,True]] | [[0,1],[True,False]] | [None] | [Ellipsis,0] | [slice(0,2),1]
((0,1),) | ((0,1),(1,2)) | [[0,1],[1,2]] | [[[0,1],[1,2]]] | [] | () | [[]] | (None,None) | True | False | (True,) | (False,0) | [True] | [False]
L([0,1]) | '0' | {} | {0} | set() | b'' | '' | [['a']] | 1j | (1,1j) | object() | l.tensor([1,0],dtype=l.int16) | l.tensor(1,dtype=l.int8) | l.tensor(1.)
l.tensor([True,False,True]) | l.tensor([],dtype=l.int64) | l.tensor([]) | l.tensor([[0]]), | l.ones(3,4)>0 | l.ones(3,4).bool(),0 | 0,l.ones(4).bool()
l.tensor(True) | l.tensor(False) | l.tensor(True),0 | 2**70 | -2**70 | slice(2**70) | slice(-2**70,None) | slice(1.0) | slice('a')
slice(None,None,l.tensor(2)) | slice(l.tensor([1]),None) | slice(l.tensor([1,2]),None) | np.array([0.5]) | np.array(['a']) | [0]*40 | [[0]]*33
[np.int64(1),np.int64(0)] | [np.array([0,1]),np.array([0,1])] | [1,2,np.array(0)] | memoryview(b'ab') | bytearray(b'01') | iter([0]) | lambda: 0 | int
len
"""
VALUES = "7 | l.tensor([5., 6.]) | l.tensor([1, 2]) | np.float32(3) | np.int64(3) | np.array([1.]) | 'a' | [1, 2] | 1j | None".split(" | ")


class E(enum.IntEnum):
    A = 1


class L(list):
    pass


def test_random_cases_do_the_same():
    different = [found for seed in range(1000) if (found := difference(seed)) is not None]
    assert not different, "\n".join(map(str, different[:5]))


def test_random_gradients_are_the_same():
    for seed in range(1000):
        assert repr(gradients(Case(seed), strided)) == repr(gradients(Case(seed), torch)), Case(seed)


def outcome(library, key, value=None):
    names = {"l": library, "np": np, "E": E, "L": L}
    x = library.arange(24).reshape(3, 4, 2).float()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if value is not None:
                x[eval(key, names)] = eval(value, names)
                return x.tolist()
            y = x[eval(key, names)]
            return tuple(y.shape), y.tolist(), str(y.dtype), y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0].rstrip()


@pytest.mark.parametrize("key", [key for line in ODD.strip().splitlines() for key in line.split(" | ")])
def test_odd_keys_do_the_same(key):
    for value in (None, *VALUES):
        assert repr(outcome(strided, key, value)) == repr(outcome(torch, key, value)), value
