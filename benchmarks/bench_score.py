"""``aucmax score`` on a million rows: scores printed by the kernel, and by ``repr``.

What is measured is the whole command, in a new process: what a user waits for. Both
write the same bytes. ``python benchmarks/bench_score.py``.
"""

import filecmp
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from aucmax.training import Plan, train
from bench import Row, best_of, main

ROWS, FEATURES = 1_000_000, 10
_KERNEL = "from aucmax.cli.main import app; app()"
_REPR = f"""
from aucmax import scoring

def as_text(scores, lines=None, delimiter=-1, end=b"\\n"):
    texts = map(repr, scores.tolist())
    if delimiter < 0:
        return "".join(text + "\\n" for text in texts).encode()
    data, sign = lines.data, chr(delimiter).encode()
    spans = zip(lines.starts.tolist(), lines.stops.tolist(), texts)
    return b"".join(
        data[start:stop] + sign + text.encode() + end for start, stop, text in spans
    )

scoring.as_text = as_text
{_KERNEL}
"""


def run(repeat: int) -> list[Row]:
    """Return the seconds of both, for svmlight data and for CSV."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS // 100, FEATURES)).round(4)
    y = (X[:, 0] + rng.standard_normal(len(X)) > 0).astype(int)
    rows = []
    with TemporaryDirectory() as folder:
        for kind in ("svmlight", "csv"):
            data, model = Path(folder, f"data.{kind}"), Path(folder, f"{kind}.aucmax")
            first = Path(folder, f"first.{kind}")
            header = [] if kind == "svmlight" else [_header()]
            lines = [_line(kind, label, row) for label, row in zip(y, X, strict=True)]
            first.write_text("".join([*header, *lines]))
            data.write_text("".join([*header, *(100 * lines)]))
            reader = {} if kind == "svmlight" else {"label": "y"}
            train(Plan([str(first)], "LeastSquaresAUC", reader=reader), model)
            outputs = {name: Path(folder, name) for name in ("kernel", "repr")}
            jobs = {
                name: partial(_score, code, model, data, outputs[name])
                for name, code in (("kernel", _KERNEL), ("repr", _REPR))
            }
            for job in jobs.values():
                job()  # compiles
            assert filecmp.cmp(*outputs.values(), shallow=False)
            seconds = best_of(repeat, jobs)
            ratio = seconds["repr"] / seconds["kernel"]
            rows.append({"data": kind, **seconds, "ratio": ratio})
    return rows


def _header() -> str:
    return ",".join(["y", *(f"x{j}" for j in range(FEATURES))]) + "\n"


def _line(kind: str, label: int, row: np.ndarray) -> str:
    if kind == "csv":
        return ",".join(map(str, [label, *row.tolist()])) + "\n"
    pairs = (f"{j}:{value}" for j, value in enumerate(row.tolist(), 1))
    return " ".join([str(label), *pairs]) + "\n"


def _score(code: str, model: Path, data: Path, output: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", code, "score", str(model), str(data), "-o", str(output)],
        check=True,
        capture_output=True,
    )


if __name__ == "__main__":
    main("aucmax score, seconds", run)
