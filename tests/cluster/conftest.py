from contextlib import nullcontext

import pytest

try:
    import dask
except ImportError:  # all tests are skipped, and say so
    dask = None


@pytest.fixture(autouse=True)
def _in_this_process():
    """Have Dask work in one thread, unless a test has a cluster."""
    with dask.config.set(scheduler="sync") if dask else nullcontext():
        yield
