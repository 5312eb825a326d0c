"""Model files: safetensors with a JSON header.

The header names the format, its version, the class (out of the registry), its
parameters, labels and feature names; the tensors are the weights and the state of the
learner, so that training can go on. A model that was trained from files has a recipe
as well: how to read such files, and which labels are positive. Loading reads numbers
and never runs anything.
"""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from sklearn.utils.validation import check_is_fitted

import aucmax
from aucmax.files import replacing

FORMAT = "aucmax model"
VERSION = 2  # 1: other statistics of the features

_ATTRIBUTES = ("n_features_in_", "n_iter_")
_WRONG = (
    *(AttributeError, LookupError, OverflowError, TypeError, ValueError),
    MemoryError,  # of sizes that nobody has
)
_LONGEST_HEADER = 100_000_000  # bytes, that the package reads


def save(
    estimator: Any, path: str | Path, recipe: dict[str, Any] | None = None
) -> None:
    """Write a fitted estimator to ``path``, atomically.

    ``recipe``, out of what JSON knows, says how rows were made of data.
    """
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if name not in aucmax.ESTIMATORS:
        raise TypeError(f"{name} is not an estimator of aucmax.")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"aucmax {aucmax.__version__}",
        "class": name,
        "parameters": {
            key: _encode_parameter(key, value)
            for key, value in estimator.get_params(deep=False).items()
        },
        "attributes": {key: int(getattr(estimator, key)) for key in _ATTRIBUTES},
        "classes": _encode_labels(estimator.classes_),
        "features": getattr(estimator, "feature_names_in_", np.array([])).tolist(),
    }
    if recipe is not None:
        header["recipe"] = recipe
    tensors = {"coef": estimator.coef_, "intercept": estimator.intercept_}
    if hasattr(estimator, "state_"):
        for field, value in estimator.state_._asdict().items():
            tensors[f"state.{field}"] = np.asarray(value, np.float64)
    for name in getattr(estimator, "_results", ()):
        tensors[f"result.{name}"] = np.array(getattr(estimator, name), np.float64)
    with replacing(path) as file:
        for part in _parts(tensors, json.dumps(header, sort_keys=True)):
            file.write(part)


def _parts(tensors: dict[str, Any], header: str) -> Iterator[Any]:
    """Yield a safetensors file of float64 arrays piece by piece, without a copy.

    Byte for byte what the package writes, which makes three copies of a large state.
    """
    table: dict[str, Any] = {"__metadata__": {"aucmax": header}}
    arrays, end = [], 0
    for name in sorted(tensors):
        array = np.asarray(tensors[name], "<f8")
        start, end = end, end + array.nbytes
        shape, place = list(array.shape), [start, end]
        table[name] = {"dtype": "F64", "shape": shape, "data_offsets": place}
        arrays.append(array)
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LONGEST_HEADER:
        raise ValueError(
            f"The header of the file would take {len(text)} bytes, and nobody reads "
            f"more than {_LONGEST_HEADER}: hash categories, or use shorter names."
        )
    yield len(text).to_bytes(8, "little")
    yield text
    for array in arrays:
        # A table that is stored feature by feature is turned round slot by slot.
        whole = array.ndim < 2 or array.flags.c_contiguous
        for part in [array] if whole else array:
            yield np.ascontiguousarray(part).reshape(-1).view(np.uint8).data


def load(path: str | Path) -> Any:
    """Read an estimator from ``path``.

    Parameters
    ----------
    path : str or Path
        A file written by ``estimator.save``.

    Returns
    -------
    estimator
        It scores as the saved one did, and goes on training from where that stopped.

    Examples
    --------
    >>> import numpy as np, tempfile, aucmax
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     aucmax.SPAM(random_state=0).fit(X, y).save(f"{folder}/model.aucmax")
    ...     model = aucmax.load(f"{folder}/model.aucmax")
    >>> model.predict(X)
    array([0, 0, 1, 1])
    """
    return load_with_recipe(path)[0]


def load_with_recipe(path: str | Path) -> tuple[Any, dict[str, Any] | None]:
    """Read an estimator, and how to make rows for it, if the file says so."""
    header, tensors = _read(Path(path))
    try:
        recipe = header.get("recipe")
        if not isinstance(recipe, dict | None):
            raise TypeError("its recipe is none.")
        return _build(header, tensors), recipe
    except _WRONG as error:
        raise ValueError(f"{path} is a damaged aucmax model file: {error}") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a model file.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            header = json.loads(metadata.get("aucmax", "null"))
            names = file.keys()
            tensors = {name: np.array(file.get_tensor(name)) for name in names}
    except (SafetensorError, ValueError) as error:
        raise ValueError(
            f"{path} is not an aucmax model file, or it is damaged: {error}"
        ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path} is a safetensors file, but not one of aucmax.")
    version = header.get("version")
    if version != VERSION:
        old = isinstance(version, int) and version < VERSION
        remedy = "It is too old: train it again." if old else "Upgrade aucmax."
        raise ValueError(
            f"{path} has version {version!r} of the format, written by "
            f"{header.get('written_by')!r}; this is aucmax {aucmax.__version__}, which "
            f"reads version {VERSION}. {remedy}"
        )
    return header, tensors


def _build(header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> Any:
    name = header["class"]
    if name not in aucmax.ESTIMATORS:
        raise ValueError(f"there is no estimator {name!r}.")
    estimator_class = getattr(import_module(aucmax.ESTIMATORS[name]), name)
    parameters = header["parameters"]
    estimator = estimator_class(
        **{key: _decode_parameter(value) for key, value in parameters.items()}
    )
    estimator._validate_params()  # partial_fit of a fitted model would not
    for key in _ATTRIBUTES:
        setattr(estimator, key, int(header["attributes"][key]))
    if estimator.n_features_in_ < 1:
        raise ValueError("it has no features.")
    estimator.classes_ = _decode_labels(header["classes"])
    names = np.array(header["features"], dtype=object)
    if names.size not in (0, estimator.n_features_in_):
        raise ValueError(f"it names {names.size} features of its own.")
    if names.size:
        estimator.feature_names_in_ = names
    estimator.coef_ = _expect(tensors, "coef", (1, estimator.n_features_in_))
    estimator.intercept_ = _expect(tensors, "intercept", (1,))
    for name in getattr(estimator, "_results", ()):
        value = tensors[f"result.{name}"]
        setattr(estimator, name, value if value.ndim else float(value))
    if any(key.startswith("state.") for key in tensors):
        fresh = estimator._start(estimator.n_features_in_)
        estimator.state_ = type(fresh)(
            **{
                field: _expect(tensors, f"state.{field}", value.shape)
                for field, value in fresh._asdict().items()
            }
        )
        estimator._admit(estimator.state_)
    return estimator


def _expect(
    tensors: dict[str, NDArray[Any]], name: str, shape: tuple[int, ...]
) -> NDArray[Any]:
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


def _encode_parameter(name: str, value: Any) -> Any:
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


def _decode_parameter(value: Any) -> Any:
    if isinstance(value, dict):
        kind, keys, *rest = value["RandomState"]
        rng = np.random.RandomState()
        rng.set_state((kind, np.array(keys, dtype=np.uint32), *rest))
        return rng
    return value


def _encode_labels(labels: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def _decode_labels(labels: dict[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(str(labels["dtype"]))
    if dtype.kind not in "biufUO" or len(labels["values"]) != 2:
        raise ValueError(f"labels {labels!r} are not two numbers or strings.")
    return np.array(labels["values"], dtype=dtype)
