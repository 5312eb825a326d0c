"""Time BAM and BAMCV against scikit-learn's linear classifiers, and compare test AUC.

``python benchmarks/bench_bam.py``: training time of default models on 70 % of the rows,
AUC on the others. For cross-validation, 6 penalties and 3 folds each: BAMCV with the
squared hinge, with the logistic loss, and choosing between the two (raw covtype is left
out there: logistic regression takes too long). "standardised" are features of unit
variance; the others are raw. Real data are read from $AUCMAX_DATA or
../shared/data.
"""

import sys
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from aucmax import BAM, BAMCV
from aucmax.metrics import auc
from bench import Row, best_of, main, shared

FIT = {
    "BAM": BAM(),
    "BAM logistic": BAM(loss="logistic"),
    "LogisticRegression": LogisticRegression(),
    "LinearSVC": LinearSVC(dual=False),
}
CV = {
    "BAMCV hinge": BAMCV(6, cv=3, loss="squared_hinge"),
    "BAMCV logistic": BAMCV(6, cv=3, loss="logistic"),
    "BAMCV": BAMCV(6, cv=3),
    "LogisticRegressionCV": LogisticRegressionCV(Cs=6, cv=3, scoring="roc_auc"),
}


def data() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield the data sets: names, rows, labels."""
    for n, d in ((200_000, 54), (50_000, 300)):
        X, y = make_classification(
            n, d, n_informative=d // 3, weights=[0.9], flip_y=0.05, random_state=0
        )
        yield f"made, {n:,} x {d}", X, y
    for name in ("a9a.train", "covtype_sample"):
        found = shared(name, None)
        if found is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        X, y = found
        if name == "covtype_sample":
            dense, y = X.toarray(), (y == 2).astype(int)
            yield f"{name}, raw", dense, y
            yield f"{name}, standardised", StandardScaler().fit_transform(dense), y
        else:
            yield f"{name}, sparse", X, (y > 0).astype(int)


def run(repeat: int) -> list[Row]:
    """Return a row for each data set and model."""
    warnings.simplefilter("ignore")  # not converged: AUC is shown
    rows: list[Row] = []
    for name, X, y in data():
        split = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
        X_train, X_test, y_train, y_test = split
        for models, times in ((FIT, repeat), (CV, 1)):
            if models is CV and name.endswith("raw"):
                continue
            for model in models.values():
                if name.startswith("made, 200"):
                    model.fit(X_train[:500], y_train[:500])  # compile
            jobs = {
                key: partial(model.fit, X_train, y_train)
                for key, model in models.items()
            }
            seconds = best_of(times, jobs)
            rows += [
                {
                    "data": name,
                    "model": key,
                    "seconds": seconds[key],
                    "AUC": auc(y_test, model.decision_function(X_test)),
                }
                for key, model in models.items()
            ]
            for row in rows[-len(models) :]:
                print(row, file=sys.stderr)
    return rows


if __name__ == "__main__":
    main("BAM and scikit-learn", run, repeat=3)
