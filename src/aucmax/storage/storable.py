"""The interface of everything that can be saved: a state out and a state in.

A :class:`State` is plain data: a header that JSON can hold, arrays by name, and the
states of the parts. What an object writes in ``state()`` it reads in ``from_state()``.
Neither does any I/O: :mod:`aucmax.storage.model_file` writes and reads files.

A file may come from anybody. ``from_state()`` therefore checks all that later code
relies on. Shapes, ranges and finiteness are declared as data, a :class:`Spec` for each
array, and checked by :func:`check_arrays`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


class State(NamedTuple):
    """All that is needed to restore an object."""

    header: dict[str, Any]  # what JSON can hold
    arrays: Arrays
    children: "dict[str, State]"


@runtime_checkable
class Storable(Protocol):
    """An object that can be saved to a model file and restored from one."""

    def state(self) -> State:
        """Return the state of the fitted object."""
        ...

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the object of a state; raise a ValueError if the state is invalid."""
        ...


class Spec(NamedTuple):
    """What an array in a state must look like."""

    shape: str | None = None  # a letter per axis, see check_arrays; None: any shape
    finite: bool = True
    is_index: bool = False  # whole numbers from 0 to n_features - 1


def check_arrays(
    arrays: Mapping[str, Any], specs: Mapping[str, Spec], n_features: int
) -> Arrays:
    """Return the arrays of ``specs``; raise a ValueError if one is not as declared.

    Equal letters of shapes are equal lengths; "d" is ``n_features`` and "1" is one.
    Index arrays are returned as integers.
    """
    lengths = {"d": n_features, "1": 1}
    found: Arrays = {}
    for name, spec in specs.items():
        array = _float64(arrays, name)
        if spec.shape is not None:
            fits = array.ndim == len(spec.shape) and all(
                lengths.setdefault(letter, length) == length
                for letter, length in zip(spec.shape, array.shape, strict=True)
            )
            if not fits:
                raise ValueError(
                    f"{name!r} has shape {array.shape}, which does not match the "
                    "other arrays."
                )
        if spec.finite and not np.isfinite(array).all():
            raise ValueError(f"{name!r} has values that are not finite.")
        if spec.is_index:
            array = whole_numbers(name, array, 0, n_features - 1)
        found[name] = array
    return found


def check_like(arrays: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Any:
    """Return the finite float64 array of this shape; a length of zero is any length."""
    array = _float64(arrays, name)
    fits = array.ndim == len(shape) and all(
        length in (0, found) for length, found in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"{name!r} has shape {array.shape}, not {shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name!r} has values that are not finite.")
    return array


def _float64(arrays: Mapping[str, Any], name: str) -> NDArray[Any]:
    if name not in arrays:
        raise ValueError(f"the array {name!r} is missing.")
    array: NDArray[Any] = arrays[name]
    if array.dtype != np.float64:
        raise ValueError(f"{name!r} has type {array.dtype}, not float64.")
    return array


def whole_numbers(
    name: str, numbers: NDArray[Any], least: float, most: float
) -> NDArray[np.int64]:
    """Return stored numbers as integers; raise a ValueError if out of range."""
    valid = (numbers >= least) & (numbers <= most) & (numbers == np.floor(numbers))
    if not valid.all():
        raise ValueError(f"{name!r} has values that are not whole or out of range.")
    return numbers.astype(np.int64)
