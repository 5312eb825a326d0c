from contextlib import nullcontext

import pytest

try:
    import dask
except ImportError:  # all tests are skipped
    dask = None


@pytest.fixture(autouse=True)
def _in_this_process():
    """Run Dask in one thread, unless a test starts a cluster."""
    with dask.config.set(scheduler="sync") if dask else nullcontext():
        yield
