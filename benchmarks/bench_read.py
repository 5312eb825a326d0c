"""Reading svmlight files: MB/s on one core, against scikit-learn's loader.

"bytes" is what no reader can beat: the file read in the same blocks, and each byte
looked at once. All are given the same files, which are in the system's memory.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_svmlight_file

import bench
from aucmax.io.svmlight import SvmlightSource
from aucmax.io.text import Text

SIZE = 75_000_000  # bytes
# Entries a row, features, how the value of an entry is written.
KINDS: dict[str, tuple[int, int, Callable[[float], str]]] = {
    "40 a row, 6 digits": (40, 5_000, "{:.6g}".format),
    "40 a row, all digits": (40, 5_000, repr),
    "14 a row, ones": (14, 123, lambda value: "1"),
    "500 a row, 3 digits": (500, 50_000, "{:.3g}".format),
}


def write(
    path: Path, size: int, nnz: int, d: int, show: Callable[[float], str]
) -> None:
    """Write so many bytes of text, the same 400 kB or so again and again."""
    rng = np.random.default_rng(0)
    lines = []
    for label in rng.choice(["+1", "-1"], 400_000 // (12 * nnz)):
        columns = np.sort(rng.choice(d, nnz, replace=False)) + 1
        values = rng.standard_normal(nnz).tolist()
        pairs = zip(columns.tolist(), values, strict=True)
        lines.append(" ".join([label, *(f"{j}:{show(x)}" for j, x in pairs)]) + "\n")
    some = "".join(lines).encode()
    with open(path, "wb") as file:
        for _ in range(max(size // len(some), 1)):
            file.write(some)


def entries(path: str, dtype: type) -> int:
    return sum(chunk.X.nnz for chunk in SvmlightSource(path, dtype=dtype).chunks())


def bytes_seen(path: str) -> int:
    return sum(int(block.data.sum()) for block in Text(path).blocks())


def run(repeat: int) -> list[bench.Row]:
    rows = []
    with TemporaryDirectory() as folder:
        for name, (nnz, d, show) in KINDS.items():
            file = Path(folder) / "data.svm"
            write(file, 1, nnz, d, show)
            path = str(file)
            for dtype in (np.float64, np.float32):
                entries(path, dtype)  # compile
            write(file, SIZE, nnz, d, show)
            times = bench.best_of(
                repeat,
                {
                    "float64": lambda path=path: entries(path, np.float64),
                    "float32": lambda path=path: entries(path, np.float32),
                    "sklearn": lambda path=path: load_svmlight_file(path),
                    "bytes": lambda path=path: bytes_seen(path),
                },
            )
            size = file.stat().st_size / 1e6
            rows.append(
                {
                    "data": name,
                    "MB": size,
                    **{f"{key}, MB/s": size / time for key, time in times.items()},
                    "ns an entry": 1e9 * times["float64"] / entries(path, np.float64),
                    "times sklearn": times["sklearn"] / times["float64"],
                }
            )
    return rows


if __name__ == "__main__":
    bench.main("Reading svmlight files", run, repeat=3)
