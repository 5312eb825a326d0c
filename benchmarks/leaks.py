"""Leak warnings and hints on real tables, and how many of them are false alarms.

Tables of $AUCMAX_TABLES or ../shared/tables. MANIFEST.csv names the columns to drop:
leaks, row numbers and duplicates of the label. Without them a table counts as clean,
and a warning is a false alarm unless its column turns out to be a leak. Nothing is
fitted: the columns are encoded and tested as in ``AUCClassifier.fit``.

``python benchmarks/leaks.py [table …]`` prints a line for each warning and each hint,
the columns to drop that a warning would name, and the counts.
"""

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd

from aucmax.blend.layout import RowLayout
from aucmax.blend.leaks import Leak, table_leaks
from aucmax.blend.table_input import encode_table, first_columns
from aucmax.tables.structure import find_structure
from real_tables import FOLDER, labelled_table


def leaks(frame: pd.DataFrame, positive: np.ndarray) -> list[Leak]:
    """Return the leaks that AUCClassifier would warn of."""
    rows, encoder = encode_table(frame, {})
    levels, names = None, [str(name) for name in frame]
    if encoder is not None:
        levels, names = encoder.schema.n_levels, encoder.column_of_feature
    if encoder is None:
        rows = frame.to_numpy(float)
    _, table = RowLayout.of(rows, levels).fit(rows, positive, 0)
    return table_leaks(table, names, positive)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*")
    names = parser.parse_args().tables
    manifest = pd.read_csv(FOLDER / "MANIFEST.csv", keep_default_na=False, dtype=str)
    manifest = manifest.rename(columns={"drop": "drop_"})
    clean: dict[str, list[Leak]] = {}
    known = found = 0
    for about in manifest.itertuples():
        if names and about.name not in names:
            continue
        frame, y = labelled_table(about)
        clean[about.name] = leaks(frame, y)
        for leak in clean[about.name]:
            print(f"{about.name}: {leak}", flush=True)
        for hint in find_structure(first_columns(frame), y):
            print(f"  hint, {about.name}: {hint.column}, {hint.kind}", flush=True)
        dropped: list[Any] = [one for one in about.drop_.split("|") if one]
        if dropped:
            whole, y = labelled_table(about._replace(drop_=""))
            told = [one for one in leaks(whole, y) if one.column in dropped]
            known, found = known + len(dropped), found + len(told)
            print(f"  {about.name}: of {dropped} found {[one[:2] for one in told]}")
    alarms = [name for name, some in clean.items() if some]
    print(
        f"{len(clean)} clean tables, {len(alarms)} with a warning: "
        f"{', '.join(alarms) or 'none'}"
    )
    print(f"{known} columns to drop, {found} of them named")


if __name__ == "__main__":
    main()
