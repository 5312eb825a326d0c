"""scikit-learn without pandas, for commands that read files by themselves.

scikit-learn imports pandas wherever it is installed, and pandas imports Arrow: that
takes a quarter of the processor time of a short ``aucmax train``, and 60 MB. Both can
still be imported afterwards.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
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


def import_scikit_learn() -> None:
    """Import the part of scikit-learn that would import pandas, without it."""
    if "pandas" not in sys.modules:
        with _without("pandas"):
            import sklearn.utils.fixes  # noqa: F401
