"""Random functions, compiled and eager (compile_cases.py): a few of them; as a script it runs as many as one likes."""
import pytest

import compile_cases


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_functions_are_the_same_compiled(first):
    for seed in range(first, first + 10):
        found = compile_cases.run(seed)
        assert found is None, found
