"""Block formats written down a second time, in NumPy and from the published rules, to hold the kernels to. No tests."""

from __future__ import annotations

import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
# element → (exponent bits, mantissa bits, bias, largest, exponent of the largest)
FLOATS = {
    "e2m1": (2, 1, 1, 6.0, 2), "e2m3": (2, 3, 1, 7.5, 2), "e3m2": (3, 2, 3, 28.0, 4), "e4m3": (4, 3, 7, 448.0, 8), "e5m2": (5, 2, 15, 57344.0, 15),
}  # fmt: skip
MX = {"mxfp4": "e2m1", "mxfp6_e2m3": "e2m3", "mxfp6_e3m2": "e3m2", "mxfp8_e4m3": "e4m3", "mxfp8_e5m2": "e5m2"}


def decode_float(codes, element):
    """Codes (uint8) as float64, by the definition of a float."""
    exponent, mantissa, bias, _, _ = FLOATS[element]
    codes = codes.astype(np.int64)
    low = codes & ((1 << mantissa) - 1)
    field = (codes >> mantissa) & ((1 << exponent) - 1)
    sign = np.where(codes >> (exponent + mantissa) & 1, -1.0, 1.0)
    value = np.where(field == 0, low * 2.0 ** (1 - bias - mantissa), (low + (1 << mantissa)) * 2.0 ** (field - bias - mantissa).astype(np.float64))
    if element == "e4m3":
        value = np.where((codes & 0x7F) == 0x7F, np.nan, value)
    if element == "e5m2":
        value = np.where(field == 31, np.where(low == 0, np.inf, np.nan), value)
    return sign * value


def round_float(values, element):
    """Values rounded to the nearest number of the format, halves to even, saturated: by searching the table of all numbers."""
    exponent, mantissa, *_, largest, _ = FLOATS[element]
    codes = np.arange(1 << (exponent + mantissa))
    table = decode_float(codes, element)
    table, codes = table[np.isfinite(table)], codes[np.isfinite(table)]
    size = np.minimum(np.abs(values.astype(np.float64)), largest)
    above = np.searchsorted(table, size)  # the first that is not smaller
    below = np.maximum(above - 1, 0)
    up, down = table[above] - size, size - table[below]
    take_below = (down < up) | ((down == up) & (codes[below] % 2 == 0))
    code = np.where(take_below, codes[below], codes[above])
    return (code | np.signbit(values) << (exponent + mantissa)).astype(np.uint8)


def power_code(amax, element, rule):
    """E8M0 code of a block's scale from its largest magnitude (float32)."""
    emax, largest, mantissa = (0, 127 / 64, 6) if element == "int8" else (FLOATS[element][4], FLOATS[element][3], FLOATS[element][1])
    if not np.isfinite(amax):
        return 255
    if amax == 0:
        return 0
    if rule == "rceil":
        ratio = float(np.float32(amax) / np.float32(largest))
        exponent = -127 if ratio == 0 else int(np.ceil(np.log2(ratio))) if 2.0 ** np.round(np.log2(ratio)) != ratio else int(np.round(np.log2(ratio)))
    else:
        fraction, exponent = np.frexp(np.float64(amax))  # fraction in [0.5, 1)
        exponent -= 1
        if rule == "ceil" and fraction != 0.5:
            exponent += 1
        if rule == "even" and 2 * fraction >= 2 - 2.0 ** -(mantissa + 1):
            exponent += 1
        exponent -= emax
    return int(np.clip(exponent + 127, 0, 254))


def power(code):
    return np.nan if code == 255 else 2.0 ** (int(code) - 127)


def pack(codes, bits):
    """Codes of one block in its bytes: a little-endian stream of bits, the first element in the lowest."""
    stream = (codes[:, None] >> np.arange(bits)) & 1
    flat = stream.reshape(-1)
    flat = np.concatenate([flat, np.zeros(-len(flat) % 8, flat.dtype)])
    return np.packbits(flat.astype(np.uint8), bitorder="little")


def quantize_mx(x, name, rule="floor"):
    """x [rows, 32 n] → (packed elements [rows, n, bytes], scale codes [rows, n], the numbers held)."""
    element = MX.get(name, "int8")
    bits = {"e2m1": 4, "e2m3": 6, "e3m2": 6}.get(element, 8)
    rows, cols = x.shape
    packed, scales, held = np.zeros((rows, cols // 32, 4 * bits), np.uint8), np.zeros((rows, cols // 32), np.uint8), np.zeros(x.shape)
    for r in range(rows):
        for b in range(cols // 32):
            block = x[r, 32 * b : 32 * b + 32].astype(np.float64)
            code = power_code(np.abs(x[r, 32 * b : 32 * b + 32]).max() if np.isfinite(block).all() else np.nan, element, rule)
            scales[r, b] = code
            if code == 255:
                held[r, 32 * b : 32 * b + 32] = np.nan
                continue
            if element == "int8":
                codes = np.clip(np.rint(block / power(code) * 64), -127, 127)
                values, codes = codes / 64, codes.astype(np.int8).view(np.uint8)
            else:
                codes = round_float(block / power(code), element)
                values = decode_float(codes, element)
            packed[r, b] = pack(codes, bits)
            held[r, 32 * b : 32 * b + 32] = values * power(code)
    return packed, scales, held


def dequantize_gpt_oss(blocks, scales):
    """gpt-oss: [.., groups, 16] bytes and [.., groups] exponents → [.., 32 groups]: the low nibble is the even element."""
    out = np.empty((*blocks.shape, 2), np.float32)
    out[..., 0], out[..., 1] = E2M1[blocks & 15], E2M1[blocks >> 4]
    exponent = scales.astype(np.int32)[..., None, None] - 127
    return np.ldexp(out, exponent).reshape(*blocks.shape[:-2], -1)


def quantize_nvfp4(x, tensor_scale):
    """x [rows, 16 n] under a given float32 tensor scale → (codes packed, scale codes, numbers), all steps in float32."""
    rows, cols = x.shape
    ts, six = np.float32(tensor_scale), np.float32(6)
    packed, scales, held = np.zeros((rows, cols // 16, 8), np.uint8), np.zeros((rows, cols // 16), np.uint8), np.zeros(x.shape, np.float32)
    for r in range(rows):
        for b in range(cols // 16):
            block = x[r, 16 * b : 16 * b + 16]
            code = round_float(np.array([np.abs(block).max() / six / ts], np.float32), "e4m3")[0]
            scale = np.float32(decode_float(np.array([code]), "e4m3")[0])
            total = scale * ts
            scaled = block * (np.float32(1) / total) if total else block * np.float32(0)
            codes = round_float(scaled, "e2m1")
            scales[r, b], packed[r, b] = code, pack(codes, 4)
            held[r, 16 * b : 16 * b + 16] = E2M1[codes] * total
    return packed, scales, held


def quantize_int(x, bits, group, zero_point, scale_dtype):
    """x [rows, k]: groups along k (the last may be short) → numbers held, in float32 steps."""
    held = np.zeros(x.shape, np.float32)
    codes = np.zeros(x.shape, np.int32)
    for r in range(x.shape[0]):
        for start in range(0, x.shape[1], group):
            block = x[r, start : start + group]
            if not np.isfinite(block).all():
                held[r, start : start + group] = np.nan
                continue
            low, high = min(block.min(), 0), max(block.max(), 0)
            if len(block) < group:
                low, high = min(low, 0), max(high, 0)
            span = np.float32(high - low) / np.float32(2**bits - 1) if zero_point else np.abs(block).max() / np.float32(2 ** (bits - 1) - 1)
            scale = np.float32(np.float32(span).astype(scale_dtype))
            inverse = np.float32(1) / scale if scale > 0 else np.float32(0)
            if not np.isfinite(inverse):
                inverse = np.float32(0)
            if zero_point:
                zero = int(np.clip(np.rint(-(np.float32(low) * inverse)), 0, 2**bits - 1))
                q = np.clip(np.rint(block * inverse) + zero, 0, 2**bits - 1)
                held[r, start : start + group] = (q - zero).astype(np.float32) * scale
            else:
                q = np.clip(np.rint(block * inverse), 1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1)
                held[r, start : start + group] = q.astype(np.float32) * scale
            codes[r, start : start + group] = q
    return codes, held


def dequantize_gguf(raw, name):
    """Blocks [n, bytes] of a GGUF format → [n, elements], from the layouts of the format's description (facts: (values, bytes) of each)."""
    n = len(raw)
    half = lambda at: raw[:, at : at + 2].copy().view(np.float16).astype(np.float32)
    nibbles = lambda at: np.concatenate([raw[:, at : at + 16] & 15, raw[:, at : at + 16] >> 4], 1).astype(np.float32)
    bits = lambda at: np.unpackbits(raw[:, at : at + 4], axis=1, bitorder="little").astype(np.float32)
    if name == "q4_0":
        return half(0) * (nibbles(2) - 8)
    if name == "q4_1":
        return half(0) * nibbles(4) + half(2)
    if name == "q5_0":
        return half(0) * (nibbles(6) + 16 * bits(2) - 16)
    if name == "q5_1":
        return half(0) * (nibbles(8) + 16 * bits(4)) + half(2)
    if name == "q8_0":
        return half(0) * raw[:, 2:34].view(np.int8).astype(np.float32)
    out = np.empty((n, 256), np.float32)
    if name in ("q4_k", "q5_k"):
        d, low, packed = half(0), half(2), raw[:, 4:16].astype(np.int32)
        codes_at, high = (16, None) if name == "q4_k" else (48, raw[:, 16:48])
        for g in range(8):
            if g < 4:
                scale, least = packed[:, g] & 63, packed[:, g + 4] & 63
            else:
                scale = (packed[:, g + 4] & 15) | (packed[:, g - 4] >> 6) << 4
                least = packed[:, g + 4] >> 4 | (packed[:, g] >> 6) << 4
            at = codes_at + 32 * (g // 2)
            codes = (raw[:, at : at + 32] >> (4 * (g % 2))) & 15
            if high is not None:
                codes = codes + 16 * ((high >> g) & 1)
            out[:, 32 * g : 32 * g + 32] = (d * scale[:, None].astype(np.float32)) * codes - low * least[:, None].astype(np.float32)
        return out
    assert name == "q6_k"
    d, scales = half(208), raw[:, 192:208].view(np.int8).astype(np.float32)
    for e in range(256):
        side, inside = divmod(e, 128)
        quarter, lane = divmod(inside, 32)
        low = raw[:, 64 * side + 32 * (quarter % 2) + lane] >> (4 * (quarter // 2)) & 15
        high = raw[:, 128 + 32 * side + lane] >> (2 * quarter) & 3
        out[:, e] = d[:, 0] * scales[:, e // 16] * ((low | high << 4).astype(np.float32) - 32)
    return out
