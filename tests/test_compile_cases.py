"""Random functions, compiled and eager (compile_cases.py): a few of them; as a script it runs as many as one likes."""
import compile_cases
import pytest


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_random_functions_are_the_same_compiled(first):
    for seed in range(first, first + 15):
        found = compile_cases.run(seed)
        assert found is None, found
