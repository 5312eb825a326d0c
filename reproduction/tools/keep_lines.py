"""Store the fits of a run, and their table, in reproduction/results.

``python reproduction/tools/keep_lines.py NAME FILE…`` reads files that ``python -m
aucmax_reproduction`` wrote with the same limits (``FOLDER/SOURCE.jsonl``, or a stored
one). It writes the fits to ``lines/NAME.jsonl.gz`` and their table to ``NAME.md``. If
several files have a fit, the last one is kept; a failed fit is a line with its error.
Numbers are rounded to keep the files small, and the table is made from them.
"""

import gzip
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aucmax_reproduction import lines
from aucmax_reproduction.reproduce import Wanted, key, recorded
from aucmax_reproduction.tables import as_markdown
from aucmax_reproduction.verdict import Report

FOLDER = Path(__file__).parents[1] / "results"
DECIMALS = {
    "auc": 6,
    "auc_se": 6,
    "accuracy_optroc": 6,
    "train_seconds": 3,
    "tune_seconds": 3,
}


def rounded(line: lines.Line) -> lines.Line:
    """Return a fit with rounded numbers; a failed one has none."""
    if "error" in line:
        return line
    numbers = {name: round(line[name], DECIMALS[name]) for name in DECIMALS}
    chosen = {name: _short(value) for name, value in line["chosen"].items()}
    return {**line, **numbers, "chosen": chosen}


def _short(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def merged(files: list[Path], folder: Path) -> Path:
    """Merge the fits of several files into one; return its path."""
    head: lines.Line = {}
    found: dict[tuple[Any, ...], lines.Line] = {}
    for file in files:
        plain = folder / "plain.jsonl"
        raw = file.read_bytes()
        plain.write_bytes(gzip.decompress(raw) if file.suffix == ".gz" else raw)
        head = head or lines.head_of(plain)
        fits = lines.read(plain, head)  # raises an error for other limits
        found |= {key(line): rounded(line) for line in fits}
    path = folder / f"{head['source']}.jsonl"
    with lines.Writer(path, head) as writer:
        for line in found.values():
            writer.write(line)
    return path


def keep(name: str, files: list[Path], into: Path = FOLDER) -> None:
    """Write the lines and the table."""
    with TemporaryDirectory() as folder:
        path = merged(files, Path(folder))
        report = Report.of(*recorded(Wanted(path.stem), path))
        content = gzip.compress(path.read_bytes(), mtime=0)  # reproducible bytes
    (into / "lines").mkdir(exist_ok=True)
    (into / "lines" / f"{name}.jsonl.gz").write_bytes(content)
    (into / f"{name}.md").write_text(as_markdown(report), encoding="utf-8")


if __name__ == "__main__":
    keep(sys.argv[1], [Path(file) for file in sys.argv[2:]])
