"""Named data sets, and the rules for their positive class."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aucmax.io.datasets import load as load
    from aucmax.tables.labels import Task as Task

_PUBLIC = {"load": "aucmax.io.datasets", "Task": "aucmax.tables.labels"}
__all__ = ["Task", "load"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
