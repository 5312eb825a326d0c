"""Power and sample size against simulations and each other; see also test_proc.py."""

import numpy as np
import pytest
from scipy.stats import norm

from aucmax.metrics import auc_power, auc_sample_size, auc_variance


@pytest.mark.parametrize(
    ("area", "ratio", "excess"),
    [
        (0.55, 1, 0.98),
        (0.8, 1, 1.13),
        (0.95, 1, 1.29),
        (0.8, 10, 1.23),
        (0.95, 10, 1.5),
    ],
)
def test_error_is_above_that_of_an_empirical_auc(area, ratio, excess):
    # Placements of normal scores are ndtr(score); the docs state these ratios.
    shift = np.sqrt(2.0) * norm.ppf(area)
    x, step = np.linspace(-9.0, 9.0, 20_001, retstep=True)
    placement, density = norm.cdf(x + shift), step * norm.pdf(x)
    one = density @ placement**2 - (density @ placement) ** 2
    empirical = np.sqrt(one * (1.0 + 1.0 / ratio))
    published = np.sqrt(auc_variance(area, 1.0, ratio))
    assert published / empirical == pytest.approx(excess, abs=0.006)


@pytest.mark.parametrize("correlation", [None, 0.0, 0.6])
@pytest.mark.parametrize("power", [0.8, 0.95])
def test_sample_size_reaches_the_power(correlation, power):
    design = {"null": 0.7, "correlation": correlation}
    size = auc_sample_size(0.78, power=power, share=0.3, **design)
    assert auc_power(0.78, *size, **design) >= power
    fewer = auc_power(0.78, size.positives - 1, size.negatives - 3, **design)
    assert fewer < power


def test_sample_size_reaches_the_width():
    size = auc_sample_size(0.8, width=0.1, share=0.2)
    half = norm.ppf(0.975) * np.sqrt(auc_variance(0.8, *size))
    assert 0.099 < 2.0 * half <= 0.1
    # A correlated difference is more accurate than one AUC only for high correlations.
    rows = [
        auc_sample_size(0.8, null=0.8, width=0.1, correlation=r).positives
        for r in (0.0, 0.5, 0.9)
    ]
    single = auc_sample_size(0.8, width=0.1).positives
    assert rows == pytest.approx([2 * single, single, 0.2 * single], abs=1.1)


def test_errors():
    with pytest.raises(ValueError, match=r"auc=1\.2"):
        auc_power(1.2, 10, 10)
    with pytest.raises(ValueError, match="positives=0"):
        auc_power(0.7, 0, 10)
    with pytest.raises(ValueError, match=r"correlation=1\.0"):
        auc_power(0.7, 10, 10, correlation=1.0)
    with pytest.raises(ValueError, match="is equal to null"):
        auc_sample_size(0.5)
    with pytest.raises(ValueError, match="width=0"):
        auc_sample_size(0.7, width=0.0)
