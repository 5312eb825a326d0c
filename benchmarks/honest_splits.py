"""Estimates before deployment: random folds against splits by time or group.

Tables of $AUCMAX_TABLES or ../shared/tables whose MANIFEST.csv names a column of dates
or groups, and six more tables whose rows have an order in time (``ORDERS``). The rows
of the last 20 % of the time, or of a fifth of the groups, are the future: a model is
fitted to the other rows, once as to a plain table and once with ``time=`` or
``group=``, and its estimate (``auc_``) is compared with the AUC on the future. At most
6,000 rows (``--rows``) are used for training and 20,000 for the future.

``python benchmarks/honest_splits.py run FILE [--splits 3] [table …]`` adds a JSON line
to FILE for each table and split; ``… report FILE`` prints the differences.

``… variants FILE`` measures, on the tables with time that settings may be chosen on,
what AUCClassifier does not offer: row weights that halve within a quarter or a half of
the time, and columns relative to the past of the group. ``… gains FILE`` prints them.
"""

import argparse
import json
import warnings
from calendar import month_abbr
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aucmax import AUCClassifier
from aucmax.blend.honest import time_of_rows
from aucmax.metrics import auc
from bench import lines_of
from real_tables import FOLDER, labelled_table

MOST_TEST = 20_000
TIME = "time of the row"
MONTHS = {name: k for k, name in enumerate(month_abbr) if k}


def month(names: pd.Series) -> pd.Series:
    return names.str[:3].map(MONTHS)


ORDERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "hotel-bookings": lambda t: (
        372 * t.arrival_date_year
        + 31 * month(t.arrival_date_month)
        + t.arrival_date_day_of_month
    ),
    "vehicle-claim-fraud": lambda t: 12 * t.Year + month(t.Month),
    "bank-marketing": lambda t: np.arange(len(t)),
    "bank-marketing-additional": lambda t: np.arange(len(t)),
    "sba-loan-case": lambda t: t.ApprovalDate,
    "online-shoppers-intention": lambda t: month(t.Month),
}


def designs(about: Any) -> list[tuple[str, str]]:
    """Return kinds and columns of the designs of a table."""
    dates = TIME if about.name in ORDERS else about.dates.split("|")[-1]
    return [(k, c) for k, c in (("time", dates), ("group", about.group)) if c]


def table_of(about: Any, column: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns, with that of the design, and the labels."""
    kept = [name for name in about.drop_.split("|") if name != column]
    frame, y = labelled_table(about._replace(drop_="|".join(kept)))
    if column == TIME:
        frame[TIME] = np.asarray(ORDERS[about.name](frame), float)
    return frame, y


def future_rows(column: Any, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return which rows are of the last fifth of the time, or of a fifth of groups."""
    if kind == "time":
        time = time_of_rows(column, "time")
        return time >= np.nanquantile(time, 0.8, method="higher")
    groups = np.unique(column.astype(str))
    chosen = rng.permutation(groups)[: max(len(groups) // 5, 1)]
    return np.isin(column.astype(str), chosen)


def run(path: Path, splits: int, most_train: int, names: list[str]) -> None:
    manifest = pd.read_csv(FOLDER / "MANIFEST.csv", keep_default_na=False, dtype=str)
    manifest = manifest.rename(columns={"drop": "drop_"})
    done = {(one["set"], one["kind"], one["split"]) for one in lines_of(path)}
    for about in manifest.itertuples():
        for kind, column in designs(about):
            missing = {(about.name, kind, split) for split in range(splits)} - done
            if not missing or (names and about.name not in names):
                continue
            frame, y = table_of(about, column)
            for *_, split in sorted(missing):
                rng = np.random.default_rng(split)
                later = future_rows(frame[column].to_numpy(), kind, rng)
                train, test = (
                    rng.permutation(np.flatnonzero(rows))[:most]
                    for rows, most in ((~later, most_train), (later, MOST_TEST))
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


def relative_columns(frame: pd.DataFrame, time: Any, group: Any) -> pd.DataFrame:
    """Return columns of each row that compare it with earlier rows of its group.

    They are the number of earlier rows, the time since the last one, and the
    differences of numbers from their mean in earlier rows.
    """
    order = np.argsort(time, kind="stable")
    of = pd.Series(np.asarray(group).astype(str)[order])
    found = {"rows so far": of.groupby(of).cumcount()}
    found["time since"] = pd.Series(np.asarray(time)[order]).groupby(of).diff()
    for name in frame.select_dtypes("number"):
        values = pd.Series(frame[name].to_numpy(float)[order])
        count = values.notna().groupby(of).cumsum() - values.notna()
        total = values.fillna(0.0).groupby(of).cumsum() - values.fillna(0.0)
        found[f"{name}, relative"] = values - total / count.where(count > 0)
    back = pd.DataFrame(found).set_axis(order).sort_index()
    return back.set_axis(frame.index)


def variants(path: Path, most_train: int, names: list[str]) -> None:
    manifest = pd.read_csv(FOLDER / "MANIFEST.csv", keep_default_na=False, dtype=str)
    manifest = manifest.rename(columns={"drop": "drop_"})
    done = {one["set"] for one in lines_of(path)}
    for about in manifest[manifest.use == "choose"].itertuples():
        columns = dict(designs(about))
        if "time" not in columns or about.name in done:
            continue
        if names and about.name not in names:
            continue
        frame, y = table_of(about, columns["time"])
        time = time_of_rows(frame[columns["time"]].to_numpy(), "time")
        rng = np.random.default_rng(0)
        later = future_rows(frame[columns["time"]].to_numpy(), "time", rng)
        train, test = (
            rng.permutation(np.flatnonzero(rows))[:most]
            for rows, most in ((~later, most_train), (later, MOST_TEST))
        )
        now, span = np.nanmax(time[train]), np.ptp(time[train][~np.isnan(time[train])])
        age = np.nan_to_num((now - time[train]) / span, nan=1.0)
        tried: dict[str, Any] = {
            "base": (frame, None),
            "half-life 1/4": (frame, 0.5 ** (age / 0.25)),
            "half-life 1/2": (frame, 0.5 ** (age / 0.5)),
        }
        if columns.get("group") in frame:
            more = relative_columns(frame, time, frame[columns["group"]])
            tried["relative to the group"] = (pd.concat([frame, more], axis=1), None)
        line: dict[str, Any] = {"set": about.name}
        for name, (X, weight) in tried.items():
            model = AUCClassifier(time=columns["time"], random_state=0)
            model.fit(X.iloc[train], y[train], weight)
            score = model.decision_function(X.iloc[test])
            line[name] = [model.auc_.value, auc(y[test], score)]
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)


def gains(path: Path) -> None:
    lines = lines_of(path)
    print("| variant | tables | estimate | AUC later | AUC later, by table |")
    print("|---" * 5 + "|")
    for name in ("half-life 1/4", "half-life 1/2", "relative to the group"):
        some = [one for one in lines if name in one]
        gain = np.array([np.subtract(one[name], one["base"]) for one in some])
        each = ", ".join(
            f"{one['set']} {x:+.3f}" for one, x in zip(some, gain[:, 1], strict=True)
        )
        print(
            f"| {name} | {len(some)} | {gain[:, 0].mean():+.4f} "
            f"| {gain[:, 1].mean():+.4f} | {each} |"
        )


def report(path: Path) -> None:
    lines = lines_of(path)
    parts = [(kind, use) for kind in ("time", "group") for use in ("choose", "report")]
    print(
        "| future | tables | estimate | runs | mean absolute error | mean error "
        "| covers | width | AUC later |"
    )
    print("|---" * 9 + "|")
    for kind, use in [*parts, ("", "")]:
        some = [one for one in lines if kind in ("", one["kind"])]
        some = [one for one in some if use in ("", one["use"])]
        for name in ("random", "honest") if some else ():
            later = np.array([line[f"{name} later"] for line in some])
            value, low, high = np.array([line[name] for line in some]).T
            inside = (low <= later) & (later <= high)
            print(
                f"| {kind or 'all'} | {use or 'all'} | {name} | {len(some)} "
                f"| {np.abs(value - later).mean():.4f} | {(value - later).mean():+.4f} "
                f"| {inside.mean():.0%} | {(high - low).mean():.3f} "
                f"| {later.mean():.4f} |"
            )
    for line in lines:
        random, honest = line["random"], line["honest"]
        print(
            f"{line['set']:25} {line['kind']:5} {line['use']:6} {line['split']} random "
            f"{random[0]:.3f}, honest {honest[0]:.3f} ({honest[1]:.3f} to "
            f"{honest[2]:.3f}); later {line['random later']:.3f} "
            f"{line['honest later']:.3f}"
        )


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "report", "variants", "gains"])
    parser.add_argument("file", type=Path)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=6_000)
    given = parser.parse_intermixed_args()
    if given.what == "report":
        report(given.file)
    elif given.what == "gains":
        gains(given.file)
    elif given.what == "variants":
        variants(given.file, given.rows, given.tables)
    else:
        run(given.file, given.splits, given.rows, given.tables)


if __name__ == "__main__":
    main()
