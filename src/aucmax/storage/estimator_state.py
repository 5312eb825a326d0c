"""An estimator as plain data: a header that JSON can hold, and arrays.

They hold all there is, so that what is restored scores and learns on as if nothing had
happened. Restoring reads numbers and never runs anything; what kernels could not trust
is refused. An estimator that is made of others holds theirs, under their names.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aucmax.storage.state_arrays import arrays, with_arrays

Tensors = dict[str, NDArray[Any]]
Lookup = Callable[[str], Any]  # of a class by its name; an error if it is none of ours

_ATTRIBUTES = ("n_features_in_", "n_iter_")


def dump(estimator: Any) -> tuple[dict[str, Any], Tensors]:
    """Return the header and the arrays of a fitted estimator."""
    check_is_fitted(estimator)
    header = {
        **_encode_estimator(estimator),
        "attributes": {
            key: int(vars(estimator)[key])
            for key in _ATTRIBUTES
            if key in vars(estimator)
        },
        "features": getattr(estimator, "feature_names_in_", np.array([])).tolist(),
    }
    tensors: Tensors = {}
    if hasattr(estimator, "classes_"):
        header["classes"] = _encode_labels(estimator.classes_)
    if not hasattr(estimator, "_parts") and hasattr(estimator, "coef_"):
        tensors |= {"coef": estimator.coef_, "intercept": estimator.intercept_}
    if hasattr(estimator, "state_"):
        for name, value in arrays(estimator.state_).items():
            tensors[f"state.{name}"] = np.asarray(value, np.float64)
    for name in getattr(estimator, "_results", ()):
        tensors[f"result.{name}"] = np.array(getattr(estimator, name), np.float64)
    if hasattr(estimator, "_notes"):
        header["notes"] = estimator._notes()
    if hasattr(estimator, "_parts"):
        parts, own = estimator._parts()
        tensors |= {f"own.{name}": array for name, array in own.items()}
        dumped = {name: dump(part) for name, part in parts.items()}
        header["parts"] = {name: head for name, (head, _) in dumped.items()}
        for name, (_, its) in dumped.items():
            tensors |= {f"{name}.{key}": array for key, array in its.items()}
    return header, tensors


def restore(
    estimator_class: Any, header: dict[str, Any], tensors: Tensors, lookup: Lookup
) -> Any:
    """Return the estimator of which ``dump`` gave header and arrays."""
    estimator = _decode_estimator(estimator_class, header["parameters"], lookup)
    for key, value in header["attributes"].items():
        if key not in _ATTRIBUTES:
            raise ValueError(f"it has an attribute {key!r}.")
        if type(value) is not int:
            raise ValueError(f"its {key!r} is {value!r}, not a whole number.")
        setattr(estimator, key, value)
    if estimator.n_features_in_ < 1:
        raise ValueError("it has no features.")
    if hasattr(estimator, "predict"):
        estimator.classes_ = _decode_labels(header["classes"])
    names = header["features"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of its features are not strings.")
    if len(names) not in (0, estimator.n_features_in_):
        raise ValueError(f"it names {len(names)} features of its own.")
    if names:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    for name in getattr(estimator, "_results", ()):
        value = tensors[f"result.{name}"]
        check_float64(f"result.{name}", value)
        setattr(estimator, name, value if value.ndim else float(value))
    if hasattr(estimator, "_take_notes"):
        estimator._take_notes(header["notes"])
    if hasattr(estimator, "_parts"):
        parts = {
            name: restore(lookup(its["class"]), its, _below(name, tensors), lookup)
            for name, its in header["parts"].items()
        }
        estimator._take_parts(parts, _below("own", tensors))
    elif hasattr(estimator, "_validate_results"):
        estimator._validate_results()
    else:
        estimator.coef_ = _expect(tensors, "coef", (1, estimator.n_features_in_))
        estimator.intercept_ = _expect(tensors, "intercept", (1,))
    if any(key.startswith("state.") for key in tensors):
        if not hasattr(estimator, "n_iter_"):
            raise ValueError("it has a state, but no 'n_iter_'.")
        fresh = estimator._start(estimator.n_features_in_)
        found = {
            name: _expect(tensors, f"state.{name}", value.shape)
            for name, value in arrays(fresh).items()
        }
        estimator.state_ = with_arrays(fresh, found)
        estimator._validate_state(estimator.state_)
    return estimator


def _below(name: str, tensors: Tensors) -> Tensors:
    """Return the arrays of a part, by the names that it knows."""
    start = f"{name}."
    return {
        key.removeprefix(start): array
        for key, array in tensors.items()
        if key.startswith(start)
    }


def _expect(tensors: Tensors, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    if name not in tensors:
        raise ValueError(f"it has no {name!r}.")
    tensor = tensors[name]
    # A length of zero is one that grows with the data.
    fits = tensor.ndim == len(shape) and all(
        length in (0, found) for length, found in zip(shape, tensor.shape, strict=True)
    )
    if not fits or tensor.dtype != np.float64:
        raise ValueError(
            f"{name!r} has type {tensor.dtype} and shape {tensor.shape}, "
            f"not float64 and {shape}."
        )
    if not np.isfinite(tensor).all():
        raise ValueError(f"{name!r} has numbers that are not finite.")
    return tensor


def _encode_estimator(estimator: Any) -> dict[str, Any]:
    """Return the class and the parameters."""
    kind = type(estimator)
    if not kind.__module__.startswith("aucmax."):  # nobody could load it
        raise TypeError(f"{kind.__name__} is not an estimator of aucmax.")
    parameters = estimator.get_params(deep=False)
    return {
        "class": kind.__name__,
        "parameters": {
            key: _encode_parameter(key, value) for key, value in parameters.items()
        },
    }


def _decode_estimator(kind: Any, parameters: dict[str, Any], lookup: Lookup) -> Any:
    estimator = kind(
        **{key: _decode_parameter(value, lookup) for key, value in parameters.items()}
    )
    estimator._validate_params()  # partial_fit of a fitted model would not
    return estimator


def _encode_parameter(name: str, value: Any) -> Any:
    if isinstance(value, BaseEstimator):
        return _encode_estimator(value)
    if isinstance(value, np.random.RandomState):
        kind, keys, *rest = value.get_state(legacy=True)
        return {"RandomState": [kind, np.asarray(keys).tolist(), *rest]}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return [_encode_parameter(name, item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"The parameter {name}={value!r} cannot be saved.")


def _decode_parameter(value: Any, lookup: Lookup) -> Any:
    if isinstance(value, list):
        return [_decode_parameter(item, lookup) for item in value]
    if not isinstance(value, dict):
        return value
    if "class" in value:
        return _decode_estimator(lookup(value["class"]), value["parameters"], lookup)
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


def _encode_labels(labels: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def _decode_labels(labels: dict[str, Any]) -> NDArray[Any]:
    dtype, values = np.dtype(str(labels["dtype"])), labels["values"]
    single = all(isinstance(value, bool | int | float | str) for value in values)
    if dtype.kind not in "biufUO" or len(values) != 2 or not single:
        raise ValueError(f"labels {labels!r} are not two numbers or strings.")
    found = np.array(values, dtype=dtype)
    # One that is not itself, NaN, would be no row's.
    if found[0] == found[1] or any(found != found):
        raise ValueError(f"labels {labels!r} are not two different ones.")
    return found


def check_float64(name: str, array: NDArray[Any]) -> None:
    """Raise an error if an array out of a file, which is added to, has another type."""
    if array.dtype != np.float64:
        raise ValueError(f"{name!r} has type {array.dtype}, not float64.")
