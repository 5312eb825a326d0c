"""M. Liu and others: Fast Stochastic AUC Maximization. ICML 2018."""

from aucmax_reproduction.groupings import Rule
from aucmax_reproduction.protocol import (
    Grid,
    Picture,
    Plan,
    Protocol,
    Recipe,
    Subject,
    powers,
)
from aucmax_reproduction.protocols import sets
from aucmax_reproduction.splits import Validated

_BALL = {"radius": Grid(powers(10.0, -5, 5)), "eta0": Grid(powers(2.0, -10, 10))}
_ALGORITHMS = ("FSAUC", "SOLAM", "SOLAM-L1", "OPAUC")

PROTOCOL = Protocol(
    "liu2018-fsauc",
    "M. Liu, X. Zhang, Z. Chen, X. Wang, T. Yang: Fast Stochastic AUC Maximization "
    "with O(1/n)-Convergence Rate. ICML 2018.",
    {
        "2": Plan(
            scaling="none",
            split=Validated(5),
            folds=0,
            recipes={
                "FSAUC": Recipe("FSAUC", _BALL, passes=1),
                "SOLAM": Recipe("SOLAM", _BALL, passes=1),
                "SOLAM-L1": Recipe("SOLAM-L1", _BALL, passes=1),
                "OPAUC": Recipe(
                    "OPAUC",
                    {
                        "eta0": Grid(powers(2.0, -12, -4)),
                        "l2": Grid(powers(2.0, -10, 0, 2.0)),
                    },
                    passes=1,
                ),
            },
            subjects={
                "a9a": Subject("a9a"),
                "ijcnn1": sets.IJCNN1,
                "covtype_binary": sets.COVTYPE_SAMPLE._replace(
                    rule=Rule("class 2", (2.0,)), scaling="to [-1, 1]"
                ),
                "higgs": Subject(
                    "higgs_sample",
                    merged=True,
                    cannot="7,500 of the 11,000,000 rows are here, rounded to three "
                    "decimals",
                ),
                "w8a": sets.ABSENT,
                "real-sim": sets.ABSENT,
                "rcv1_binary": sets.ABSENT,
                "news20.binary": sets.ABSENT,
            },
        )
    },
    unstated=(
        "Scaling: the files as they are distributed. Ours of covtype has raw values, "
        "on which no step size of the published algorithms has 0.60; LIBSVM has a "
        "scaled file, too, and here features are scaled to [-1, 1].",
        "Whether the 4:1:1 split is drawn anew for each of the five runs: here it is "
        "one split, and the order of the training rows is drawn.",
        "Which half of the test files of a9a and w8a is for validation.",
    ),
    pictures=(Picture("1-2", "2", "AUC against iterations and seconds", _ALGORITHMS),),
)
