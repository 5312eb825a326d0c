"""How defaults were chosen: test AUC of the choices and of their alternatives.

``python benchmarks/choices.py JOB … [--repeat N] [--sets NAME …]``; repeats are splits.

penalty   Default penalties of BAM, SVMPerf and LeastSquaresAUC, on halves of at most
          3000 rows with raw features. "LR" is balanced logistic regression with C=1 on
          standardised features (raw ones of texts, which have more than 1000); other
          columns are differences from it in thousandths. Set ``_CROWD`` in
          ``aucmax.base.penalty`` to zero to remove the effect of many features.
defaults  SPAM and SOLAM with default step sizes. "optimum" is the closed form of the
          pairwise square loss; other columns are differences from it in thousandths.
          Step sizes were chosen by test AUC on sets that include ``CHOSEN_ON``; the
          sets of ``HELD_OUT`` had no part in it.
rare      Scales of rare features in ``fit``: the change of AUC, in thousandths, if each
          feature is assumed to occur in 2 or 5 more rows of either class. A number
          after the set is the rank of the positive class by size; otherwise the rarer
          half of the labels is positive. At most 20,000 rows.
kernel    Penalties of Nyström features, as factors of 1/n₊ + 1/n₋, of BAM and PSAM.
"""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax import (
    ASAM,
    BAM,
    CBR,
    OAM,
    OPAUC,
    PSAM,
    SOLAM,
    SPAM,
    KMeansNystroem,
    LeastSquaresAUC,
    SVMPerf,
    UniExp,
)
from aucmax.metrics import auc
from aucmax.online.engine.known_moments import fit_table
from bench import CHOSEN_ON, HELD_OUT, Options, Row, main, read, sampled, shared

PENALTY_SETS = (
    *("a9a.train", "arrhythmia", "australian", "breastw", "connect-4"),
    *("covtype_sample", "creditcard_sample", "diabetes", "farm-ads", "fourclass"),
    *("german", "glass", "heart", "higgs_sample.train", "ijcnn1.train", "ionosphere"),
    *("letter.train", "magic04", "mushrooms", "page-blocks", "phishing", "phoneme"),
    *("reuters_money.train", "sector.train", "spambase", "splice.train"),
    *("svmguide1.train", "svmguide3.train", "svmguide4.train", "thyroid"),
    *("usps.train", "vehicle"),
)
RARE_TASKS = (
    *("sector", "sector 0", "sector 20", "sector 60", "farm-ads", "reuters_money"),
    *("news20", "news20 0", "news20 10", "a9a", "mushrooms", "connect-4", "ijcnn1"),
)
RARE_LEARNERS = {
    **{"OAM": OAM(), "UniExp": UniExp(), "SOLAM": SOLAM(), "SPAM": SPAM()},
    **{"ASAM": ASAM(), "PSAM": PSAM(), "CBR-diag": CBR(covariance="diag")},
    "OPAUCr": OPAUC(rank=50),
}
PRIORS = (0.0, 2.0, 5.0)  # rows of either class
KERNEL_SETS = ("magic04", "ijcnn1", "spambase", "splice", "svmguide3", "german")
FACTORS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


def parts(X: Any, y: np.ndarray, seed: int, test: float = 0.3) -> list[Any]:
    """Return a random stratified split: X, X_test, y, y_test."""
    return train_test_split(X, y, test_size=test, stratify=y, random_state=seed)


def fitted_auc(model: Any, X: Any, X_test: Any, y: Any, y_test: Any) -> float:
    return float(auc(y_test, model.fit(X, y).decision_function(X_test)))


def means(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}


def differences(name: str, found: dict[str, float]) -> Row:
    """Return the first AUC, and the differences of the others in thousandths."""
    (first, base), *others = found.items()
    row: Row = {"data": name, first: base}
    return row | {key: round(1e3 * (value - base), 1) for key, value in others}


def penalty(options: Options) -> list[Row]:
    rows = []
    for name in options.sets or PENALTY_SETS:
        found = shared(name, None)
        if found is None:
            continue
        labels, counts = np.unique(found[1], return_counts=True)
        positive = labels[1] if len(labels) == 2 else labels[np.argmax(counts)]
        X, y = sampled(found[0], (found[1] == positive).astype(int), 3000)
        texts = X.shape[1] > 1000
        rival = LogisticRegression(class_weight="balanced", max_iter=1000)
        models = {
            "LR": rival if texts else make_pipeline(StandardScaler(), rival),
            "l2=1e-4": BAM(1e-4),
            "BAM": BAM(),
            "logistic": BAM(loss="logistic"),
            "exponential": BAM(loss="exponential"),
            "SVMPerf": SVMPerf(),
            "square": LeastSquaresAUC(),
        }
        X = X if texts else X.toarray()
        runs = []
        for seed in range(options.repeat):
            split = parts(X, y, seed, test=0.5)
            runs.append({key: fitted_auc(m, *split) for key, m in models.items()})
        rows.append(differences(name, means(runs)))
    columns, sets = list(rows[0])[2:], rows[:]
    for name, summary in (("mean", np.mean), ("median", np.median), ("least", np.min)):
        last = {key: summary([row[key] for row in sets]) for key in columns}
        rows.append({"data": name} | {k: round(float(v), 1) for k, v in last.items()})
    return rows


def defaults(options: Options) -> list[Row]:
    rows = []
    for name in options.sets or CHOSEN_ON + HELD_OUT:
        found = shared(name)
        if found is None:
            continue
        X, y = found[0].toarray(), found[1]
        for scaled in (True, False):
            runs = [_defaults(X, y, seed, scaled) for seed in range(options.repeat)]
            kind = "standardised" if scaled else "raw"
            rows.append(differences(f"{name}, {kind}", means(runs)))
    return rows


def _defaults(
    X: np.ndarray, y: np.ndarray, seed: int, scaled: bool
) -> dict[str, float]:
    X, X_test, y, y_test = parts(X, y, seed)
    scaler = StandardScaler().fit(X)
    unit, unit_test = scaler.transform(X), scaler.transform(X_test)
    if scaled:
        X, X_test = unit, unit_test
    split = X, X_test, y, y_test
    stream = SPAM().partial_fit(X, y)
    found = {
        "optimum": fitted_auc(LeastSquaresAUC(1e-4), *split),
        "SPAM, 1 pass": fitted_auc(SPAM(max_iter=1, random_state=seed), *split),
        "SPAM": fitted_auc(SPAM(random_state=seed), *split),
        "SPAM stream": float(auc(y_test, stream.decision_function(X_test))),
        "SOLAM": fitted_auc(SOLAM(random_state=seed), *split),
    }
    for key, balance in (("logistic", None), ("balanced", "balanced")):
        rival = LogisticRegression(class_weight=balance, max_iter=1000)
        found[key] = fitted_auc(rival, unit, unit_test, y, y_test)
    return found


def rare(options: Options) -> list[Row]:
    rows: list[Row] = []
    for task in options.sets or RARE_TASKS:
        name, _, rank = task.partition(" ")
        found = read(name) if not rank else _one_class(name, int(rank))
        if found is None:
            continue
        X, y = sampled(*found, 20_000)
        for key, learner in RARE_LEARNERS.items():
            runs = [_priors(learner, X, y, seed) for seed in range(options.repeat)]
            row = differences(task, means(runs))
            rows.append({"data": row.pop("data"), "learner": key, **row})
    return rows


def _one_class(name: str, rank: int) -> tuple[Any, np.ndarray] | None:
    """Return rows of a set, and which are of the class of this rank by size."""
    found = shared("sector.train" if name == "sector" else name, positive=None)
    if found is None:
        return None
    labels, counts = np.unique(found[1], return_counts=True)
    return found[0], found[1] == labels[np.argsort(-counts, kind="stable")[rank]]


def _priors(learner: Any, X: Any, y: np.ndarray, seed: int) -> dict[str, float]:
    split, found = parts(X, y, seed), {}
    usual = fit_table.__defaults__
    for prior in PRIORS:
        fit_table.__defaults__ = (prior,)
        model = clone(learner).set_params(random_state=seed)
        found[f"{prior:g} rows" if prior else "AUC"] = fitted_auc(model, *split)
    fit_table.__defaults__ = usual
    return found


def kernel(options: Options) -> list[Row]:
    rows = []
    for name in options.sets or KERNEL_SETS:
        found = read(name)
        if found is None:
            continue
        X, X_test, y, y_test = parts(found[0].toarray(), found[1], 0)
        nystroem = KMeansNystroem(800, random_state=0).fit(X)
        F, F_test = (nystroem.features(part, np.float32) for part in (X, X_test))
        unit = 1.0 / y.sum() + 1.0 / (~y).sum()
        for kind in (BAM, PSAM):
            row: Row = {"data": name, "learner": kind.__name__}
            for factor in FACTORS:
                model = kind(factor * unit)
                row[f"{factor:g}"] = fitted_auc(model, F, F_test, y, y_test)
            rows.append(row)
    return rows


if __name__ == "__main__":
    jobs = {"penalty": penalty, "defaults": defaults, "rare": rare, "kernel": kernel}
    main(__doc__, jobs)
