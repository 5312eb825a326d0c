"""What the corrections of misprints change: the sizes in docs/algorithms.md.

Each algorithm runs over the same rows with its misprint and without. The size is the
distance of the two weight vectors, relative to the length of the corrected one.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from as_published import pseudocode

oam = partial(pseudocode.oam, N=20, policy="fifo")
cbr = partial(pseudocode.cbr, eta=0.7, M=50, policy="fifo")
CASES = {
    "SOLAM": (partial(pseudocode.solam, zeta=0.3, R=10.0), 10.3),
    "regSOLAM": (partial(pseudocode.solam, zeta=0.3, R=10.0, l2=0.1), 0.065),
    "OPAUC": (partial(pseudocode.opauc, eta=2.0**-6, l2=1e-4), 0.55),
    "OPAUCr": (partial(pseudocode.opaucr, eta=2.0**-6, l2=1e-4, tau=50), 0.19),
    "OAMseq": (partial(oam, C=0.01, update="seq"), 0.37),
    "OAMgra": (partial(oam, C=1e-4, update="gra"), 1.3),
    "CBR, C = 0.1": (partial(cbr, C=0.1), 0.003),
    "CBR, C = 1": (partial(cbr, C=1.0), 0.18),
    "CBR-diag, C = 0.1": (partial(cbr, C=0.1, diagonal=True), 0.018),
    "CBR-diag, C = 1": (partial(cbr, C=1.0, diagonal=True), 0.27),
}
DOCS = Path(__file__).parents[2] / "docs" / "algorithms.md"


def rows(n=400, d=6):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.3, 1, -1)
    X = rng.standard_normal((n, d)) + 0.5
    X[y > 0, :3] += 1.0
    return X, y


@pytest.mark.parametrize("name", CASES)
def test_sizes_are_those_of_the_documentation(name):
    run, size = CASES[name]
    X, y = rows()
    *_, right = run(X, y)
    *_, wrong = run(X, y, literal=True)
    found = np.linalg.norm(wrong - right) / np.linalg.norm(right)
    assert float(f"{found:.{len(f'{size}'.lstrip('0.').replace('.', ''))}g}") == size
    assert f"| {name} | {size:g} |" in DOCS.read_text()


@pytest.mark.parametrize(
    ("scale", "right", "wrong"), [(1.0, 0.15, 0.010), (0.2, 0.0022, 0.23)]
)
def test_neither_step_of_spdam_is_always_better(scale, right, wrong):
    X, y = rows()
    rng, n, l2 = np.random.default_rng(1), len(y), 0.04
    batches = np.array([rng.permutation(n)[:40] for _ in range(300)])
    delta, H = scale * (X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)), l2 / 2
    H = H * np.eye(6) + np.outer(delta, delta)
    H += scale**2 * (np.cov(X[y > 0].T, ddof=0) + np.cov(X[y < 0].T, ddof=0))
    least = np.linalg.solve(H, delta)
    for literal, expected in ((False, right), (True, wrong)):
        *_, (_, w) = pseudocode.spdam(scale * X, y, l2, 40, batches, literal=literal)
        error = np.linalg.norm(w - least) / np.linalg.norm(least)
        assert error == pytest.approx(expected, rel=0.05)
