"""Check that the workers have the same version of aucmax as the client."""

import sys
from typing import Any

import aucmax


def current_client() -> Any:
    """Return the default Dask client, or None if Dask runs in this process."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None  # a client needs the import
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _version() -> str:
    return aucmax.__version__


def check_versions() -> None:
    """Raise an error if a worker has another version of aucmax, or none."""
    client = current_client()
    if client is None:
        return
    for worker, found in client.run(_version, on_error="return").items():
        # Dask raises a plain Exception if the function cannot be unpickled.
        if isinstance(found, Exception) and "No module named 'aucmax" in str(found):
            raise RuntimeError(
                f"Worker {worker} has no aucmax ({found}): pip install "
                f"'aucmax[cluster]=={aucmax.__version__}' there."
            )
        if isinstance(found, Exception):
            raise found
        if found != aucmax.__version__:
            raise RuntimeError(
                f"Worker {worker} has aucmax {found}, but this process has "
                f"{aucmax.__version__}: install the same version on both."
            )
