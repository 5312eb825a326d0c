"""The same models from rows that are spread over a Dask cluster.

::

    from aucmax import LeastSquaresAUC, cluster

    model = cluster.fit(LeastSquaresAUC(), X, y)  # Dask arrays or data frames
    model.save("model.aucmax")

Whoever has a ``dask.distributed.Client`` has the workers of its cluster do it; without
one, Dask's threads do. What comes back is an ordinary estimator.
"""

try:
    import dask as _dask  # noqa: F401
except ImportError:
    raise ImportError("Clusters need Dask: pip install 'aucmax[cluster]'") from None

from aucmax.cluster.files import fit_files
from aucmax.cluster.fitting import fit
from aucmax.cluster.metrics import auc, auc_interval, decision_function

__all__ = ["auc", "auc_interval", "decision_function", "fit", "fit_files"]
