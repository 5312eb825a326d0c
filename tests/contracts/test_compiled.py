"""Contract: compiled kernels compute what the same code computes as Python."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from aucmax import CBR
from contracts.estimators import (
    LINEAR,
    assert_close,
    comparable_parts,
    learned_arrays,
    linear,
    seeded,
    trained,
    with_methods,
)
from helpers.data import gaussian, mixed


def write_states(folder):
    """Write the state of every trained linear variant to a file, compiled or not."""
    X, y = mixed(50)
    weight = np.random.default_rng(0).random(50) + 0.5
    weight[::9] = 0.0
    for k, estimator in enumerate(LINEAR):
        # One layout each: test_layouts.py compares layouts.
        ways = [("fit", np.asarray), ("partial_fit", sparse.csr_array)]
        if not hasattr(estimator, "partial_fit"):
            ways[1] = "fit", sparse.csr_array
        for method, layout in ways:
            # With few features the proximal map is applied every 256 steps.
            model = seeded(estimator, max_iter=6, n_batches=5)
            if isinstance(estimator, CBR):  # a minute in Python otherwise
                model.set_params(max_iter=2, buffer_size=5)
            getattr(model, method)(layout(X), y, sample_weight=weight)
            file = f"{k}-{layout.__name__}-{method}.npz"
            np.savez(Path(folder) / file, **learned_arrays(model))


def check_one_feature():
    """Check that dense equals CSR for one feature, without compiling.

    Numba gives arrays with one column a layout of their own, and would compile again.
    """
    X, y = gaussian(40, 1)
    X[::5] = 0.0
    short = {"max_iter": 2, "buffer_size": 5, "n_batches": 5}
    for estimator, method in with_methods(LINEAR):
        dense = trained(estimator, X, y, method, **short)
        found = trained(estimator, sparse.csr_array(X), y, method, **short)
        assert_close(found, dense)


@pytest.fixture(scope="module")
def python_states(tmp_path_factory):
    folder = tmp_path_factory.mktemp("python")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from contracts import test_compiled as tests; "
        "tests.write_states(sys.argv[2]); tests.check_one_feature()"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parents[1]), str(folder)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=True,
    )
    return folder


@pytest.fixture(scope="module")
def compiled_states(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    write_states(folder)
    return folder


@linear
def test_compiled_is_python(estimator, python_states, compiled_states):
    files = sorted(python_states.glob(f"{LINEAR.index(estimator)}-*.npz"))
    assert len(files) >= 2
    for file in files:
        expected = np.load(file)
        found = np.load(compiled_states / file.name)
        assert found.keys() == expected.keys()
        for key in expected:
            for a, b in zip(
                comparable_parts(key, found[key]),
                comparable_parts(key, expected[key]),
                strict=True,
            ):
                atol = 1e-9 * max(np.abs(b).max(), 1e-6)
                message = f"{file.name}: {key}"
                assert_allclose(a, b, rtol=1e-9, atol=atol, err_msg=message)
