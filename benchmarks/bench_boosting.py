"""LightGBM with the all-pairs squared hinge against its binary objective, in test AUC.

``python benchmarks/bench_boosting.py --repeat 3``: random 70/30 splits of a9a, mean and
standard deviation over splits, for each learning rate and number of trees. Data are
read from $AUCMAX_DATA or ../shared/data; needs LightGBM.
"""

from time import perf_counter

import lightgbm
import numpy as np
from sklearn.model_selection import train_test_split

from aucmax.losses import lightgbm_objective
from aucmax.metrics import auc
from bench import Row, main, shared

ROUNDS = (50, 100, 200)


def run(repeat: int) -> list[Row]:
    """Return a row for each learning rate and objective."""
    found = shared("a9a.train")
    assert found is not None, "a9a.train is not there"
    X, y = found
    rows: list[Row] = []
    objectives = {
        "binary": "binary",
        "squared hinge": lightgbm_objective(),
        "logistic": lightgbm_objective("logistic"),
    }
    for rate in (0.05, 0.1):
        for name, objective in objectives.items():
            areas = []
            start = perf_counter()
            for seed in range(repeat):
                A, B, a, b = train_test_split(
                    X, y, test_size=0.3, random_state=seed, stratify=y
                )
                options = {
                    "objective": objective,
                    "learning_rate": rate,
                    "verbosity": -1,
                    "seed": seed,
                    "num_threads": 2,
                }
                model = lightgbm.train(options, lightgbm.Dataset(A, a), ROUNDS[-1])
                areas.append(
                    [auc(b, model.predict(B, num_iteration=k)) for k in ROUNDS]
                )
            table = np.array(areas)
            row: Row = {"data": "a9a", "rate": rate, "objective": name}
            for k, column in zip(ROUNDS, table.T, strict=True):
                row[f"{k} trees"] = f"{column.mean():.4f} ± {column.std(ddof=1):.4f}"
            row["seconds"] = (perf_counter() - start) / repeat
            rows.append(row)
    return rows


if __name__ == "__main__":
    main("LightGBM, test AUC", run, repeat=3)
