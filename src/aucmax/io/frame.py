"""The encoder of models that were fitted on a table: data frames to feature rows."""

from typing import Any

import numpy as np
from scipy import sparse

from aucmax.io.arrow_source import FrameSource


class FrameEncoder:
    """Make feature rows of data frames.

    Parameters
    ----------
    recipe : dict
        How columns become features, as a source says and a model file stores it.
    """

    def __init__(self, recipe: dict[str, Any]) -> None:
        self.recipe = recipe

    def transform(self, frame: Any) -> Any:
        """Return the feature rows of a data frame; raise an error for a bad cell."""
        source = FrameSource(frame, recipe=self.recipe, labelled=False)
        parts = []
        for chunk in source.chunks():
            if chunk.bad:
                raise ValueError(str(chunk.bad[0]))
            parts.append(chunk.X)
        if not parts:
            return np.zeros((0, source.n_features), source.dtype)
        stack = sparse.vstack if sparse.issparse(parts[0]) else np.vstack
        return stack(parts)
