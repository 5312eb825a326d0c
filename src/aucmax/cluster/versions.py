"""Whether workers can do what they are asked: the same version of this library."""

import sys
from typing import Any

import aucmax


def client() -> Any:
    """Return the client of the cluster at hand; None if Dask works in this process."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None  # who has not imported it has no cluster
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _version() -> str:
    return aucmax.__version__


def check_versions() -> None:
    """Raise an error if a worker has another version of aucmax, or none."""
    here = client()
    if here is None:
        return
    for worker, found in here.run(_version, on_error="return").items():
        # Dask makes a plain Exception of what fails before the function is known.
        if isinstance(found, Exception) and "No module named 'aucmax" in str(found):
            raise RuntimeError(
                f"Worker {worker} has no aucmax ({found}): pip install "
                f"'aucmax[cluster]=={aucmax.__version__}' there."
            )
        if isinstance(found, Exception):
            raise found
        if found != aucmax.__version__:
            raise RuntimeError(
                f"Worker {worker} has aucmax {found}, and this process has "
                f"{aucmax.__version__}: they must be the same."
            )
