"""A fictitious paper on small sets, for tests."""

import hashlib
import lzma
import os

import numpy as np

from aucmax_reproduction import datasets as registry
from aucmax_reproduction import fitting, papers
from aucmax_reproduction.papers import Printed
from aucmax_reproduction.protocol import (
    IMBALANCE,
    TIMES,
    Grid,
    Picture,
    Plan,
    Protocol,
    Recipe,
    Subject,
)
from aucmax_reproduction.protocols import PROTOCOLS
from aucmax_reproduction.splits import Folds
from helpers.data import gaussian, registry_line

SOURCE = "toy2024"
UNKNOWN = "two groups were drawn"


def cell(dataset, algorithm, mean=0.8, std=0.02, metric="auc", table="1", note=""):
    return Printed(SOURCE, table, dataset, algorithm, metric, mean, std, note)


COPIED = "value copied by the authors from gao2013"
CELLS = (
    cell("pair", "LS-SVM"),
    cell("pair", "Uni-Exp", note="LS-SVM significantly better (pairwise t-test 95%)"),
    cell("pair", "OPAUC", note=COPIED),
    cell("pair", "LS-SVM", 0.3, None, "train_seconds"),
    cell("four", "LS-SVM"),
    cell("gone", "LS-SVM"),
    cell("nowhere", "LS-SVM"),
    cell("part", "LS-SVM"),
    cell("pair", "LS-SVM", 0.7, 0.05, "accuracy_optroc", "2"),
)
PROTOCOL = Protocol(
    SOURCE,
    "A paper that there is not.",
    {
        "1": Plan(
            scaling="standardised",
            split=Folds(3, 2),
            folds=2,
            reference="LS-SVM",
            recipes={
                "LS-SVM": Recipe("LS-SVM", {"l2": Grid((1e-3, 1e-2, 0.1, 1.0))}),
                "Uni-Exp": Recipe("Uni-Exp", {"eta0": Grid((0.01, 0.1))}, passes=1),
            },
            subjects={
                "pair": Subject("pair"),
                "four": Subject("four", unknown=True, cannot=UNKNOWN),
                "gone": Subject("gone"),
                "nowhere": Subject(None, cannot="the data set is not in the registry"),
                "part": Subject("pair", cannot="a part of the rows"),
            },
        )
    },
    same_fits={"2": "1"},
    pictures=(
        Picture("1", "1", "While it learns", ("Uni-Exp", "SPDAM")),
        Picture("2", "1", "A parameter", ("LS-SVM",), "l2", (1e-3, 1.0)),
        Picture("3", "1", "Seconds", ("LS-SVM", "Uni-Exp"), kind=TIMES),
        Picture("4", "1", "Imbalance", (), values=(1, 2), kind=IMBALANCE),
    ),
)


def install(monkeypatch, folder):
    """Make this the only paper, and write its sets to a folder."""
    X, y = gaussian(120, 4)
    labels = (y + 2 * (np.arange(120) % 2)).astype(float)  # 0 and 2 against 1 and 3
    entries = {
        "pair": entry(folder, "pair", X, 2.0 * y - 1.0),
        "four": entry(folder, "four", X, labels),
        "gone": entry(folder, "gone", X, 2.0 * y - 1.0),
    }
    os.remove(folder / "gone.svm.xz")
    monkeypatch.setenv("AUCMAX_DATA", str(folder))
    monkeypatch.setattr(registry, "_registry", lambda: entries)
    monkeypatch.setattr(registry, "_cache", lambda: folder / "cache")
    monkeypatch.setattr(papers, "every", lambda: CELLS)
    monkeypatch.setitem(PROTOCOLS, SOURCE, PROTOCOL)
    fitting.prepared.cache_clear()
    fitting._data.cache_clear()


def entry(folder, name, X, labels):
    """Write a set as svmlight; return its registry entry."""
    lines = [
        f"{label:g} " + " ".join(f"{j + 1}:{value:.6g}" for j, value in enumerate(x))
        for x, label in zip(X, labels, strict=True)
    ]
    content = lzma.compress("\n".join(lines).encode() + b"\n")
    (folder / f"{name}.svm.xz").write_bytes(content)
    counts = zip(*np.unique(labels, return_counts=True), strict=True)
    line = registry_line(
        name,
        features=X.shape[1],
        rows=len(labels),
        classes=" ".join(f"{label:g}:{count}" for label, count in counts),
        task="" if len(set(labels)) == 2 else "halves",
        sha256=hashlib.sha256(content).hexdigest(),
    )
    return registry._entry([line])


def dies_or_not(job, effort):
    """Replace a fit; run 1 kills its process."""
    if job.run == 1:
        os._exit(1)
    return {**{name: getattr(job, name) for name in job._fields[1:]}, "auc": 0.5}
