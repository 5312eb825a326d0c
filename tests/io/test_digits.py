"""Numbers out of text: Python's float and int are right, to the last bit."""

import itertools
import re
from decimal import Decimal, localcontext

import numpy as np
import pytest

from aucmax.core.jit import kernel
from aucmax.io import digits
from aucmax.io.digits import ASK, INF, NAN, NONE, OK, parse_number, read_integer


@kernel
def parse_numbers(buf, starts, stops, value, verdict):
    for i in range(starts.size):
        value[i], verdict[i] = parse_number(buf, starts[i], stops[i])


@kernel
def parse_integers(buf, starts, stops, value, verdict):
    for i in range(starts.size):
        value[i], verdict[i], end = read_integer(buf, starts[i], stops[i])
        if end != stops[i]:
            verdict[i] = NONE


def parse(kernel, tokens, dtype=np.float64):
    sizes = np.array([len(token) for token in tokens])
    stops = np.cumsum(sizes + 1) - 1
    # No byte after the last token, so that reading beyond it would be seen.
    buf = np.frombuffer(bytearray(b"7".join(tokens)), np.uint8)
    value, verdict = np.empty(len(tokens), dtype), np.empty(len(tokens), np.int64)
    kernel(buf, stops - sizes, stops, value, verdict)
    return value, verdict


def python(token):
    """Return what Python's float makes of a token, None if nothing."""
    try:
        return float(token) if b"_" not in token and token == token.strip() else None
    except ValueError:
        return None


def check(tokens):
    """Compare with Python; return the share of tokens that are left to it."""
    value, verdict = parse(parse_numbers, tokens)
    expected = [python(token) for token in tokens]
    none = np.array([number is None for number in expected])
    expected = np.array([0.0 if number is None else number for number in expected])
    nan, inf, asked = np.isnan(expected), np.isinf(expected), verdict == ASK
    same = (value.view(np.int64) == expected.view(np.int64)) | nan
    wrong = ~same & ~none & ~asked
    right = np.select([none, nan, inf], [NONE, NAN, INF], OK)
    wrong |= (verdict != right) & ~(asked & ~none & ~nan)
    examples = [
        (tokens[i], value[i], verdict[i], expected[i]) for i in np.flatnonzero(wrong)
    ]
    assert not examples, examples[:5]
    return asked.mean()


def some_digits(rng, sizes):
    pool = rng.integers(48, 58, 1 << 16).astype(np.uint8).tobytes()
    starts = rng.integers(0, len(pool) - max(sizes), len(sizes)).tolist()
    return [
        pool[start : start + size]
        for start, size in zip(starts, sizes.tolist(), strict=True)
    ]


EDGES = b"""
0 -0 +0 0. .0 -.0 00 1 +1 -1 1. .1 1.5 -1.5e3 1E5 1e+5 1e-5 .5e1 5.e1 007 1e05 1e-0
1e22 1e23 -1e23 9007199254740991 9007199254740992 9007199254740993 9007199254740995
9007199254740993.00000000000000000000 9007199254740993.00000000000000000001
1e308 1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 1e309 -1e400
17976931348623157e292 179769313486231580793728971405303415079934132710037826936173778980
2.2250738585072014e-308 2.2250738585072011e-308 2.2250738585072012e-308
5e-324 4.9406564584124654e-324 2.4703282292062327e-324 2.4703282292062328e-324 3e-324
2e-324 1e-323 1e-342 1e-343 1e-400 -1e-400 9999999999999999999e-342
0e999999999999999999999999 0e-99999999999999999999 1e99999999999999999999
1e-99999999999999999999 0.00000000000000000000000000000000000000000000000001e50
100000000000000000000000000000000000000000000000000e-50 0000000000000000000000000000.5
12345678 1234567.8 .12345678 123456789.123456789 12345678901234567890 0.1234567890123456
18446744073709551615 18446744073709551616 9223372036854775807 9223372036854775808
99999999999999999999999999999999999999 6929495644600919.5 3.5844466002796428e298
nan NaN -nan +NAN inf Inf -inf +INF infinity -Infinity INFINITY
n na nanx in infi infinit infinityx nan0 inf. i -i + - . +. -. e e5 .e5 1e 1e+ 1e- 1ee5
1e5.5 1e5e5 1.2.3 1..2 ++1 +-1 1+ 1- 1_0 1e1_0 0x10 1,5 1f 1d 1e5f \x00 1\x00 \xff
\xd9\xa1 1/ 1: /1 :1 0/ 12345678: 1234567: 12345678. 1234567/ +.e1 -e1
""".split()


def test_edges():
    share = check([*EDGES, b"", b" 1", b"1 ", b"1\n", b"\t1"])
    assert share < 0.05


def test_every_cut_of_the_edges():
    # No byte outside of a token has a say in what it is.
    check([token[:k] for token in EDGES for k in range(len(token))])


def test_shortest_representations():
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1 << 64, 60_000, np.uint64).view(np.float64)
    numbers = np.concatenate([numbers, rng.standard_normal(60_000)])
    assert check([repr(number).encode() for number in numbers.tolist()]) == 0.0


def test_digits_of_all_shapes():
    rng = np.random.default_rng(1)
    n = 200_000
    whole = some_digits(rng, rng.integers(0, 25, n))
    fraction = some_digits(rng, rng.integers(0, 25, n) * rng.integers(0, 2, n))
    exponent = [b"", b"e%d", b"E%+d", b"e-%03d"]
    exponents = rng.integers(-330, 310, n).tolist()
    tokens = [
        sign + a + point + b + (e % power if e else e)
        for a, b, power, (sign, point, e) in zip(
            whole,
            fraction,
            exponents,
            itertools.cycle(
                itertools.product([b"", b"-", b"+"], [b".", b""], exponent)
            ),
            strict=False,
        )
    ]
    assert check(tokens) < 0.002


@pytest.mark.parametrize("small", [False, True])
def test_rounded_numbers(small):
    """Few digits to many of normal and subnormal numbers: near ties of all kinds."""
    rng = np.random.default_rng(2)
    top = 1 << 52 if small else 0x7FF << 52
    numbers = rng.integers(0, top, 50_000).view(np.float64).tolist()
    places = rng.integers(0, 30, len(numbers)).tolist()
    check([b"%.*e" % pair for pair in zip(places, numbers, strict=True)])


def half_way(number):
    """Return, exactly, what lies between a float and the next one."""
    with localcontext(prec=1100):
        return (Decimal(number) + Decimal(np.nextafter(number, np.inf))) / 2


def test_half_way_between_floats():
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 0x7FE << 52, 1_000).view(np.float64).tolist()
    ties = [half_way(number) for number in numbers]
    check([str(tie).encode() for tie in ties])
    for places in (16, 17, 18, 19, 24, 40):  # cut off: just below or above
        check([f"{tie:.{places}e}".encode() for tie in ties])


def test_short_ties_go_to_the_even_float():
    rng = np.random.default_rng(4)
    odd = (rng.integers(1 << 53, 1 << 54, 20_000) | 1).tolist()
    shifts = rng.integers(0, 9, len(odd)).tolist()
    whole = [b"%d" % (w << s) for w, s in zip(odd, shifts, strict=True)]
    assert check([token for token in whole if len(token) <= 19]) == 0.0
    # w / 2 and w / 4, of 17 to 19 digits
    halves = [b"%de-%d" % (w * 5**s, s) for w in odd for s in (1, 2)]
    assert check([token for token in halves if len(token) <= 22]) == 0.0


def test_anything():
    rng = np.random.default_rng(5)
    alphabet = np.frombuffer(
        b"0012345678999...eE+-+-nNaAiIfFty_ \t/:,\x00\xff", np.uint8
    )
    noise = rng.choice(alphabet, 1 << 20).tobytes()
    sizes = rng.integers(0, 13, 100_000)
    ends = np.cumsum(sizes).tolist()
    check([noise[e - s : e] for e, s in zip(ends, sizes.tolist(), strict=True)])


def test_very_long_tokens():
    zeros = b"0" * 5000
    tokens = [
        b"1" + zeros,
        b"1" + zeros + b"e-5000",
        b"0." + zeros + b"1e5001",
        b"0." + zeros + b"15",
        b"9" * 5000 + b"e-4999",
        b"1." + zeros,
        b"1." + zeros + b"1",
        b"1e" + zeros + b"5",
        b"1.5e-" + zeros + b"7",
        zeros + b"." + zeros,
    ]
    check(tokens)


def test_integers():
    rng = np.random.default_rng(6)
    plain = some_digits(rng, rng.integers(0, 24, 20_000))
    signs = [b"", b"+", b"-", b"--", b" "]
    tokens = [s + t for s, t in zip(itertools.cycle(signs), plain, strict=False)]
    tokens += EDGES
    value, verdict = parse(parse_integers, tokens, np.int64)
    for token, number, says in zip(tokens, value.tolist(), verdict, strict=True):
        try:
            expected = int(token) if b"_" not in token and b" " not in token else None
        except ValueError:
            expected = None
        if expected is None:
            assert says == NONE, token
        elif len(token.lstrip(b"+-")) > 18:
            assert says == ASK, token
        else:
            assert (says, number) == (OK, expected), token


@kernel
def helpers(buf, at, w, high, low, out):
    out[0], count = digits._eight_digits(buf, at)
    out[1] = np.uint64(count)
    out[2], out[3] = digits._multiply(w, high, low)
    out[4] = np.uint64(digits._leading_zeros(w))
    out[5] = np.uint64(digits.byte_at(buf, at))


def test_compiled_helpers_are_their_definitions():
    rng = np.random.default_rng(7)
    buf = rng.choice(np.frombuffer(b"0123456789/:.\x00\xba\xff", np.uint8), 1000)
    out = np.empty(6, np.uint64)
    for at in range(buf.size - 8):
        w, high, low = rng.integers(0, 1 << 64, 3, np.uint64)
        w >>= np.uint64(at % 64)
        helpers(buf, at, w, high, low, out)
        some = re.match(rb"[0-9]*", buf[at : at + 8].tobytes())[0]
        assert tuple(out[:2]) == (int(some or 0), len(some))
        assert tuple(out[2:4]) == digits._multiply(w, high, low)
        assert out[4] == digits._leading_zeros(w)
        assert out[5] == digits.byte_at(buf, at)


@kernel
def known_numbers(buf, starts, whole, after, value):
    for i in range(starts.size):
        value[i] = digits.known_number(buf, starts[i], whole[i], after[i])


def test_known_numbers_of_every_shape():
    """All numbers of digits before and after the point, with and without one."""
    rng = np.random.default_rng(8)
    shapes = [(a, b) for a in range(1, 9) for b in range(20 - a) for _ in range(50)]
    whole, after = np.array(shapes).T
    before, behind = some_digits(rng, whole), some_digits(rng, after)
    dots = [b"." if b or i % 2 else b"" for i, b in enumerate(behind)]
    tokens = [a + dot + b for a, dot, b in zip(before, dots, behind, strict=True)]
    tokens[:2] = b"9" * 1, b"0"
    sizes = np.array([len(token) + 1 for token in tokens])
    buf = np.frombuffer(bytearray(b":".join(tokens) + b"9" * 25), np.uint8)
    value = np.empty(len(tokens))
    known_numbers(buf, np.cumsum(sizes) - sizes, whole, after, value)
    assert value.tolist() == [float(token) for token in tokens]


def test_powers_of_five():
    exact = {q: digits._FIVES[q - digits._LEAST] for q in (0, 1, 27, 55)}
    for q, (high, low) in exact.items():
        bits = int(high) << 64 | int(low)
        assert bits == 5**q << 128 - (5**q).bit_length()
    assert np.all(digits._FIVES[:, 0] >> np.uint64(63) == 1)
