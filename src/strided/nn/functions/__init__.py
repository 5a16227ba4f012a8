"""The families behind nn/functional.py: plain Python over operators. Kernels are not here (ops/)."""
