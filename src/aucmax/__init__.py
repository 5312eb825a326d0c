"""AUC maximisation for tables and streams, with scikit-learn's interface.

Public names are imported on first use, so that ``import aucmax`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aucmax import cluster as cluster
    from aucmax import losses as losses
    from aucmax import metrics as metrics
    from aucmax.blend.classifier import AUCClassifier as AUCClassifier
    from aucmax.kernel.chain import Chain as Chain
    from aucmax.kernel.fourier import RandomFourier as RandomFourier
    from aucmax.kernel.kernel_bam import KernelBAM as KernelBAM
    from aucmax.kernel.kernel_cv import KernelAUCCV as KernelAUCCV
    from aucmax.kernel.nystroem import KMeansNystroem as KMeansNystroem
    from aucmax.kernel.projection import Projection as Projection
    from aucmax.linear.bam import BAM as BAM
    from aucmax.linear.bam_cv import BAMCV as BAMCV
    from aucmax.linear.least_squares import LeastSquaresAUC as LeastSquaresAUC
    from aucmax.linear.least_squares import LeastSquaresAUCCV as LeastSquaresAUCCV
    from aucmax.linear.mba import MBA as MBA
    from aucmax.linear.solvers.covariances import Moments as Moments
    from aucmax.linear.svmperf import SVMPerf as SVMPerf
    from aucmax.online.adaoam import AdaOAM as AdaOAM
    from aucmax.online.cbr import CBR as CBR
    from aucmax.online.fsauc import FSAUC as FSAUC
    from aucmax.online.oam import OAM as OAM
    from aucmax.online.opauc import OPAUC as OPAUC
    from aucmax.online.psam import ASAM as ASAM
    from aucmax.online.psam import PSAM as PSAM
    from aucmax.online.psam import SAM as SAM
    from aucmax.online.solam import SOLAM as SOLAM
    from aucmax.online.spam import SPAM as SPAM
    from aucmax.online.spdam import SPDAM as SPDAM
    from aucmax.online.svrg import SVRGAUC as SVRGAUC
    from aucmax.online.uniexp import UniExp as UniExp
    from aucmax.registry import named as named
    from aucmax.stream.auc_stream import AUCStream as AUCStream
    from aucmax.workflows.models import load as load

__version__ = "0.2.0"

# Estimators: allowed in model files, and run through all contract tests.
ESTIMATORS = {
    "SPAM": "aucmax.online.spam",
    "SOLAM": "aucmax.online.solam",
    "FSAUC": "aucmax.online.fsauc",
    "OPAUC": "aucmax.online.opauc",
    "AdaOAM": "aucmax.online.adaoam",
    "UniExp": "aucmax.online.uniexp",
    "SAM": "aucmax.online.psam",
    "ASAM": "aucmax.online.psam",
    "PSAM": "aucmax.online.psam",
    "OAM": "aucmax.online.oam",
    "CBR": "aucmax.online.cbr",
    "SVRGAUC": "aucmax.online.svrg",
    "SPDAM": "aucmax.online.spdam",
    "MBA": "aucmax.linear.mba",
    "BAM": "aucmax.linear.bam",
    "BAMCV": "aucmax.linear.bam_cv",
    "SVMPerf": "aucmax.linear.svmperf",
    "LeastSquaresAUC": "aucmax.linear.least_squares",
    "LeastSquaresAUCCV": "aucmax.linear.least_squares",
    "KernelBAM": "aucmax.kernel.kernel_bam",
    "KernelAUCCV": "aucmax.kernel.kernel_cv",
    "Chain": "aucmax.kernel.chain",
    "AUCStream": "aucmax.stream.auc_stream",
    "AUCClassifier": "aucmax.blend.classifier",
}

# Feature maps for Chain.
MAPS = {
    "KMeansNystroem": "aucmax.kernel.nystroem",
    "RandomFourier": "aucmax.kernel.fourier",
    "Projection": "aucmax.kernel.projection",
}

# Other classes allowed in model files: members of AUCClassifier.
PARTS = {
    "BoostedTrees": "aucmax.blend.boosting",
    "TargetEncoded": "aucmax.blend.target_encoded",
}

_PUBLIC = {
    **ESTIMATORS,
    **MAPS,
    "Moments": "aucmax.linear.solvers.covariances",
    "load": "aucmax.workflows.models",
    "named": "aucmax.registry",
}
_MODULES = ("cluster", "goals", "losses", "metrics", "report", "thresholds")
# ``cluster`` needs an optional extra: ``from aucmax import *`` must work without it.
__all__ = [*_PUBLIC, *(name for name in _MODULES if name != "cluster")]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"aucmax.{name}")
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, *_MODULES, "__version__"])
