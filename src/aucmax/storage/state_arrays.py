"""The state of a learner as named arrays: it is a NamedTuple, possibly nested."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray


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
