"""Classes, parameters and labels as JSON, and back. Decoding never runs any code."""

from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

import aucmax


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
