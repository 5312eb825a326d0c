"""Training and evaluation on a Dask cluster; rows stay on the workers.

::

    from aucmax import LeastSquaresAUC, cluster

    model = cluster.fit(LeastSquaresAUC(), X, y)  # Dask arrays or data frames
    model.save("model.aucmax")

With a ``dask.distributed.Client`` the work runs on its cluster, without one in Dask's
local threads. ``fit`` returns an ordinary estimator.
"""

try:
    import dask as _dask  # noqa: F401
except ImportError:
    raise ImportError("Clusters need Dask: pip install 'aucmax[cluster]'") from None

from aucmax.cluster.fitting import fit
from aucmax.cluster.scores import auc, auc_interval, decision_function

__all__ = ["auc", "auc_interval", "decision_function", "fit"]
