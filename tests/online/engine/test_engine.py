"""The engine's row functions against NumPy; what kernels are compiled to."""

import re
from importlib import import_module

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax import SPAM
from aucmax.core import jit
from aucmax.core.rows import as_rows, as_table, n_rows
from aucmax.online import engine, fsauc, solam, spam, svrg
from aucmax.online.engine import centred_rows as centred
from aucmax.online.engine import feature_table as table
from aucmax.online.engine import pair_rows
from aucmax.online.engine.feature_table import (
    NZ,
    PAST,
    SQ,
    SUM,
    TO_NEG,
    TO_POS,
    D,
    U,
    W,
)
from helpers.data import awkward_rows, dense_row, gaussian

N_POS, N_NEG, L2 = 30.0, 90.0, table.L2(0.01, 0.0)
# Each compiles every function; tests/core/test_rows.py has the other types.
KINDS = ["dense 64", "CSR 32"]


def learner(X, references, stream=True):
    """Return a table with something of everything, and how to visit rows with it.

    Some features have a reference point, or none has; the fourth has no scale yet.
    """
    rng = np.random.default_rng(1)
    d = 139
    found = engine.empty(d, precondition=True)
    feat = found.feat
    feat[W], feat[U] = rng.standard_normal((2, d))
    feat[SUM : SUM + 2] = rng.standard_normal((2, d)) * [[N_POS], [N_NEG]]
    feat[SQ : SQ + 2] = (rng.random((2, d)) + 1.0) * [[N_POS], [N_NEG]]
    feat[NZ] = (rng.random(d) + 0.1) * (N_POS + N_NEG)
    if references:
        found.ref[::2] = rng.standard_normal(d)[::2]
    second = (feat[SQ : SQ + 2] / [[N_POS], [N_NEG]]).mean(axis=0)
    # Some scales are right, some off by less than is worth a change, some by more.
    off = rng.choice([1.0, 1.005, 0.995, 1.5, 0.2], d)
    feat[D] = off / (second + L2.plain / 4.0)
    feat[[W, D], 4] = 0.0
    found.mark[:] = 10.0 * rng.random(d)
    found.n[:] = N_POS, N_NEG
    found.stats[[TO_POS, TO_NEG, PAST]] = 1.0 / N_POS, 1.0 / N_NEG, 3.3
    found = found._replace(feat=as_table(feat, X))
    return found, engine.visit(X, found, stream, True, L2)


def means(t):
    return t.feat[SUM] / N_POS - t.ref, t.feat[SUM + 1] / N_NEG - t.ref


def unit(t):
    scale = t.feat[D]
    return np.abs(t.feat[W]) / np.sqrt(np.where(scale > 0.0, scale, np.inf))


# What each function does to the table, and returns: by NumPy.
def look_row(x, t):
    x = x - t.ref
    z = t.feat[D] * x
    return t.feat[W] @ x, z @ x, *(z @ mean for mean in means(t))


def move_row(x, t):
    z = -0.4 * t.feat[D] * (x - t.ref)
    t.feat[W] += z
    t.feat[U] += 3.3 * z


def dot_row(x, t):
    return t.feat[U] @ (x - t.ref)


def add_row(x, t):
    t.feat[U] += 1.3 * (x - t.ref)


def count_in(x, t):
    t.feat[SUM + 1] += 1.7 * x
    t.feat[SQ + 1] += 1.7 * (x - t.ref) ** 2
    t.feat[NZ] += 1.7 * (x != 0.0)


def rescale_row(x, t):
    feat, before = t.feat, t.feat.copy()
    second = (feat[SQ : SQ + 2] / [[N_POS], [N_NEG]]).mean(axis=0)
    new = 1.0 / (second + L2.plain / 4.0)
    here = (x != 0.0) & (np.abs(feat[D] / new - 1.0) > 0.25)
    old = np.where(feat[D] > 0.0, feat[D], new)
    units = unit(t)
    total = 3.3 * feat[W] * np.where(here, new / old, 1.0)
    feat[U] += 3.3 * np.where(here, feat[W] * (new / old - 1.0), 0.0)
    feat[W] *= np.where(here, new / old, 1.0)
    feat[D] = np.where(here, new, feat[D])
    alone = 0.01 * (x - t.ref) ** 2 >= 0.5 * second
    woken = here & (256 * new < t.mark) & (new < before[D]) & ~alone
    late = np.sqrt(np.where(woken, new / t.mark, 1.0))
    feat[U] = np.where(woken, total - late * (total - feat[U]), feat[U])
    t.mark[:] = np.where(here, np.where(woken, new, np.maximum(t.mark, new)), t.mark)
    change = feat[W] - before[W]
    now = unit(t)
    moved = (change @ mean for mean in means(t))
    return *moved, now @ now - units @ units, now.sum() - units.sum()


def sum_row(x, t):
    return unit(t)[(x != 0.0) | (t.ref != 0.0)].sum()


START = np.random.default_rng(5).standard_normal(139)


def start_row(x, t):
    return (START * t.feat[D]) @ (x - t.ref)


def reach_row(x, t):
    root = np.sqrt(t.feat[D])
    scaled = np.divide(t.feat[W], root, out=np.zeros(139), where=root > 0.0)
    return np.abs(START * root + 0.7 * scaled)[(x != 0.0) | (t.ref != 0.0)].sum()


PULL = np.random.default_rng(6).random((2, 139))
RIDGE = np.random.default_rng(7).random(139)


def prox_row(x, t):
    feat = t.feat
    step = 0.3 * feat[D]
    w = feat[W] - step * (-0.4 * (x - t.ref) + PULL[svrg.MU])
    share = step * PULL[svrg.RARITY]
    w = np.sign(w) * np.maximum(np.abs(w) - 0.05 * share, 0.0) / (1.0 + RIDGE * share)
    change = np.where((x != 0.0) | (t.ref != 0.0), w - feat[W], 0.0)
    feat[W] += change
    return tuple(change @ mean for mean in means(t))


def raw_move_row(x, t):
    z = 0.6 * t.feat[D] * x
    t.feat[W] += z
    t.feat[U] += 3.3 * z


@njit
def rescaled(X, i, t, how, own, wanted):  # once for all tests of it
    return centred.rescale_row(X, i, t, how, own, wanted)


# The same as kernels call them.
CALLS = {
    look_row: lambda X, i, t, how: centred.look_row(X, i, t, how),
    move_row: lambda X, i, t, how: centred.move_row(X, i, t, how, -0.4),
    dot_row: lambda X, i, t, how: centred.dot_row(X, i, t.feat, U, t.ref, how.listed),
    add_row: lambda X, i, t, how: centred.add_row(
        X, i, 1.3, t.feat, U, t.ref, how.listed
    ),
    count_in: lambda X, i, t, how: centred.count_in(X, i, 1.7, 1, t, how),
    rescale_row: lambda X, i, t, how: rescaled(X, i, t, how, 0.01, True),
    sum_row: lambda X, i, t, how: solam.sum_row(X, i, t, how),
    start_row: lambda X, i, t, how: fsauc.start_row(X, i, t, how, START),
    reach_row: lambda X, i, t, how: fsauc.reach_row(X, i, t, how, START, 0.7),
    prox_row: lambda X, i, t, how: svrg.prox_row(
        X, i, t, how, PULL, -0.4, 0.3, RIDGE, 0.05
    ),
    raw_move_row: lambda X, i, t, how: pair_rows.raw_move_row(X, i, t, 0.6),
}


def run(call, X, i, references):
    t, how = learner(X, references)
    return call(X, i, t, how), t


def assert_tables_equal(left, right):
    for name, mine, its in zip(left._fields, left, right, strict=True):
        assert_allclose(mine, its, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("oracle", CALLS, ids=lambda oracle: oracle.__name__)
def test_rows_against_numpy(oracle, kind):
    original = awkward_rows(kind)
    X = as_rows(original)
    compiled = njit(CALLS[oracle])
    for references in (False, True):
        for i in range(n_rows(X)):
            expected_table, _ = learner(X, references)
            expected = oracle(dense_row(original, i), expected_table)
            found, mine = run(compiled, X, i, references)
            if expected is None:
                assert found is None
            else:
                assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
            assert_tables_equal(mine, expected_table)


@pytest.mark.parametrize("kind", KINDS)
def test_a_past_that_follows(kind):
    """All that an average is made of changes by the same factor."""
    X = as_rows(awkward_rows(kind))
    t, how = learner(X, references=True)
    before = t.feat.copy()
    rescaled(X, 1, t, how._replace(follows=True), 0.01, True)
    old = before[D] > 0.0
    factor = t.feat[D][old] / before[D][old]
    assert np.any(np.abs(factor - 1.0) > 0.3)
    for slot in (W, U):
        assert_allclose(t.feat[slot][old], factor * before[slot][old], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_wanted_is_not_rescaled(kind):
    X = as_rows(awkward_rows(kind))
    t, how = learner(X, references=True)
    before = t.feat.copy()
    assert rescaled(X, 1, t, how, 0.0, False) == (0.0, 0.0, 0.0, 0.0)
    assert_array_equal(t.feat, before)


@pytest.mark.parametrize("kind", KINDS)
def test_centred_row(kind):
    original = awkward_rows(kind)
    X = as_rows(original)
    call = njit(
        lambda X, i, t, how, out, at: centred.centred_row(
            X, i, t.ref, how.listed, out, at
        )
    )
    for references in (False, True):
        for i in range(n_rows(X)):
            t, how = learner(X, references)
            out, at = np.zeros(139), np.zeros(139, np.uint32)
            count = call(X, i, t, how, out, at)
            x = dense_row(original, i)
            there = np.flatnonzero((x != 0.0) | (t.ref != 0.0))
            assert_array_equal(at[:count], there)
            assert_allclose(out[:count], (x - t.ref)[there], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_against_numpy(kind):
    original = awkward_rows(kind)
    X = as_rows(original)
    room = np.zeros(139)

    @njit
    def pair(X, i, other, t, room):
        s = pair_rows.score_pair(X, i, other, t.feat)
        q = pair_rows.length_pair(X, i, other, t.feat, room)
        pair_rows.move_pair(X, i, other, t, 0.6)
        return s, q

    @njit
    def kept(X, i, t, where, value, room):
        return pair_rows.length_kept(X, i, t.feat, where, value, 2, len(where), room)

    for i in range(n_rows(X)):
        for other in range(n_rows(X)):
            z = dense_row(original, i) - dense_row(original, other)
            t, _ = learner(X, references=False)
            before = t.feat.copy()
            s, q = pair(X, i, other, t, room)
            assert_allclose(s, before[W] @ z, rtol=1e-9, atol=1e-9)
            assert_allclose(q, (before[D] * z) @ z, rtol=1e-12)
            step = 0.6 * before[D] * z
            assert_allclose(t.feat[W], before[W] + step, rtol=1e-11, atol=1e-12)
            assert_allclose(t.feat[U], before[U] + 3.3 * step, rtol=1e-11, atol=1e-12)
            x = dense_row(original, other)
            where = np.r_[0.0, 0.0, np.flatnonzero(x)]
            q = kept(X, i, t, where, np.r_[9.0, 9.0, x[x != 0.0]], room)
            assert_allclose(q, (before[D] * z) @ z, rtol=1e-12)
            assert not room.any()


@pytest.mark.parametrize("kind", KINDS)
def test_listed_features(kind):
    X = as_rows(awkward_rows(kind))
    for references in (False, True):
        t, how = learner(X, references)
        found = np.flatnonzero(t.ref)
        assert how.listed[0] == len(found)
        assert_array_equal(how.listed[1 : 1 + len(found)], found)
        again = np.zeros_like(how.listed)
        njit(lambda ref, listed: centred.list_features(ref, listed))(t.ref, again)
        assert_array_equal(again, how.listed)


def increfs(code):
    """Return the blocks of LLVM code that count references in a loop.

    A loop is a set of blocks that can reach one another.
    """
    found = set()
    for function in re.split(r"\ndefine ", code)[1:]:
        body, name = {}, "entry"
        for line in function[: function.find("\n}")].split("\n")[1:]:
            label = re.match(r'^"?([\w.$<>\-]+)"?:', line)
            name = label.group(1) if label else name
            body.setdefault(name, []).append(line)
        ways = {
            block: {
                to.strip('"') for to in re.findall(r'label %("[^"]+"|[\w.$\-]+)', t)
            }
            for block, t in ((block, "\n".join(lines)) for block, lines in body.items())
        }
        counting = {
            block
            for block, lines in body.items()
            if any("call void @NRT_incref" in line for line in lines)
        }
        for start in counting:
            seen, todo = set(), [*ways[start]]
            while todo:
                block = todo.pop()
                if block not in seen:
                    seen.add(block)
                    todo += ways.get(block, ())
            if start in seen:
                found.add(start)
    return found


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_rows_are_visited_without_counting_references(layout, monkeypatch):
    """But for what is rare: new reference points, and a proximal map."""
    X, y = gaussian(60, 3)
    # A kernel out of the cache cannot be looked into, and what it calls is not inlined
    # as it is where all are compiled together.
    monkeypatch.setattr(jit._Cache, "load_overload", lambda *_: None)
    renew = import_module("aucmax.online.engine.row_visit")._renew
    for called in (table.refresh, table.penalise, table.soft_threshold, renew):
        called._reset_overloads()
    update = njit(error_model="numpy", nogil=True)(spam.update.py_func)
    monkeypatch.setattr(spam, "update", update)
    SPAM().partial_fit(layout(X), y)  # all that fit does, and running moments
    (code,) = update.inspect_llvm().values()
    assert "NRT_incref" in code  # that is how it is spelt
    assert len(increfs(code)) <= 2
