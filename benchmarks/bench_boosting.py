"""LightGBM with the all-pairs losses against its binary objective, in test AUC.

``python benchmarks/bench_boosting.py --repeat 5``: random 70/30 splits, for each
learning rate and number of trees the mean AUC of the binary objective, and by how many
thousandths ours is above it, with the 95 % interval of the corrected resampled t-test
(Nadeau and Bengio) over the splits. Data are read from $AUCMAX_DATA or ../shared/data;
needs LightGBM.
"""

import sys
from time import perf_counter
from typing import Any

import lightgbm
import numpy as np
from sklearn.model_selection import train_test_split

from aucmax.losses import lightgbm_objective
from aucmax.metrics import auc
from aucmax.workflows.compare import corrected_t
from bench import Row, main, shared

SETS = ("a9a.train", "ijcnn1.train", "aloi_ad", "creditcard_sample")
ROUNDS = (50, 100, 200)
TEST = 0.3


def areas(
    X: Any, y: np.ndarray, objective: Any, rate: float, repeat: int
) -> np.ndarray:
    """Return test AUC for each split and number of trees."""
    found = []
    for seed in range(repeat):
        A, B, a, b = train_test_split(
            X, y, test_size=TEST, random_state=seed, stratify=y
        )
        options = {
            "objective": objective,
            "learning_rate": rate,
            "verbosity": -1,
            "seed": seed,
            "num_threads": 1,  # then sums are in one order
        }
        model = lightgbm.train(options, lightgbm.Dataset(A, a), ROUNDS[-1])
        found.append([auc(b, model.predict(B, num_iteration=k)) for k in ROUNDS])
    return np.array(found)


def run(repeat: int) -> list[Row]:
    """Return a row for each data set, learning rate and objective."""
    rows: list[Row] = []
    objectives = {
        "binary": "binary",
        "squared hinge": lightgbm_objective(),
        "logistic": lightgbm_objective("logistic"),
    }
    for data in SETS:
        found = shared(data)
        if found is None:
            print(f"{data}: not there, left out", file=sys.stderr)
            continue
        for rate in (0.05, 0.1):
            base = np.zeros(0)
            for name, objective in objectives.items():
                start = perf_counter()
                table = areas(*found, objective, rate, repeat)
                seconds = (perf_counter() - start) / repeat
                row: Row = {"data": data, "rate": rate, "objective": name}
                for k, trees in enumerate(ROUNDS):
                    row[f"{trees} trees"] = f"{table[:, k].mean():.4f}"
                    if name != "binary":
                        difference = 1e3 * (table[:, k] - base[:, k])
                        mean, low, high, p = corrected_t(difference, TEST / (1 - TEST))
                        text = f"{mean:+.1f} ({low:+.1f}, {high:+.1f}) p {p:.2f}"
                        row[f"{trees} trees"] = text
                base = table if name == "binary" else base
                rows.append(row | {"seconds": seconds})
                print(rows[-1], file=sys.stderr)
    return rows


if __name__ == "__main__":
    main("LightGBM, test AUC", run, repeat=5)
