"""W. Gao, R. Jin, S. Zhu, Z.-H. Zhou: One-Pass AUC Optimization. ICML 2013."""

from aucmax_reproduction.groupings import Rule
from aucmax_reproduction.protocol import (
    PRINTED,
    TIMES,
    Grid,
    Picture,
    Plan,
    Protocol,
    Recipe,
    Subject,
    of_words,
    powers,
)
from aucmax_reproduction.protocols import sets
from aucmax_reproduction.splits import Folds

_ETA = Grid(powers(2.0, -12, 10))
_STEP = {"eta0": _ETA}
_BATCH_ROWS = 8000
# The penalty is λ/2 ‖w‖² with half the mean square, or λ ‖w‖² with the mean square.
_SQUARE_L2 = Grid(powers(2.0, -10, 2, 2.0))
_OPAUC = {**_STEP, "l2": _SQUARE_L2}


def _online(system: str, parameter: str = "eta0", **settings: object) -> Recipe:
    return Recipe(system, {parameter: _ETA}, settings, passes=1)


def _batch(system: str, factor: float = 1.0) -> Recipe:
    grid = {"l2": Grid(powers(2.0, -10, 10, factor))}
    return Recipe(system, grid, most_rows=_BATCH_ROWS)


_BENCHMARK = Plan(
    scaling="to [-1, 1]",
    split=Folds(5, 5),
    folds=5,
    reference="OPAUC",
    recipes={
        "OPAUC": Recipe("OPAUC", _OPAUC, passes=1),
        "OAMseq": _online("OAMseq", "C", buffer_size=100),
        "OAMgra": _online("OAMgra", "C", buffer_size=100),
        "Uni-Exp": _online("Uni-Exp"),
        "Uni-Log": _batch("Uni-Log"),
        "SVM-OR": _batch("SVM-OR"),
        "LS-SVM": _batch("LS-SVM", 2.0),
    },
    subjects={
        "diabetes": sets.DIABETES,
        "fourclass": sets.FOURCLASS,
        "german": sets.GERMAN,
        "splice": sets.SPLICE,
        "usps": sets.USPS,
        "letter": sets.LETTER,
        "magic04": Subject("magic04"),
        "a9a": sets.A9A,
        "w8a": sets.ABSENT,
        "kddcup04": sets.ABSENT,
        "mnist": sets.MNIST,
        "connect-4": Subject(
            "connect-4",
            unknown=True,
            cannot="three classes cannot be two groups of equal class count, and the "
            "paper does not say which",
        ),
        "acoustic": sets.ABSENT,
        "ijcnn1": sets.IJCNN1,
        "epsilon": sets.ABSENT,
        "covtype": sets.COVTYPE,
    },
)

_MANY_FEATURES = Plan(
    scaling="none",
    split=Folds(5, 5),
    folds=5,
    reference="OPAUCr",
    recipes=of_words(
        {
            "OPAUCr": Recipe("OPAUCr", _OPAUC, {"rank": 50}, passes=1),
            "OAMseq": _online("OAMseq", "C", buffer_size=50),
            "OAMgra": _online("OAMgra", "C", buffer_size=50),
            "Uni-Exp": _online("Uni-Exp"),
            "OPAUCf": Recipe("OPAUCf", _OPAUC, printed={"max_iter": 1}),
            "OPAUCrp": Recipe("OPAUCrp", _OPAUC, printed={"max_iter": 1}),
            "OPAUCpca": Recipe("OPAUCpca", _OPAUC, printed={"max_iter": 1}),
        }
    ),
    subjects={
        "sector": sets.SECTOR,
        "sector.lvr": Subject(
            "sector", rule=Rule("largest class", (5.0,)), merged=True
        ),
        "news20": sets.NEWS20,
        "news20.binary": sets.ABSENT,
        "rcv1v2": sets.ABSENT,
        "ecml2012": sets.ABSENT,
    },
)

PROTOCOL = Protocol(
    "gao2013-opauc",
    "W. Gao, R. Jin, S. Zhu, Z.-H. Zhou: One-Pass AUC Optimization. ICML 2013.",
    {"2": _BENCHMARK, "4": _MANY_FEATURES},
    unstated=(
        "Which classes make the two groups of usps, letter, mnist, connect-4, "
        "acoustic, covtype, sector and news20: they were drawn at random.",
        "Scaling of the sets of many features: none here.",
        "Whether folds are stratified: here they are.",
        "Whether features are scaled by all rows or by the training rows: here by the "
        "training rows.",
        "Which rate of OAM is tuned over 2^[-12:10]: here it is C.",
    ),
    pictures=(
        Picture(
            number="1",
            table="2",
            title="Seconds to train, as published",
            algorithms=("OPAUC", "OAMseq", "OAMgra", "Uni-Exp"),
            form=PRINTED,
            kind=TIMES,
        ),
        Picture(
            number="2",
            table="4",
            title="Seconds to train, as published",
            algorithms=tuple(_MANY_FEATURES.recipes),
            form=PRINTED,
            kind=TIMES,
        ),
        Picture(
            number="3",
            table="2",
            title="Influence of the step size",
            algorithms=("OPAUC",),
            parameter="eta0",
            values=_ETA.values[::2],
            form=PRINTED,
        ),
        Picture(
            number="4",
            table="2",
            title="Influence of the penalty",
            algorithms=("OPAUC",),
            parameter="l2",
            values=powers(2.0, -10, 10, 2.0)[::2],
            form=PRINTED,
        ),
        Picture(
            number="5",
            table="4",
            title="Influence of the rank",
            algorithms=("OPAUCr",),
            parameter="rank",
            values=(10, 20, 50, 100, 200),
        ),
        Picture("6", "2", "Influence of the iterations", ("OPAUC", "OAMseq", "OAMgra")),
    ),
)
