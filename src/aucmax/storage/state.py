"""The interface of everything that can be saved: a state out and a state in.

A :class:`State` is plain data: a header that JSON can hold, arrays by name, and the
states of the parts. What an object writes in ``state()`` it reads in ``from_state()``.
Neither does any I/O: :mod:`aucmax.storage.model_file` writes and reads files, and
:func:`save_model` writes a state to one.

A file may come from anybody. ``from_state()`` therefore checks all that later code
relies on. Shapes, ranges and finiteness are declared as data, a :class:`Spec` for each
array, and checked by :func:`check_arrays`. Decoding never runs any code.

The state of a learner is a NamedTuple of arrays, possibly nested; :func:`arrays` names
them. :class:`StoredEstimator` stores parameters, fitted attributes and feature names.
"""

from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import aucmax
from aucmax.storage.model_file import write

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


def arrays(state: Any, prefix: str = "") -> dict[str, NDArray[Any]]:
    """Return the arrays of a state by name, those of a part as ``part.name``."""
    found: dict[str, NDArray[Any]] = {}
    for name, part in state._asdict().items():
        if isinstance(part, tuple):
            found |= arrays(part, f"{prefix}{name}.")
        else:
            found[prefix + name] = part
    return found


def with_arrays(state: Any, found: Mapping[str, Any], prefix: str = "") -> Any:
    """Return the state with these arrays in place of its own."""
    changed = {}
    for name, part in state._asdict().items():
        if isinstance(part, tuple):
            changed[name] = with_arrays(part, found, f"{prefix}{name}.")
        elif prefix + name in found:
            changed[name] = found[prefix + name]
    return state._replace(**changed)


def registered(name: str) -> Any:
    """Return a class that a model file may name; raise a ValueError for others."""
    known = aucmax.ESTIMATORS | aucmax.MAPS | aucmax.PARTS
    if name not in known:
        raise ValueError(f"there is no estimator {name!r}.")
    return getattr(import_module(known[name]), name)


def encode_estimator(estimator: Any) -> dict[str, Any]:
    """Return the class and the parameters."""
    kind = type(estimator)
    if not kind.__module__.startswith("aucmax."):
        raise TypeError(f"{kind.__name__} is not an estimator of aucmax.")
    parameters = estimator.get_params(deep=False)
    return {
        "class": kind.__name__,
        "parameters": {
            key: _encode_parameter(key, value) for key, value in parameters.items()
        },
    }


def decode_estimator(kind: Any, parameters: dict[str, Any]) -> Any:
    """Return an estimator with these parameters, not fitted."""
    estimator = kind(
        **{key: _decode_parameter(value) for key, value in parameters.items()}
    )
    estimator._validate_params()  # partial_fit of a fitted model would not
    return estimator


def _encode_parameter(name: str, value: Any) -> Any:
    if isinstance(value, BaseEstimator):
        return encode_estimator(value)
    if isinstance(value, np.random.RandomState):
        kind, keys, *rest = value.get_state(legacy=True)
        return {"RandomState": [kind, np.asarray(keys).tolist(), *rest]}
    if isinstance(value, np.generic):
        value = value.item()
    if is_dataclass(value):  # a goal: its text says the same
        return str(value)
    if isinstance(value, np.ndarray | list | tuple):
        return [_encode_parameter(name, item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"The parameter {name}={value!r} cannot be saved.")


def _decode_parameter(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode_parameter(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "class" in value:
        return decode_estimator(registered(value["class"]), value["parameters"])
    return _decode_random_state(value["RandomState"])


def _decode_random_state(state: Any) -> np.random.RandomState:
    """Return the generator of a stored state; NumPy itself does not check ``pos``."""
    kind, keys, pos, has_gauss, gauss = state
    whole = isinstance(keys, list) and all(type(key) is int for key in keys)
    if not whole or len(keys) != 624 or not all(0 <= key < 1 << 32 for key in keys):
        raise ValueError("a RandomState must have 624 keys between 0 and 2**32 - 1.")
    if not any([keys[0] >> 31, *keys[1:]]):  # draws of normals would never end
        raise ValueError("the keys of a RandomState are all zero.")
    if type(pos) is not int or not 0 <= pos <= 624:
        raise ValueError(f"a RandomState has position {pos!r}, not one of 0 to 624.")
    if type(has_gauss) is not int or has_gauss not in (0, 1):
        raise ValueError(f"a RandomState has has_gauss = {has_gauss!r}, not 0 or 1.")
    if type(gauss) not in (int, float) or not np.isfinite(float(gauss)):
        raise ValueError(f"a RandomState has gauss = {gauss!r}, not a finite number.")
    rng = np.random.RandomState()
    rng.set_state((kind, np.array(keys, np.uint32), pos, has_gauss, float(gauss)))
    return rng


def encode_labels(labels: NDArray[Any]) -> dict[str, Any]:
    """Return the two labels for JSON."""
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def decode_labels(labels: dict[str, Any]) -> NDArray[Any]:
    """Return the two labels; raise a ValueError if they are not two."""
    dtype, values = np.dtype(str(labels["dtype"])), labels["values"]
    single = all(isinstance(value, bool | int | float | str) for value in values)
    if dtype.kind not in "biufUO" or len(values) != 2 or not single:
        raise ValueError(f"labels {labels!r} are not two numbers or strings.")
    found = np.array(values, dtype=dtype)
    # One that is not itself, NaN, would be no row's.
    if found[0] == found[1] or any(found != found):
        raise ValueError(f"labels {labels!r} are not two different ones.")
    return found


_ATTRIBUTES = ("n_features_in_", "n_iter_")


class StoredEstimator:
    """Mixin that gives a scikit-learn estimator ``state()`` and ``from_state()``.

    ``stored`` declares the fitted arrays and numbers, beside which the parameters, the
    number of features and iterations, and the feature names are stored. A class with
    more to store extends both methods and calls those of its base class.
    """

    stored: ClassVar[dict[str, Spec]] = {}
    n_features_in_: int

    def state(self) -> State:
        """Return the state of the fitted estimator: header, arrays, parts."""
        check_is_fitted(self)
        fitted = vars(self)
        header = {
            **encode_estimator(self),
            "attributes": {
                key: int(fitted[key]) for key in _ATTRIBUTES if key in fitted
            },
            "features": list(fitted.get("feature_names_in_", ())),
        }
        arrays = {
            f"result.{name}": np.array(fitted[name], np.float64) for name in self.stored
        }
        return State(header, arrays, {})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        header = state.header
        estimator: Any = decode_estimator(cls, header["parameters"])
        for key, value in header["attributes"].items():
            if key not in _ATTRIBUTES:
                raise ValueError(f"it has an unknown attribute {key!r}.")
            if type(value) is not int:
                raise ValueError(f"its {key!r} is {value!r}, not a whole number.")
            setattr(estimator, key, value)
        width = estimator.n_features_in_
        if width < 1:
            raise ValueError("it has no features.")
        names = header["features"]
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise ValueError("the names of its features are not strings.")
        if len(names) not in (0, width):
            raise ValueError(f"it names {len(names)} of {width} features.")
        if names:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        results = below("result", state.arrays)
        for name, value in check_arrays(results, cls.stored, width).items():
            setattr(estimator, name, value if value.ndim else float(value))
        return estimator


def below(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays whose names begin with ``prefix.``, without it."""
    start = f"{prefix}."
    return {
        key.removeprefix(start): array
        for key, array in arrays.items()
        if key.startswith(start)
    }


def restore(state: State) -> Any:
    """Return the estimator of a state, of the registered class that it names."""
    return registered(state.header["class"]).from_state(state)


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
