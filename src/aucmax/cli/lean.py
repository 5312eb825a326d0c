"""scikit-learn without pandas and scipy.stats, for commands that are to start fast.

scikit-learn imports pandas wherever it is installed, and pandas imports Arrow: that
takes a quarter of the processor time of a short ``aucmax train``, and 60 MB. Both can
still be imported afterwards. scipy.stats takes as long, for a function that is hardly
ever called: it is loaded when somebody looks into it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any


class _NotInstalled(MetaPathFinder):
    """An import hook that finds a package missing, as where it is not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, *_: Any) -> None:
        if name == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def _without(package: str) -> Iterator[None]:
    hook = _NotInstalled(package)
    sys.meta_path.insert(0, hook)
    try:
        yield
    finally:
        sys.meta_path.remove(hook)


def _import_later(name: str) -> None:
    """Let the module be imported when somebody looks into it."""
    later = ModuleType(name)

    def look(attribute: str) -> Any:
        if sys.modules[name] is later:
            del sys.modules[name]
        return getattr(import_module(name), attribute)

    later.__getattr__ = look  # type: ignore[method-assign]
    sys.modules[name] = later


def import_scikit_learn() -> None:
    """Import the part of scikit-learn that would import both, without them."""
    if "scipy.stats" not in sys.modules:
        _import_later("scipy.stats")
    if "pandas" not in sys.modules:
        with _without("pandas"):
            import sklearn.utils.fixes  # noqa: F401
