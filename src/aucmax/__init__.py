"""Linear rankers that maximise AUC, with scikit-learn's interface.

Every name below is imported on first use, so that ``import aucmax`` costs next to
nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aucmax import cluster as cluster
    from aucmax import data as data
    from aucmax import losses as losses
    from aucmax import metrics as metrics
    from aucmax.batch.bam import BAM as BAM
    from aucmax.batch.bam_cv import BAMCV as BAMCV
    from aucmax.batch.kernel_bam import KernelBAM as KernelBAM
    from aucmax.batch.kernel_cv import KernelAUCCV as KernelAUCCV
    from aucmax.batch.leastsquares import LeastSquaresAUC as LeastSquaresAUC
    from aucmax.batch.leastsquares_cv import LeastSquaresAUCCV as LeastSquaresAUCCV
    from aucmax.batch.mba import MBA as MBA
    from aucmax.batch.spdam import SPDAM as SPDAM
    from aucmax.batch.svmperf import SVMPerf as SVMPerf
    from aucmax.core.moments import Moments as Moments
    from aucmax.features.chain import Chain as Chain
    from aucmax.features.fourier import RandomFourier as RandomFourier
    from aucmax.features.nystroem import KMeansNystroem as KMeansNystroem
    from aucmax.features.projection import Projection as Projection
    from aucmax.front.classifier import AUCClassifier as AUCClassifier
    from aucmax.front.stream import AUCStream as AUCStream
    from aucmax.model import load as load
    from aucmax.online.adaoam import AdaOAM as AdaOAM
    from aucmax.online.cbr import CBR as CBR
    from aucmax.online.fsauc import FSAUC as FSAUC
    from aucmax.online.oam import OAM as OAM
    from aucmax.online.opauc import OPAUC as OPAUC
    from aucmax.online.solam import SOLAM as SOLAM
    from aucmax.online.spam import SPAM as SPAM
    from aucmax.online.uniexp import UniExp as UniExp
    from aucmax.stochastic.asam import ASAM as ASAM
    from aucmax.stochastic.asam import SAM as SAM
    from aucmax.stochastic.psam import PSAM as PSAM
    from aucmax.stochastic.svrg import SVRGAUC as SVRGAUC
    from aucmax.systems import named as named

__version__ = "0.1.0"

# The estimators: what a model file may name, and what the contract tests run through.
ESTIMATORS = {
    "SPAM": "aucmax.online.spam",
    "SOLAM": "aucmax.online.solam",
    "FSAUC": "aucmax.online.fsauc",
    "OPAUC": "aucmax.online.opauc",
    "AdaOAM": "aucmax.online.adaoam",
    "UniExp": "aucmax.online.uniexp",
    "SAM": "aucmax.stochastic.asam",
    "ASAM": "aucmax.stochastic.asam",
    "PSAM": "aucmax.stochastic.psam",
    "OAM": "aucmax.online.oam",
    "CBR": "aucmax.online.cbr",
    "SVRGAUC": "aucmax.stochastic.svrg",
    "SPDAM": "aucmax.batch.spdam",
    "MBA": "aucmax.batch.mba",
    "BAM": "aucmax.batch.bam",
    "BAMCV": "aucmax.batch.bam_cv",
    "SVMPerf": "aucmax.batch.svmperf",
    "LeastSquaresAUC": "aucmax.batch.leastsquares",
    "LeastSquaresAUCCV": "aucmax.batch.leastsquares_cv",
    "KernelBAM": "aucmax.batch.kernel_bam",
    "KernelAUCCV": "aucmax.batch.kernel_cv",
    "Chain": "aucmax.features.chain",
    "AUCStream": "aucmax.front.stream",
    "AUCClassifier": "aucmax.front.classifier",
}

# Maps to the features that a Chain learns from.
MAPS = {
    "KMeansNystroem": "aucmax.features.nystroem",
    "RandomFourier": "aucmax.features.fourier",
    "Projection": "aucmax.features.projection",
}

# What else a model file may name: members of an AUCClassifier.
PARTS = {
    "BoostedTrees": "aucmax.front.trees",
    "RandomizedTrees": "aucmax.front.trees",
    "Frequent": "aucmax.front.frequent",
}

_PUBLIC = {
    **ESTIMATORS,
    **MAPS,
    "Moments": "aucmax.core.moments",
    "load": "aucmax.model",
    "named": "aucmax.systems",
}
_MODULES = ("cluster", "data", "losses", "metrics")
# An extra that may be missing must not break ``from aucmax import *``.
__all__ = [*_PUBLIC, *(name for name in _MODULES if name != "cluster")]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"aucmax.{name}")
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, *_MODULES, "__version__"])
