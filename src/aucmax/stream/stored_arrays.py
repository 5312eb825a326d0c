"""Shapes of the arrays of AUCStream in model files."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.stream.blocks import MAX_LENGTH
from aucmax.stream.serving import ServedScores

Arrays = dict[str, NDArray[Any]]


def checked_arrays(arrays: Arrays, count: int, n_features: int) -> Arrays:
    """Return the arrays of ``count`` scores; raise a ValueError if they are invalid.

    ``scored`` and ``signed`` are scores and signed weights of the unfinished block.
    """
    length = len(arrays["signed"])
    new = ServedScores.start(count).arrays()
    shapes = {name: array.shape for name, array in new.items()}
    shapes |= {name: (count, *arrays[name].shape[1:2]) for name in ("pos", "neg")}
    shapes |= {"recency": (6,), "most": (n_features,), "signed": (length,)}
    shapes |= {"fill": (n_features,)} if "fill" in arrays else {}
    shapes |= {"scored": (count + 1, length)}
    shapes |= {"last": (n_features if arrays["last"].size else 0,)}
    for name, shape in shapes.items():
        array = arrays[name]
        if array.shape != shape or not np.isfinite(array).all():
            raise ValueError(
                f"{name!r} has shape {array.shape}, expected {shape} and finite values."
            )
    if length >= MAX_LENGTH or not arrays["signed"].all():
        raise ValueError("the unfinished block is too long or has rows of weight zero.")
    if (arrays["most"] < 0.0).any():
        raise ValueError("'most', the largest absolute values, has negative values.")
    return arrays
