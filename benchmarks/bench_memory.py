"""Peak memory of commands that read a stream through a pipe: it has to stay flat.

Generated svmlight rows (200 000 features, 40 a row) go through ``aucmax train -`` and
``aucmax score MODEL -``, some, then 2 GB of them. Every run is a process of its own.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from bench import Row, main

GIGABYTES = float(os.environ.get("AUCMAX_BENCH_GB", "2"))


def some_rows(n: int = 20_000) -> bytes:
    rng = np.random.default_rng(0)
    columns = np.sort((200_000 * rng.random((n, 40)) ** 3).astype(np.int64), axis=1)
    columns += np.arange(1, 41)
    values = rng.random((n, 40))
    labels = np.where(rng.random(n) < 0.1, "+1", "-1")
    return "".join(
        f"{y} " + " ".join(map("{}:{:.6g}".format, at.tolist(), x.tolist())) + "\n"
        for y, at, x in zip(labels, columns, values, strict=True)
    ).encode()


def peak(arguments: list[str], text: bytes, times: int) -> tuple[float, float]:
    """Return the peak memory in MB and the seconds of a command fed with ``text``."""
    command = [sys.executable, "-m", "aucmax", *arguments]
    start = perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    for _ in range(times):
        process.stdin.write(text)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)} failed")
    return usage.ru_maxrss / 1024, perf_counter() - start


def run(repeat: int) -> list[Row]:
    text = some_rows()
    whole = round(GIGABYTES * 1e9 / len(text))
    results = []
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model.aucmax")
        for arguments in (["train", "-", "-o", model], ["score", model, "-"]):
            for times in (5, whole):
                memory, seconds = min(
                    peak(arguments, text, times) for _ in range(repeat)
                )
                size = times * len(text) / 1e6
                results.append(
                    {
                        "data": f"aucmax {arguments[0]}, {size:,.0f} MB",
                        "peak MB": memory,
                        "seconds": seconds,
                        "MB/s": size / seconds,
                    }
                )
    return results


if __name__ == "__main__":
    main("Peak memory of streams", run, repeat=1)
