"""Import scikit-learn without pandas and scipy.stats, to start commands faster.

scikit-learn imports scipy.stats, and pandas if it is installed. A short command needs
neither, and importing both takes about 1 of its 2 seconds. Here scikit-learn is
imported while pandas seems not to be installed, which it supports, and scipy.stats is
replaced by a module that loads the real one on first use. Both can be imported as usual
afterwards.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


def _import_later(name: str) -> None:
    """Import the module on first attribute access."""
    placeholder = ModuleType(name)

    def load(attribute: str) -> Any:
        if sys.modules[name] is placeholder:
            del sys.modules[name]
        return getattr(import_module(name), attribute)

    placeholder.__getattr__ = load  # type: ignore[method-assign]
    sys.modules[name] = placeholder


def import_scikit_learn() -> None:
    """Import the module of scikit-learn that imports both, without them."""
    if "scipy.stats" not in sys.modules:
        _import_later("scipy.stats")
    if "pandas" not in sys.modules:
        sys.modules["pandas"] = None  # type: ignore[assignment] # as if not installed
        try:
            import sklearn.utils.fixes  # noqa: F401
        finally:
            del sys.modules["pandas"]
