"""L'Ecuyer's combined random generator (1988).

Its state is two floats, stored in the learner's state and hence in model files: a
resumed stream draws the same numbers.
"""

from typing import Any

import numpy as np

from aucmax.core.jit import inlined
from aucmax.core.rows import Float
from aucmax.storage.state import whole_numbers

MODULI = 2147483563, 2147483399
SEED = 12345.0, 67890.0  # the same for every model: streams have no random seed


@inlined
def advance(one: Any, two: Any) -> Any:
    """Return the next state of the two generators, each below its modulus."""
    return one * 40014 % MODULI[0], two * 40692 % MODULI[1]


@inlined
def uniform(seed: Float) -> float:
    """Return a random number in (0, 1) and update ``seed``."""
    one, two = advance(np.int64(seed[0]), np.int64(seed[1]))
    seed[0], seed[1] = np.float64(one), np.float64(two)
    mixed = one - two
    return (mixed if mixed > 0 else mixed + (MODULI[0] - 1)) / np.float64(MODULI[0])


def check_seed(seed: Float) -> None:
    """Raise an error if ``seed`` is not a valid state of ``uniform``."""
    for number, modulus in zip(seed, MODULI, strict=True):
        whole_numbers("random numbers of its state", number, 1, modulus - 1)
