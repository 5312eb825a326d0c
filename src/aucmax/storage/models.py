"""Estimators to model files, and the layout of their states in a file."""

from pathlib import Path
from typing import Any

from aucmax.storage.estimator import below
from aucmax.storage.model_file import write
from aucmax.storage.storable import Arrays, State, Storable


def save_model(estimator: Storable, path: str | Path, **header: Any) -> None:
    """Write a fitted estimator to ``path``, atomically, with more of a header."""
    own, arrays = flatten(estimator.state())
    write(path, own | header, arrays)


def flatten(state: State) -> tuple[dict[str, Any], Arrays]:
    """Return one header and one set of arrays: those of a part begin with its name."""
    header, arrays = dict(state.header), dict(state.arrays)
    if state.children:
        header["parts"] = {}
    for name, child in state.children.items():
        header["parts"][name], its = flatten(child)
        arrays |= {f"{name}.{key}": array for key, array in its.items()}
    return header, arrays


def unflatten(header: dict[str, Any], arrays: Arrays) -> State:
    """Return the state that ``flatten`` made one header and one set of arrays of."""
    parts = header.get("parts", {})
    children = {
        name: unflatten(its, below(name, arrays)) for name, its in parts.items()
    }
    starts = tuple(f"{name}." for name in parts)
    own = {key: array for key, array in arrays.items() if not key.startswith(starts)}
    return State(header, own if starts else arrays, children)
