"""The step of confidence-weighted learning against decimals of sixty digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from aucmax.core.jit import kernel
from aucmax.online.cbr import confident_step


@kernel
def step(m, v, phi, C):
    return confident_step(m, v, phi, C)


def exact(m, v, phi, C):
    """Return α and √u as the papers have them, and the condition of the loss φ√v - m.

    That is by how much a rounding of m or v alone is magnified.
    """
    with localcontext(prec=60):
        m, v, phi, C = map(Decimal, (m, v, phi, C))
        psi, zeta = 1 + phi**2 / 2, 1 + phi**2
        root = (m**2 * phi**4 / 4 + v * phi**2 * zeta).sqrt()
        alpha = min(C, max(Decimal(0), (root - m * psi) / (v * zeta)))
        shift = alpha * v * phi
        root_u = ((shift**2 + 4 * v).sqrt() - shift) / 2
        loss = phi * v.sqrt() - m
        condition = (phi * v.sqrt() + abs(m)) / abs(loss) if loss else Decimal("inf")
        return float(alpha), float(root_u), float(condition)


@pytest.mark.parametrize("phi", [1e-9, 1e-3, 0.5244, 2.0, 8.2])
@pytest.mark.parametrize("C", [1e-3, 1e30])
def test_no_digit_is_lost(phi, C):
    decades = 10.0 ** np.arange(-30, 31, 3)
    for v in decades * 1.37:
        edge = phi * np.sqrt(v)  # the score at which there is no loss
        near = edge * (1.0 - 10.0 ** -np.arange(1.0, 13.0))
        for m in [0.0, *-decades, *decades[decades < edge], *near]:
            alpha, root_u, condition = exact(m, v, phi, C)
            found = step(m, v, phi, C)
            assert found[0] == pytest.approx(alpha, rel=1e-15 * (5.0 + condition))
            assert found[1] == pytest.approx(root_u, rel=5e-15)


def test_no_step_without_a_loss():
    for v in 10.0 ** np.arange(-30, 31, 3):
        for m in np.sqrt(v) * np.array([1.001, 10.0, 1e10]):
            assert step(m, v, 1.0, 1e30)[0] == 0.0
            assert step(m, v, 1.0, 1e30)[1] == pytest.approx(np.sqrt(v), rel=1e-15)
