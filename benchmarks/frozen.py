"""Times that must not rise while the code is rewritten. Run it on an idle machine.

``python benchmarks/frozen.py FILE [--only TEXT] [--repeat 3] [--against FILE]`` stores
the smallest of the repeated times of each job in FILE, seconds; jobs that are in it
already are not run again. ``--against`` prints the ratios to another file's times.

Only public names are used, so that old and new sources run it alike:
``PYTHONPATH=…/src python benchmarks/frozen.py FILE``.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from bench import csv_text, normal_rows, repeated, shared, svmlight_text
from real_tables import FOLDER, load

TABLES = ("credit-g", "bank-marketing", "amazon-employee-access")
Job = Callable[[], Any]


def in_chunks(model: Any, X: Any, y: Any) -> None:
    for start in range(0, len(y), 1000):
        rows = slice(start, start + 1000)
        model.partial_fit(X[rows], y[rows], classes=[0, 1])


def learners() -> Iterator[tuple[str, Job]]:
    from aucmax import OAM, SPAM, AUCStream

    sets = {"500,000 x 30": normal_rows(500_000, 30), "a9a": shared("a9a.train")}
    for name, data in sets.items():
        if data is None:
            continue
        X, y = data
        for kind in (SPAM, OAM):
            kind(random_state=0).fit(X[:2000], y[:2000])  # compile
            in_chunks(kind(random_state=0), X[:2000], y[:2000])
            yield (
                f"{kind.__name__}.fit, {name}",
                lambda kind=kind, X=X, y=y: kind(random_state=0).fit(X, y),
            )
            yield (
                f"{kind.__name__}, chunks of 1,000, {name}",
                lambda kind=kind, X=X, y=y: in_chunks(kind(random_state=0), X, y),
            )
    X, y = normal_rows(1_000_000, 30)
    in_chunks(AUCStream(random_state=0), X[:3000], y[:3000])
    yield (
        "AUCStream, chunks of 1,000, 1,000,000 x 30",
        lambda: in_chunks(AUCStream(random_state=0), X, y),
    )


def tables() -> Iterator[tuple[str, Job]]:
    from aucmax import AUCClassifier

    if not FOLDER.exists():
        return
    manifest = pd.read_csv(FOLDER / "MANIFEST.csv", keep_default_na=False, dtype=str)
    manifest = manifest.rename(columns={"drop": "drop_"})
    for about in manifest.itertuples():
        if about.name in TABLES:
            X, _, y, _ = load(about, 0)
            small = AUCClassifier(random_state=0, n_jobs=1)
            small.fit(X[:300], np.arange(300) % 3 == 0)  # compile
            yield (
                f"AUCClassifier.fit, {about.name}",
                lambda X=X, y=y: AUCClassifier(random_state=0, n_jobs=1).fit(X, y),
            )


def python(*arguments: Any, stdin: Path | None = None) -> None:
    command = [sys.executable, *map(str, arguments)]
    with open(stdin or os.devnull, "rb") as file:
        subprocess.run(command, stdin=file, check=True, capture_output=True)


def commands(folder: Path) -> Iterator[tuple[str, Job]]:
    model, out = folder / "model.aucmax", folder / "scores.csv"
    yield "aucmax --help", lambda: python("-m", "aucmax", "--help")
    yield "import aucmax.metrics", lambda: python("-c", "import aucmax.metrics")
    for kind in ("numbers", "words"):
        path = folder / f"{kind}.svm"
        yield f"write {kind}", lambda p=path, k=kind: written(p, k)
        yield (
            f"train -, 1 GB svmlight, {kind}",
            lambda p=path: python("-m", "aucmax", "train", "-", "-o", model, stdin=p),
        )
    table = folder / "table.csv"
    head = "amount,day,town,text,label\n"
    yield "write table", lambda: table.write_text(head + csv_text(1_000_000))
    given = [table, "-o", model, "--label", "label"]
    yield "train, 1,000,000 CSV rows", lambda: python("-m", "aucmax", "train", *given)
    yield (
        "score, 1,000,000 CSV rows",
        lambda: python("-m", "aucmax", "score", model, table, "-o", out),
    )


def written(path: Path, kind: str) -> None:
    repeated(path, svmlight_text(kind, 20_000), 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--against", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = json.loads(given.file.read_text()) if given.file.exists() else {}
    with TemporaryDirectory() as folder:
        for jobs in (commands(Path(folder)), learners(), tables()):
            for name, job in jobs:
                if name.startswith("write "):
                    job()
                elif name not in found and given.only in name:
                    times = []
                    for _ in range(given.repeat):
                        start = perf_counter()
                        job()
                        times.append(perf_counter() - start)
                    found[name] = round(min(times), 3)
                    print(f"{name}: {found[name]}", flush=True)
                    given.file.write_text(json.dumps(found, indent=1))
    if given.against:
        for name, before in json.loads(given.against.read_text()).items():
            if name in found:
                print(f"{name}: {before} s, {found[name] / before:.2f} times as long")


if __name__ == "__main__":
    main()
