"""Registry of the published systems and of all estimators by name.

Each of the 41 systems that the five papers name is a class of this library with
settings, or a chain of two. Buffer sizes, ranks, numbers of landmarks and the rule for
the kernel width are those of the papers; penalties and step sizes are our defaults,
which need no tuning. ``printed=True`` gives the pseudo-code as published, with
corrections, where it differs; its penalties and step sizes are plain numbers, which the
papers tune. docs/algorithms.md lists the corrections.
"""

from difflib import get_close_matches
from inspect import signature
from typing import Any, NamedTuple

import aucmax

GAO, KHALID = "gao2013-opauc", "khalid2019-dissertation"
LIU, NATOLE, THESIS = "liu2018-fsauc", "natole2018-spam", "natole2020-thesis"

Settings = dict[str, Any]
_Part = tuple[str, Settings]  # class name and settings


class System(NamedTuple):
    """A published system: a learner, and a feature map if it has one."""

    name: str
    papers: tuple[str, ...]
    minimises: str
    cost: str
    learner: _Part
    map: _Part | None = None
    printed: Settings = {}  # of the learner, where the pseudo-code differs  # noqa: RUF012

    def settings(self) -> str:
        """Return the expression that creates it."""
        learner = _written(*self.learner)
        return f"Chain({_written(*self.map)}, {learner})" if self.map else learner


def _written(kind: str, settings: Settings) -> str:
    return f"{kind}({', '.join(f'{key}={value!r}' for key, value in settings.items())})"


_SQUARE = "pairwise square loss"
_HINGE = "pairwise hinge loss"
_SQUARED_HINGE = "pairwise squared hinge loss"

_STREAM: Settings = {"schedule": "printed", "precondition": False}
_LAST: Settings = {**_STREAM, "average": False}
_EXPLICIT: Settings = {"step": "explicit"}
_SPAM_PRINTED: Settings = {
    **_LAST,
    **_EXPLICIT,
    "l2": 1e-4,
    "eta0": 1.0,
    "max_iter": 1,
    "shuffle": False,
}
_SOLAM_PRINTED: Settings = {**_STREAM, **_EXPLICIT, "eta0": 10.0}
_OPAUC_PRINTED: Settings = {**_LAST, **_EXPLICIT, "l2": 1e-4, "eta0": 2.0**-8}
_SAM_PRINTED: Settings = {**_STREAM, "l2": 1e-7, "eta0": 1.0}
_OAM_PRINTED: Settings = {**_LAST, "C": 1.0}
_CBR_PRINTED: Settings = {**_STREAM, "C": 1.0, "step": 1.0}
_UNIEXP_PRINTED: Settings = {**_LAST, **_EXPLICIT, "eta0": 2.0**-4}

# Landmark features without a penalty must not be scaled up.
_RAW: Settings = {"C": 100.0, "precondition": False}
_LANDMARKS: _Part = ("KMeansNystroem", {"n_components": 1600})
_COSINES: _Part = ("RandomFourier", {"n_components": 1600})
_SINES: _Part = ("RandomFourier", {"n_components": 150, "kind": "sincos"})
_BUFFER = "O(buffer · d) a row"
_FULL = "O(buffer · d²) a row"


def _oam(update: str, **more: Any) -> _Part:
    return "OAM", {"update": update, "buffer_size": 100, "policy": "reservoir", **more}


def _cbr(policy: str, **more: Any) -> _Part:
    return "CBR", {"policy": policy, "buffer_size": 50, "confidence": 0.7, **more}


def _projected(kind: str) -> _Part:
    return "Projection", {"n_components": 1000, "kind": kind}


_ALL = (GAO, KHALID, LIU, NATOLE, THESIS)
SYSTEMS = {
    system.name: system
    for system in (
        System("SPAM-L2", (NATOLE, THESIS), _SQUARE, "O(d) a row", ("SPAM", {}), printed=_SPAM_PRINTED),
        System("SPAM-NET", (NATOLE, THESIS), f"{_SQUARE} + l1", "O(d) a row", ("SPAM", {"l1": 1e-3}), printed=_SPAM_PRINTED),
        System("SOLAM", (KHALID, LIU, NATOLE), _SQUARE, "O(d) a row", ("SOLAM", {}), printed=_SOLAM_PRINTED),
        System("SOLAM-L1", (LIU,), f"{_SQUARE} in an l1 ball", "O(d) a row", ("SOLAM", {"norm": "l1"}), printed=_SOLAM_PRINTED),
        System("regSOLAM", (THESIS,), _SQUARE, "O(d) a row", ("SOLAM", {"radius": None, "l2": 1e-3}), printed=_SOLAM_PRINTED),
        System("FSAUC", (LIU,), _SQUARE, "O(d) a row", ("FSAUC", {}), printed={**_STREAM, **_EXPLICIT, "eta0": 1.0}),
        System("OPAUC", _ALL, _SQUARE, "O(d²) a row", ("OPAUC", {}), printed=_OPAUC_PRINTED),
        System("OPAUCr", (GAO, KHALID), _SQUARE, "O(rank · d) a row", ("OPAUC", {"rank": 50}), printed=_OPAUC_PRINTED),
        System("OPAUCf", (GAO,), _SQUARE, "O(1000²) a row", ("OPAUC", {}), _projected("select"), _OPAUC_PRINTED),
        System("OPAUCrp", (GAO,), _SQUARE, "O(1000 (d + 1000)) a row", ("OPAUC", {}), _projected("random"), _OPAUC_PRINTED),
        System("OPAUCpca", (GAO,), _SQUARE, "O(1000 (d + 1000)) a row", ("OPAUC", {}), _projected("pca"), _OPAUC_PRINTED),
        System("AdaOAM", (KHALID,), _SQUARE, "O(d²) a row", ("AdaOAM", {}), printed={**_LAST, "l2": 1e-4, "eta0": 2.0**-4}),
        System("OAMseq", (GAO, KHALID, NATOLE, THESIS), _HINGE, _BUFFER, _oam("seq"), printed=_OAM_PRINTED),
        System("OAMgra", (GAO, KHALID, NATOLE, THESIS), _HINGE, _BUFFER, _oam("gra"), printed=_OAM_PRINTED),
        System("CBR-RS", (KHALID,), _HINGE, _FULL, _cbr("reservoir"), printed=_CBR_PRINTED),
        System("CBR-FIFO", (KHALID,), _HINGE, _FULL, _cbr("fifo"), printed=_CBR_PRINTED),
        System("CBR-diag-FIFO", (KHALID,), _HINGE, _BUFFER, _cbr("fifo", covariance="diag", precondition=False), printed=_CBR_PRINTED),
        System("Uni-Exp", (GAO, KHALID), "exponential loss of rows, classes balanced", "O(d) a row", ("UniExp", {}), printed=_UNIEXP_PRINTED),
        System("Uni-Log", (GAO,), "logistic loss of rows, classes balanced", "O(n d) a Newton step", ("BAM", {"loss": "balanced_logistic"})),
        System("LS-SVM", (GAO, NATOLE, THESIS), _SQUARE, "O(n d²)", ("LeastSquaresAUC", {})),
        System("SVM-OR", (GAO, THESIS), _HINGE, "O(n d) a cutting plane", ("SVMPerf", {})),
        System("SVM-perf", (GAO, THESIS), _HINGE, "O(n d) a cutting plane", ("SVMPerf", {})),
        System("SPDAM", (THESIS,), _SQUARE, "O(n d) a pass", ("SPDAM", {}), printed={"l2": 1e-3, "schedule": "printed"}),
        System("ASAM", (KHALID,), _HINGE, "O(d) a pair", ("ASAM", {}), printed=_SAM_PRINTED),
        System("PSAM", (KHALID,), _HINGE, "O(d) a pair", ("PSAM", {}), printed=_SAM_PRINTED),
        System("BAM", (KHALID,), _SQUARED_HINGE, "O(n d) a Newton step", ("BAM", {})),
        System("RankSVM", (KHALID,), _SQUARED_HINGE, "O(n d) a Newton step", ("BAM", {})),
        System("RBF-RankSVM", (KHALID,), _SQUARED_HINGE, "O(n³), O(n²) memory", ("KernelBAM", {})),
        System("RBF-RankSVM-sub", (KHALID,), _SQUARED_HINGE, "O(n³/125), O(n²/25) memory", ("KernelBAM", {"subsample": 0.2})),
        System("NBAM", (KHALID,), _SQUARED_HINGE, "O(n m) a Newton step, m = 1600", ("BAM", {}), _LANDMARKS),
        System("FBAM", (KHALID,), _SQUARED_HINGE, "O(n m) a Newton step, m = 1600", ("BAM", {}), _COSINES),
        System("NSOLAM", (KHALID,), _SQUARE, "O(m²) a row, m = 1600", ("SOLAM", {"l2": 1e-5}), _LANDMARKS, {**_SOLAM_PRINTED, "l2": 0.0}),
        System("NOAMseq", (KHALID,), _HINGE, "O(m²) a row, m = 1600", _oam("seq", **_RAW), _LANDMARKS, _OAM_PRINTED),
        System("NOAMgra", (KHALID,), _HINGE, "O(m²) a row, m = 1600", _oam("gra", **_RAW), _LANDMARKS, _OAM_PRINTED),
        System("NSAM", (KHALID,), _HINGE, "O(m²) a row, m = 1600", ("SAM", {"max_iter": 15}), _LANDMARKS, _SAM_PRINTED),
        System("NASAM", (KHALID,), _HINGE, "O(m²) a row, m = 1600", ("ASAM", {"max_iter": 15}), _LANDMARKS, _SAM_PRINTED),
        System("NPSAM", (KHALID,), _HINGE, "O(m²) a row, m = 1600", ("PSAM", {"max_iter": 15}), _LANDMARKS, _SAM_PRINTED),
        System("FASAM", (KHALID,), _HINGE, "O(m d) a row, m = 1600", ("ASAM", {"max_iter": 15}), _COSINES, _SAM_PRINTED),
        System("FOAM", (KHALID,), _HINGE, "O(m (d + buffer)) a row, m = 300", _oam("seq"), _SINES, _OAM_PRINTED),
        System("FCBR-RS", (KHALID,), _HINGE, "O(m² buffer) a row, m = 300", _cbr("reservoir", C=0.1, step=0.5, precondition=False), _SINES, {**_STREAM, "C": 1.0, "step": 0.5}),
        System("FCBR-FIFO", (KHALID,), _HINGE, "O(m² buffer) a row, m = 300", _cbr("fifo", C=0.1, step=0.5, precondition=False), _SINES, {**_STREAM, "C": 1.0, "step": 0.5}),
    )
}  # fmt: skip


CLASSES = [name for name in aucmax.ESTIMATORS if name != "Chain"]  # it needs parts

# Settings of the pseudo-code for classes whose name is not that of a system.
PRINTED: dict[str, Settings] = {
    "SPAM": _SPAM_PRINTED,
    "OAM": {**_OAM_PRINTED, "policy": "reservoir"},
    "CBR": _CBR_PRINTED,
    "UniExp": _UNIEXP_PRINTED,
    "SAM": _SAM_PRINTED,
    "SVRGAUC": {"l2": 1e-4, "schedule": "printed", "tol": 0.0},
}

_MINIMUM = "The paper defines it by its objective, and both find the minimum."
_SAMPLE = "The steps are those of the paper; only penalty and number of pairs differ."
_NO_PAPER = "It has no published pseudo-code."
# Names whose published form equals the default one, and why.
SAME = {
    **dict.fromkeys(("Uni-Log", "LS-SVM", "SVM-OR", "SVM-perf"), _MINIMUM),
    **dict.fromkeys(("BAM", "RankSVM"), _MINIMUM),
    **dict.fromkeys(("RBF-RankSVM", "RBF-RankSVM-sub", "NBAM", "FBAM"), _MINIMUM),
    **dict.fromkeys(("SVMPerf", "LeastSquaresAUC", "KernelBAM"), _MINIMUM),
    "MBA": _SAMPLE,
    **dict.fromkeys(("BAMCV", "LeastSquaresAUCCV", "KernelAUCCV"), _NO_PAPER),
    **dict.fromkeys(("AUCStream", "AUCClassifier"), _NO_PAPER),
}


def named(name: str, *, printed: bool = False, **parameters: Any) -> Any:
    """Create an estimator by its name in the papers or in this library.

    Parameters
    ----------
    name : str
        A name from the papers, such as "NPSAM", "OPAUCr" or "CBR-diag-FIFO", or a
        class of this library. Case is ignored. ``aucmax.registry.SYSTEMS`` has the
        names of the papers.
    printed : bool, default=False
        Take the steps of the published pseudo-code, with corrections (listed in
        docs/algorithms.md): the learner does not scale features, and penalties and step
        sizes are plain numbers, which have to be tuned. A feature map still scales its
        input, unless ``scale="none"``. It makes no difference for the names in
        ``aucmax.registry.SAME``, which gives the reasons.
    **parameters
        Parameters of the estimator or of its parts: ``n_components=400`` and
        ``map__n_components=400`` are the same.

    Returns
    -------
    estimator
        An unfitted estimator.

    Examples
    --------
    >>> import aucmax
    >>> aucmax.named("CBR-RS").buffer_size
    50
    >>> aucmax.named("NPSAM", n_components=100, random_state=0).map.n_components
    100
    """
    name = full_name(name)
    system = SYSTEMS.get(name)
    if system is None:
        settings = PRINTED.get(name, {}) if printed else {}
        estimator = getattr(aucmax, name)(**settings)
    else:
        kind, settings = system.learner
        settings = {**settings, **(system.printed if printed else {})}
        estimator = getattr(aucmax, kind)(**settings)
        if system.map is not None:
            kind, settings = system.map
            estimator = aucmax.Chain(getattr(aucmax, kind)(**settings), estimator)
    return configured(estimator, parameters)


def full_name(name: str) -> str:
    """Return the name in its usual spelling, or raise an error with similar names."""
    known = {full.lower(): full for full in (*CLASSES, *SYSTEMS)}
    if name.lower() not in known:
        near = get_close_matches(name.lower(), known, n=4, cutoff=0.5)
        names = ", ".join(known[key] for key in near or known)
        hint = f"Did you mean {names}?" if near else f"Known algorithms: {names}."
        raise ValueError(
            f"There is no algorithm {name!r}. {hint} See docs/algorithms.md."
        )
    return known[name.lower()]


def configured(estimator: Any, parameters: Settings) -> Any:
    """Set parameters of an estimator, or of the parts that have them."""
    known = estimator.get_params()
    for key, value in parameters.items():
        owners = [key] if key in known else []
        owners = owners or [one for one in known if one.endswith(f"__{key}")]
        if not owners:
            plain = signature(type(estimator)).parameters
            names = known if "map" in plain else plain
            raise ValueError(
                f"{type(estimator).__name__} has no parameter {key!r}. It has "
                f"{', '.join(names)}."
            )
        if len(owners) > 1 and key != "random_state":
            raise ValueError(f"{key!r} is ambiguous: use {' or '.join(owners)}.")
        estimator.set_params(**dict.fromkeys(owners, value))
    return estimator
