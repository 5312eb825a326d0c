"""Estimates before deployment: random folds against splits by time or group.

Tables of $AUCMAX_TABLES or ../shared/tables whose MANIFEST.csv names a column of dates
or groups. The rows of the last 20 % of the time, or of a fifth of the groups, are the
future: a model is fitted to the other rows, once as to a plain table and once with
``time=`` or ``group=``, and its estimate (``auc_``) is compared with the AUC on the
future. At most 6,000 rows are used for training and 20,000 for the future.

``python benchmarks/honest_splits.py run FILE [--splits 3] [table …]`` adds a JSON line
to FILE for each table and split; ``… report FILE`` prints the differences.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aucmax import AUCClassifier
from aucmax.blend.honest_splits import time_of_rows
from aucmax.metrics import auc
from bench import lines_of
from real_tables import FOLDER, labelled_table

MOST_TRAIN, MOST_TEST = 6_000, 20_000


def future_rows(column: Any, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return which rows are of the last fifth of the time, or of a fifth of groups."""
    if kind == "time":
        time = time_of_rows(column, "time")
        return time >= np.nanquantile(time, 0.8, method="higher")
    groups = np.unique(column.astype(str))
    chosen = rng.permutation(groups)[: max(len(groups) // 5, 1)]
    return np.isin(column.astype(str), chosen)


def run(path: Path, splits: int, names: list[str]) -> None:
    manifest = pd.read_csv(FOLDER / "MANIFEST.csv", keep_default_na=False, dtype=str)
    manifest = manifest.rename(columns={"drop": "drop_"})
    done = {(one["set"], one["kind"], one["split"]) for one in lines_of(path)}
    for about in manifest.itertuples():
        designs = [("time", about.dates.split("|")[-1]), ("group", about.group)]
        for kind, column in designs:
            if not column or (names and about.name not in names):
                continue
            frame, y = labelled_table(about)
            if column not in frame:
                continue
            for split in range(splits):
                if (about.name, kind, split) in done:
                    continue
                rng = np.random.default_rng(split)
                later = future_rows(frame[column].to_numpy(), kind, rng)
                train, test = (
                    rng.permutation(np.flatnonzero(rows))[:most]
                    for rows, most in ((~later, MOST_TRAIN), (later, MOST_TEST))
                )
                line: dict[str, Any] = {
                    "set": about.name,
                    "use": about.use,
                    "kind": kind,
                    "split": split,
                    "rows": len(train),
                }
                for name, options in (("random", {}), ("honest", {kind: column})):
                    model = AUCClassifier(random_state=0, **options)
                    model.fit(frame.iloc[train], y[train])
                    line[name] = list(model.auc_[:3])
                    score = model.decision_function(frame.iloc[test])
                    line[f"{name} later"] = auc(y[test], score)
                with path.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


def report(path: Path) -> None:
    lines = lines_of(path)
    print("| estimate | runs | mean absolute error | mean error | covers | AUC later |")
    print("|---" * 6 + "|")
    for name in ("random", "honest"):
        later = np.array([line[f"{name} later"] for line in lines])
        value, low, high = np.array([line[name] for line in lines]).T
        inside = (low <= later) & (later <= high)
        print(
            f"| {name} | {len(lines)} | {np.abs(value - later).mean():.4f} "
            f"| {(value - later).mean():+.4f} | {inside.mean():.0%} "
            f"| {later.mean():.4f} |"
        )
    for line in lines:
        print(
            f"{line['set']:25} {line['kind']:5} {line['split']} random "
            f"{line['random'][0]:.3f} honest {line['honest'][0]:.3f} later "
            f"{line['random later']:.3f} {line['honest later']:.3f}"
        )


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("file", type=Path)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--splits", type=int, default=3)
    given = parser.parse_args()
    if given.what == "report":
        report(given.file)
    else:
        run(given.file, given.splits, given.tables)


if __name__ == "__main__":
    main()
