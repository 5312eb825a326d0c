import pytest

pytest.importorskip("dask", reason="Dask is not installed: pip install aucmax[cluster]")
pytest.importorskip(
    "distributed", reason="distributed is not installed: pip install aucmax[cluster]"
)

import dask


@pytest.fixture(autouse=True)
def _in_this_process():
    """Have Dask work in one thread, unless a test has a cluster."""
    with dask.config.set(scheduler="sync"):
        yield
