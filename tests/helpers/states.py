"""States of estimators as flat arrays, to be compared."""

from aucmax.storage.state import flatten


def dump(model):
    """Return the header and the arrays that a model file would have."""
    return flatten(model.state())
