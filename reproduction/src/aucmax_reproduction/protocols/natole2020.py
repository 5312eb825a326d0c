"""M. Natole: Stochastic Optimization for AUC Maximization. PhD thesis, 2020."""

from aucmax_reproduction.protocol import (
    SHARE,
    Grid,
    Picture,
    Plan,
    Protocol,
    Recipe,
    Subject,
    powers,
)
from aucmax_reproduction.protocols import natole2018, sets
from aucmax_reproduction.protocols.natole2018 import REG_SOLAM, ROWS, SUBJECTS, spam
from aucmax_reproduction.splits import Folds, Holdout

_SPDAM = Recipe(
    "SPDAM",
    {"l2": Grid(powers(10.0, -5, 1, 2.0))},
    {"batch_size": 0.1},
    {"max_iter": 100},
)
_CHAPTER_5 = Plan(
    ROWS,
    Holdout(0.2, 25),
    5,
    {"SPDAM": _SPDAM, "regSOLAM": REG_SOLAM},
    SUBJECTS,
)
_THREE = {
    "regSOLAM": REG_SOLAM,
    "SPAM-L2": spam("SPAM-L2", l2=Grid(powers(10.0, -5, 1), SHARE)),
    "SPDAM": _SPDAM,
}
_BENCHMARK = Plan(
    ROWS,
    Folds(5, 5),
    5,
    _THREE,
    {
        **SUBJECTS,
        "alpha": sets.ABSENT,
        "beta": sets.ABSENT,
        "ionosphere": Subject("ionosphere"),
        "svmguide3": Subject("svmguide3", part="train"),
    },
)
_ANOMALIES = _BENCHMARK._replace(
    subjects={
        "arrhythmia": Subject("arrhythmia"),
        "australian": Subject("australian"),
        "breastw": Subject("breastw"),
        "cod-rna": Subject("cod-rna", note="9 features are stated, 8 are here"),
        "mammography": sets.ABSENT,
        "spambase": Subject("spambase"),
        "thyroid": Subject("thyroid"),
        "webspam": sets.ABSENT,
    },
)

PROTOCOL = Protocol(
    "natole2020-thesis",
    "M. Natole: Stochastic Optimization for AUC Maximization. PhD thesis, University "
    "at Albany, 2020.",
    {
        "4.2": natole2018.PLAN,
        "5.2": _CHAPTER_5,
        "6.3": _BENCHMARK,
        "6.4": _ANOMALIES,
    },
    # Same splits of the same rows, although the published values differ.
    same_fits={"3.2": "6.3"},
    unstated=(
        "Whether mean(x) is that of the row or of the feature: here it is the row's.",
        "How features are normalised in chapter 6: here as in chapter 3.",
        "The radius of regSOLAM: here √(2/l2).",
        "σ, τ, θ and the iterations of SPDAM: here those of its Theorem 5.1, and 100 "
        "passes.",
        *natole2018.UNSTATED[1:],
    ),
    pictures=(
        Picture("4.2", "4.2", "SPAM and regSOLAM", ("SPAM-L2", "regSOLAM")),
        Picture(
            number="5.1",
            table="5.2",
            title="SPDAM with batches of several sizes",
            algorithms=("SPDAM",),
            parameter="batch_size",
            values=(0.01, 0.05, 0.1, 0.2, 0.5),
        ),
        Picture(
            number="6.1",
            table="6.3",
            title="Influence of the penalty",
            algorithms=tuple(_THREE),
            parameter="l2",
            values=powers(10.0, -6, 1),
        ),
        Picture(
            number="6.2-6.4",
            table="6.3",
            title="AUC against iterations and seconds",
            algorithms=tuple(_THREE),
        ),
    ),
)
