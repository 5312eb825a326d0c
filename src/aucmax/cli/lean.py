"""scikit-learn without pandas, for commands that stream.

scikit-learn imports pandas wherever it is installed, and that imports Arrow: 60 MB that
a process has no use for which reads files by itself. Whoever wants pandas can still
import it afterwards.
"""

import sys


def import_scikit_learn() -> None:
    """Import what scikit-learn is made of, and not what happens to lie beside it."""
    if "pandas" in sys.modules or "sklearn" in sys.modules:
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        import sklearn.utils.fixes  # noqa: F401
    finally:
        del sys.modules["pandas"]
