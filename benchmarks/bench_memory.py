"""Peak memory of commands that read a stream through a pipe: it has to stay flat.

Generated rows go through ``aucmax train -`` and ``aucmax score MODEL -``, some, then
2 GB of them: svmlight (200 000 features, 40 a row), and a table of numbers with gaps,
dates, words and a category of a million values. Every run is a process of its own.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

from bench import Row, main

HEAD = b"amount,size,day,town,remark,label\n"
TABLE = ["--input", "format=csv", "--label", "label"]
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


def some_lines(n: int = 2_000_000) -> bytes:
    rng = np.random.default_rng(0)
    often = rng.random(n) < 0.5  # else no two rows have the same town
    towns = np.where(often, rng.integers(0, 1000, n), rng.permutation(n))
    words = np.array(["good", "bad", "late", "early", "cheap", "dear", "broken", "new"])
    said = [" ".join(four) for four in words[rng.integers(0, len(words), (n, 4))]]
    days = rng.integers(1, 29, n)
    amounts, sizes = rng.normal(100.0, 30.0, n), rng.integers(1, 50, n)
    gaps = rng.random(n) < 0.05
    labels = np.where(rng.random(n) < 0.1, "fraud", "fine")
    return "".join(
        f"{'' if gap else f'{amount:.4f}'},{size},2024-03-{day:02},town {town},{text} "
        f"{town % 7919},{label}\n"
        for gap, amount, size, day, town, text, label in zip(
            gaps, amounts, sizes, days, towns, said, labels, strict=True
        )
    ).encode()


def peak(
    arguments: list[str], head: bytes, text: bytes, times: int
) -> tuple[float, float]:
    """Return the peak memory in MB and the seconds of a command fed with ``text``."""
    command = [sys.executable, "-m", "aucmax", *arguments]
    start = perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    process.stdin.write(head)
    for _ in range(times):
        process.stdin.write(text)
    process.stdin.close()
    # What wait4 says of the child would include us, from whom it was forked.
    status, most = Path(f"/proc/{process.pid}/status"), 0
    while process.poll() is None:
        found = re.search(r"VmHWM:\s*(\d+)", status.read_text())
        most = int(found[1]) if found else most
        sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed")
    return most / 1024, perf_counter() - start


def run(repeat: int) -> list[Row]:
    results = []
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model.aucmax")
        for form, head, text, few, options in (
            ("svmlight", b"", some_rows(), 5, []),
            (
                "table",
                HEAD,
                some_lines(),
                1,
                ["--input", "format=csv", "--label", "label"],
            ),
        ):
            training = ["train", "-", "-o", model, *options]
            whole = round(GIGABYTES * 1e9 / len(text))
            for arguments in (training, ["score", model, "-"]):
                for times in (few, whole):
                    memory, seconds = min(
                        peak(arguments, head, text, times) for _ in range(repeat)
                    )
                    size = times * len(text) / 1e6
                    results.append(
                        {
                            "data": f"{form}, aucmax {arguments[0]}, {size:,.0f} MB",
                            "peak MB": memory,
                            "seconds": seconds,
                            "MB/s": size / seconds,
                        }
                    )
    return results


if __name__ == "__main__":
    main("Peak memory of streams", run, repeat=1)
