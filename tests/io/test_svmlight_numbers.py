"""Numbers in svmlight files: exactly what Python's float and int make of them."""

import itertools
import re
from decimal import Decimal, localcontext

import numpy as np
import pytest

from aucmax.io.svmlight import SvmlightSource

pytestmark = pytest.mark.filterwarnings("ignore::aucmax.core.validation.DataWarning")

ENDS = re.compile(rb"[\s#]")  # these bytes end a token


def python(token):
    """Return what Python's float makes of a token, None if nothing finite."""
    try:
        number = float(token) if b"_" not in token else None
    except ValueError:
        return None
    return number if number is not None and np.isfinite(number) else None


def read(path, lines, **options):
    """Return the chunks of these lines, and the set of numbers of malformed lines."""
    path.write_bytes(b"\n".join(lines) + b"\n")
    chunks = list(SvmlightSource(str(path), **options).batches())
    return chunks, {bad.line for chunk in chunks for bad in chunk.malformed}


def check(path, tokens):
    """Compare values with Python: all tokens, and then only the valid ones.

    One malformed token in a block has all unusual numbers of it parsed one by one.
    """
    tokens = [token for token in tokens if not ENDS.search(token)]
    numbers = [python(token) for token in tokens]
    for only_valid in (False, True):
        pairs = [
            pair
            for pair in zip(tokens, numbers, strict=True)
            if not only_valid or pair[1] is not None
        ]
        chunks, bad = read(path, [b"1 1:" + token for token, _ in pairs])
        expected_bad = {
            line for line, (_, number) in enumerate(pairs, 1) if number is None
        }
        assert bad == expected_bad
        expected = np.array([number for _, number in pairs if number is not None])
        values = np.concatenate([np.empty(0), *(chunk.rows.data for chunk in chunks)])
        wrong = values.view(np.int64) != expected.view(np.int64)
        assert not wrong.any(), (values[wrong][:5], expected[wrong][:5])


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


def test_edges(tmp_path):
    check(tmp_path / "a", [*EDGES, b""])


def test_every_cut_of_the_edges(tmp_path):
    check(tmp_path / "a", [token[:k] for token in EDGES for k in range(len(token))])


def test_shortest_representations(tmp_path):
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1 << 64, 60_000, np.uint64).view(np.float64)
    numbers = np.concatenate([numbers, rng.standard_normal(60_000)])
    numbers = numbers[np.isfinite(numbers)]
    check(tmp_path / "a", [repr(number).encode() for number in numbers.tolist()])


def test_digits_of_all_shapes(tmp_path):
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
    check(tmp_path / "a", tokens)


@pytest.mark.parametrize("small", [False, True])
def test_rounded_numbers(small, tmp_path):
    """Few digits to many of normal and subnormal numbers: near ties of all kinds."""
    rng = np.random.default_rng(2)
    top = 1 << 52 if small else 0x7FF << 52
    numbers = rng.integers(0, top, 50_000).view(np.float64).tolist()
    places = rng.integers(0, 30, len(numbers)).tolist()
    check(
        tmp_path / "a", [b"%.*e" % pair for pair in zip(places, numbers, strict=True)]
    )


def half_way(number):
    """Return, exactly, what lies between a float and the next one."""
    with localcontext(prec=1100):
        return (Decimal(number) + Decimal(np.nextafter(number, np.inf))) / 2


def test_half_way_between_floats(tmp_path):
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 0x7FE << 52, 1_000).view(np.float64).tolist()
    ties = [half_way(number) for number in numbers]
    check(tmp_path / "a", [str(tie).encode() for tie in ties])
    for places in (16, 17, 18, 19, 24, 40):  # cut off: just below or above
        check(tmp_path / "a", [f"{tie:.{places}e}".encode() for tie in ties])


def test_short_ties_go_to_the_even_float(tmp_path):
    rng = np.random.default_rng(4)
    odd = (rng.integers(1 << 53, 1 << 54, 20_000) | 1).tolist()
    shifts = rng.integers(0, 9, len(odd)).tolist()
    whole = [b"%d" % (w << s) for w, s in zip(odd, shifts, strict=True)]
    check(tmp_path / "a", whole)
    # w / 2 and w / 4, of 17 to 19 digits
    halves = [b"%de-%d" % (w * 5**s, s) for w in odd for s in (1, 2)]
    check(tmp_path / "a", halves)


def test_anything(tmp_path):
    rng = np.random.default_rng(5)
    alphabet = np.frombuffer(
        b"0012345678999...eE+-+-nNaAiIfFty_ \t/:,\x00\xff", np.uint8
    )
    noise = rng.choice(alphabet, 1 << 20).tobytes()
    sizes = rng.integers(0, 13, 100_000)
    ends = np.cumsum(sizes).tolist()
    check(
        tmp_path / "a",
        [noise[e - s : e] for e, s in zip(ends, sizes.tolist(), strict=True)],
    )


def test_very_long_tokens(tmp_path):
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
    check(tmp_path / "a", tokens)


def test_integers(tmp_path):
    """Indices of up to 18 digits with any sign; others make the line malformed."""
    rng = np.random.default_rng(6)
    plain = some_digits(rng, rng.integers(0, 24, 20_000))
    signs = [b"", b"+", b"-", b"--"]
    tokens = [s + t for s, t in zip(itertools.cycle(signs), plain, strict=False)]
    tokens += [token for token in EDGES if b":" not in token]
    lines = [b"1 " + token + b":1" for token in tokens]
    chunks, bad = read(tmp_path / "a", lines, zero_based=True, max_features=2**31 - 1)
    columns = np.concatenate([chunk.rows.indices for chunk in chunks]).tolist()
    expected = [
        int(token) if re.fullmatch(rb"\+?\d{1,18}|-0{1,18}", token) else -1
        for token in tokens
    ]
    good = [0 <= index < 2**31 - 1 for index in expected]
    assert columns == [
        index for index, fine in zip(expected, good, strict=True) if fine
    ]
    assert bad == {line for line, fine in enumerate(good, 1) if not fine}
