"""Operators on block tensors: quantize and dequantize, building them from a checkpoint's tensors, products, joins and look-ups.

What such a tensor is, and what it does by its rows alone, is block_tensor.py; the formats are block_formats.py.
"""
