"""States of estimators: parameters, fitted attributes, feature names."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aucmax.storage.parameters import decode_estimator, encode_estimator, registered
from aucmax.storage.storable import Spec, State, check_arrays

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
