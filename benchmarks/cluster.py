"""Dask cluster of two local worker processes against one process.

    python benchmarks/cluster.py speed --rows 1e6   # one process, threads, workers
    python benchmarks/cluster.py equal              # weights on five real data sets
    python benchmarks/cluster.py memory --rows 1e8  # peak memory of client and workers
    python benchmarks/cluster.py kill               # kill -9 at five random moments

Times need an otherwise idle machine. AUCMAX_DATA names the folder of the data sets.
"""

import argparse
import os
import signal
import sys
import threading
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import dask
import numpy as np
from dask.delayed import delayed
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from aucmax import BAM, LeastSquaresAUC, LeastSquaresAUCCV
from aucmax import cluster as on_cluster
from aucmax.cluster.distributed_rows import fold_of
from aucmax.linear.bam import LOSSES

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from helpers.data import shared
from helpers.parts import apart

SETS = ["german", "spambase", "phishing", "a9a.train", "ijcnn1.train"]
SIZES = [1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000]
MODELS = {
    "LeastSquaresAUC": LeastSquaresAUC(),
    "LeastSquaresAUCCV": LeastSquaresAUCCV(),
    "squared_hinge": BAM(),
    "logistic": BAM(loss="logistic"),
}


@contextmanager
def workers(count=2, memory="auto"):
    """Yield a client of worker processes of one thread each."""
    with (
        dask.config.set(
            {
                "distributed.scheduler.allowed-failures": 50,
                "distributed.admin.large-graph-warning-threshold": "1GB",
            }
        ),
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            memory_limit=memory,
            silence_logs=50,
        ) as local,
        Client(local) as client,
    ):
        yield client


def cut(X, y, ends):
    spans = list(pairwise([0, *ends, X.shape[0]]))
    return [[delayed(data[a:b]) for a, b in spans] for data in (X, y)]


def random_rows(seed, count, d):
    """Draw a block: class means differ by a tenth of a deviation in each feature."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, d))
    y = rng.random(count) < 0.2
    X += 0.1 * y[:, np.newaxis]
    return X, y


def random_blocks(n, d, block):
    counts = [min(block, n - start) for start in range(0, n, block)]
    both = [
        delayed(random_rows, pure=True, nout=2)(seed, count, d)
        for seed, count in enumerate(counts)
    ]
    return [X for X, _ in both], [y for _, y in both]


def timed(job, repeats=3):
    """Return the result and the best time, after a first run that compiles."""
    job()
    best = np.inf
    for _ in range(repeats):
        begin = perf_counter()
        result = job()
        best = min(best, perf_counter() - begin)
    return result, best


def speed(n, d, block, names):
    """Print times of one process, of Dask's threads and of two worker processes."""
    models = {name: MODELS[name] for name in names or MODELS}
    X_blocks, y_blocks = dask.compute(*random_blocks(n, d, block))
    X, y = np.concatenate(X_blocks), np.concatenate(y_blocks)
    times, fitted = {}, {}
    for name, model in models.items():
        alone = clone(model)
        if name == "LeastSquaresAUCCV":  # the folds of the cluster
            alone.cv = PredefinedSplit(fold_of(np.arange(n), 5))
        fitted[name], one = timed(lambda alone=alone: clone(alone).fit(X, y))
        with dask.config.set(scheduler="threads"):
            _, threads = timed(
                lambda model=model: on_cluster.fit(clone(model), X_blocks, y_blocks)
            )
        times[name] = [one, threads]
    with workers():
        parts = [list(dask.persist(*some)) for some in random_blocks(n, d, block)]
        dask.compute(parts[1])
        for name, model in models.items():
            found, two = timed(lambda model=model: on_cluster.fit(clone(model), *parts))
            one, threads = times[name]
            print(
                f"{name:17} one process {one:6.2f} s, threads {threads:6.2f} s, two "
                f"workers {two:6.2f} s ({two / one:.2f} x); weights apart "
                f"{apart(found.coef_, fitted[name].coef_):.0e}",
                flush=True,
            )


def equal():
    """Print how far weights are from those of one machine, for random partitions."""
    rng = np.random.default_rng(0)
    models = [LeastSquaresAUC(), *(BAM(loss=loss) for loss in LOSSES)]
    with workers():
        for name in SETS:
            X, y = shared(name)
            for model in models:
                for layout, rows in (("dense", X.toarray()), ("CSR", X)):
                    alone = clone(model).fit(rows, y)
                    ends = np.sort(rng.integers(0, X.shape[0], rng.integers(1, 12)))
                    found = on_cluster.fit(clone(model), *cut(rows, y, ends))
                    print(
                        f"{name:13} {layout:6} {len(ends) + 1:3} partitions "
                        f"{model!r:30} {apart(found.coef_, alone.coef_):.1e}",
                        flush=True,
                    )


def _peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return np.nan


def memory(n, limit, names):
    """Print the peak memory of the client and of workers of 2 GB each."""
    for name in names or MODELS:
        model = MODELS[name]
        with workers():  # compiles
            on_cluster.fit(clone(model), *random_blocks(10_000, 20, 5000))
        seconds = 0.0
        for size in SIZES:
            if size > n or seconds * 3.4 > limit:
                break
            with workers(memory="2GB") as client:
                begin = perf_counter()
                on_cluster.fit(clone(model), *random_blocks(size, 20, 500_000))
                seconds = perf_counter() - begin
                peak = max(client.run(_peak).values())
            print(
                f"{name:18} {size:.0e} rows {seconds:6.1f} s, peak of a worker "
                f"{peak:.0f} MB, of the client so far {_peak():.0f} MB",
                flush=True,
            )


def kill():
    """Kill a worker during a fit, and print whether the weights stay the same bits."""
    rng = np.random.default_rng()
    X, y = shared("ijcnn1.train")
    ends = np.linspace(0, X.shape[0], 13).astype(int)[1:-1]
    parts, model = cut(X, y, ends), BAM(loss="logistic", tol=1e-8)
    hits = 0
    while hits < 5:
        with workers() as client:
            expected, seconds = timed(
                lambda: on_cluster.fit(clone(model), *parts).coef_, 1
            )
            moment = rng.uniform(0.0, seconds)
            victim = rng.choice(list(client.run(os.getpid).values()))
            timer = threading.Timer(moment, os.kill, (victim, signal.SIGKILL))
            timer.start()
            begin = perf_counter()
            found = on_cluster.fit(clone(model), *parts).coef_
            took = perf_counter() - begin
            timer.join()
            if took < moment:  # the fit ended first
                continue
            hits += 1
            print(
                f"killed after {moment:.2f} s of {seconds:.2f}, took {took:.2f}: "
                f"same bits {np.array_equal(found, expected)}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    others = {"equal": equal, "kill": kill}
    parser.add_argument("what", choices=["speed", "memory", *others])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--block", type=float, default=1.25e5, help="rows per block")
    parser.add_argument("--model", nargs="*", help="some of the models only")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a fit")
    args = parser.parse_args()
    if args.what == "memory":
        memory(int(args.rows), args.limit, args.model)
    elif args.what == "speed":
        speed(int(args.rows), args.features, int(args.block), args.model)
    else:
        others[args.what]()


if __name__ == "__main__":
    main()
