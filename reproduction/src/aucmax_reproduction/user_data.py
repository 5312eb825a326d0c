"""Data sets of a paper from the user's own files: ``--data NAME=FILE``.

A file is svmlight or a table (CSV, Parquet) with a column "label", compressed or not. A
second file for the same name is the test file. If the labels are two, the larger one is
positive; otherwise the paper's rule is used, if it states one.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.io.batch import Source
from aucmax.io.collect import collect, widened
from aucmax.io.open_data import guess_format, open_data, reopen
from aucmax.io.text import Text
from aucmax.tables.labels import Task
from aucmax_reproduction.protocol import Protocol, Subject
from aucmax_reproduction.protocols import PROTOCOLS, protocol


def parse(source: str, given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the files by set, from texts ``NAME=FILE``."""
    known = dict.fromkeys(
        name for plan in protocol(source).plans.values() for name in plan.subjects
    )
    files: dict[str, tuple[str, ...]] = {}
    for text in given:
        name, sign, file = text.partition("=")
        if not (name and sign and file):
            raise ValueError(f"--data {text}: expected NAME=FILE.")
        if name not in known:
            raise ValueError(
                f"--data {text}: {source} has no set {name!r}. Use one of "
                f"{', '.join(known)}."
            )
        files[name] = (*files.get(name, ()), file)
        if len(files[name]) > 2:
            raise ValueError(
                f"--data {text}: {name} has more than two files. Give the training "
                "file, then the test file."
            )
    return files


def use(source: str, given: Sequence[str]) -> None:
    """Use these files in the protocol of a paper, in this process."""
    if given:
        PROTOCOLS[source] = with_files(protocol(source), parse(source, given))


def with_files(paper: Protocol, files: dict[str, tuple[str, ...]]) -> Protocol:
    """Return a protocol that reads these sets from files."""
    plans = {}
    for table, plan in paper.plans.items():
        subjects = {
            name: _from_files(subject, files[name]) if name in files else subject
            for name, subject in plan.subjects.items()
        }
        plans[table] = plan._replace(subjects=subjects)
    return paper._replace(plans=plans)


def _from_files(subject: Subject, files: tuple[str, ...]) -> Subject:
    note = f"rows of {' and '.join(Path(file).name for file in files)}"
    return subject._replace(files=files, unknown=False, cannot="", note=note)


@lru_cache(maxsize=1)
def load(files: tuple[str, ...]) -> tuple[Any, NDArray[Any], int]:
    """Return features and labels of all files, and the rows of the first one."""
    first = _opened(files[0])
    others = [reopen([file], first.recipe()) for file in files[1:]]
    rows = [collect(source) for source in (first, *others)]
    width = max(X.shape[1] for X, _, _ in rows)
    labels = []
    for file, (X, y, _) in zip(files, rows, strict=True):
        if y is None:
            raise ValueError(
                f"{file} has no labels: a table needs a column named 'label'."
            )
        if X.shape[1] != width and isinstance(X, np.ndarray):
            raise ValueError(f"{file} has {X.shape[1]} columns, not {width}.")
        labels.append(y)
    parts = [widened(X, width) for X, _, _ in rows]
    X = sparse.vstack(parts, "csr") if sparse.issparse(parts[0]) else np.vstack(parts)
    return X, np.concatenate(labels), len(labels[0])


def _opened(file: str) -> Source:
    """Return a reader of a file; of a table, with the labels in the column "label"."""
    if guess_format(Text([file])) == "svmlight":
        return open_data([file])
    try:
        source = open_data([file], label="label")
        source.recipe()  # finds the columns
    except ValueError as error:
        if "no label column" not in str(error):
            raise
        raise ValueError(
            f"{file} has no labels: a table needs a column named 'label' ({error})."
        ) from error
    return source


def positives(subject: Subject, labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows are positive."""
    found = np.unique(labels).tolist()
    if len(found) == 2:
        return Task().settle(found).positives(labels)
    if subject.rule is None:
        raise ValueError(
            f"{subject.files[0]} has {len(found)} labels, and the paper does not say "
            "which are positive. Give a file with two labels."
        )
    return subject.rule.task.positives(labels)
