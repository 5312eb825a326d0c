"""L'Ecuyer's combined generator (1988), whose state two floats of a learner hold.

So that a model file has all of it, and a stream that is read on draws what it would
have drawn.
"""

from typing import Any

import numpy as np

from aucmax.core.jit import inlined
from aucmax.core.rows import Float
from aucmax.core.validation import check_whole

MODULI = 2147483563, 2147483399
SEED = 12345.0, 67890.0  # the same for every model, so that a stream needs no seed


@inlined
def advance(one: Any, two: Any) -> Any:
    """Return the next state of the two generators, each below its modulus."""
    return one * 40014 % MODULI[0], two * 40692 % MODULI[1]


@inlined
def uniform(seed: Float) -> float:
    """Return a random number in (0, 1), and move ``seed`` on."""
    one, two = advance(np.int64(seed[0]), np.int64(seed[1]))
    seed[0], seed[1] = np.float64(one), np.float64(two)
    mixed = one - two
    return (mixed if mixed > 0 else mixed + (MODULI[0] - 1)) / np.float64(MODULI[0])


def check_seed(seed: Float) -> None:
    """Raise an error if these cannot be the state of ``uniform``."""
    for number, modulus in zip(seed, MODULI, strict=True):
        check_whole("random numbers of its state", number, 1, modulus - 1)
