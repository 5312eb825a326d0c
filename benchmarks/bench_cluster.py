"""What a cluster of two local worker processes gives, beside one process.

    python benchmarks/bench_cluster.py equal              # weights, five real sets
    python benchmarks/bench_cluster.py cells              # larger ones, squared hinge
    python benchmarks/bench_cluster.py kill               # kill -9 at five moments
    python benchmarks/bench_cluster.py memory --rows 1e8  # peak of the workers
    python benchmarks/bench_cluster.py speed --rows 2e7   # bars of docs/scale.md
    python benchmarks/bench_cluster.py streams            # learners, averaged
    python benchmarks/bench_cluster.py cost               # ns a row and pass
    python benchmarks/bench_cluster.py passes             # a path without its second

Times want a machine with nothing else on it. AUCMAX_DATA names the folder of the sets.
"""

import argparse
import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from unittest.mock import patch

import dask
import numpy as np
from dask.delayed import delayed
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from aucmax import BAM, OAM, PSAM, SPAM, LeastSquaresAUC, LeastSquaresAUCCV
from aucmax import cluster as on_cluster
from aucmax.base.folds import areas, folds
from aucmax.cluster import pairs
from aucmax.cluster.areas import Judges, _judge
from aucmax.cluster.blocks import Block
from aucmax.cluster.folds import fold_of
from aucmax.cluster.moments import gathered
from aucmax.cluster.pairs import LOSSES
from aucmax.cluster.requests import Back, Look, Rows, Weigh, answered
from aucmax.core.rows import as_rows
from aucmax.core.threads import one_thread
from aucmax.linear.least_squares_cv import path
from aucmax.linear.solvers.covariances import gather
from aucmax.metrics import auc

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from data import shared

SETS = ["german", "spambase", "phishing", "a9a.train", "ijcnn1.train"]
LARGE = ["cover_odds", "donors", "http"]  # a quarter to half a million rows
STREAMED = ["spambase", "phishing", "a9a.train", "ijcnn1.train", "magic04", "cod-rna"]
SIZES = [1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000]  # of memory


@contextmanager
def workers(count=2, memory="auto"):
    """Give a client of some worker processes of one thread each."""
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
    pairs = list(pairwise([0, *ends, X.shape[0]]))
    return [[delayed(some[a:b]) for a, b in pairs] for some in (X, y)]


def apart(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def rows(number, count, d):
    """Make a block: classes apart by a tenth of a deviation in each feature."""
    rng = np.random.default_rng(number)
    X = rng.standard_normal((count, d))
    y = rng.random(count) < 0.2
    X += 0.1 * y[:, np.newaxis]
    return X, y


def generated(n, d, block):
    counts = [min(block, n - start) for start in range(0, n, block)]
    both = [
        delayed(rows, pure=True, nout=2)(number, count, d)
        for number, count in enumerate(counts)
    ]
    return [X for X, _ in both], [y for _, y in both]


def equal():
    """Print how far weights are from one machine's; and dense rows from CSR, there."""
    rng = np.random.default_rng(0)
    models = [LeastSquaresAUC()]
    models += [BAM(loss=loss) for loss in ("squared_hinge", "logistic", "sigmoid")]
    with workers():
        for name in SETS:
            X, y = shared(name)
            for model in models:
                dense = clone(model).fit(X.toarray(), y)
                for layout, Z in (("dense", X.toarray()), ("CSR", X)):
                    alone = clone(model).fit(Z, y)
                    ends = np.sort(rng.integers(0, X.shape[0], rng.integers(1, 12)))
                    found = on_cluster.fit(clone(model), *cut(Z, y, ends))
                    off = apart(found.coef_, alone.coef_)
                    print(
                        f"{name:13} {layout:6} {len(ends) + 1:3} parts {model!r:22} "
                        f"{off:.1e}; layouts {apart(alone.coef_, dense.coef_):.1e}",
                        flush=True,
                    )


def cells():
    """Print what cells of the squared hinge change, and what it takes to have none."""
    with workers():
        for name in LARGE:
            X, y = shared(name)
            X = X.toarray()
            ends = np.linspace(0, X.shape[0], 9).astype(int)[1:-1]
            parts = [list(dask.persist(*some)) for some in cut(X, y, ends)]
            for tol in (1e-3, 1e-8):
                begin = perf_counter()
                alone = BAM(tol=tol).fit(X, y).coef_
                seconds = [perf_counter() - begin]
                off = []
                for few in (pairs.FEW, 0):
                    with patch.object(pairs, "FEW", few):
                        on_cluster.fit(BAM(max_iter=1), *parts)  # compiles
                        begin = perf_counter()
                        found = on_cluster.fit(BAM(tol=tol), *parts)
                        seconds.append(perf_counter() - begin)
                    off.append(apart(found.coef_, alone))
                print(
                    f"{name:13} tol={tol:.0e}: one machine {seconds[0]:.1f} s; exact "
                    f"{seconds[1]:.1f} s, apart {off[0]:.1e}; in cells "
                    f"{seconds[2]:.1f} s, apart {off[1]:.1e}",
                    flush=True,
                )


def _process():
    return os.getpid()


def kill():
    rng = np.random.default_rng()
    X, y = shared("ijcnn1.train")
    ends = np.linspace(0, X.shape[0], 13).astype(int)[1:-1]
    parts, model = cut(X, y, ends), BAM(loss="logistic", tol=1e-8)
    whole, hits = None, 0
    while hits < 5:
        with workers() as client:
            found = on_cluster.fit(clone(model), *parts).coef_  # has to be compiled
            whole = found if whole is None else whole
            begin = perf_counter()
            on_cluster.fit(clone(model), *parts)
            seconds = perf_counter() - begin
            moment = rng.uniform(0.0, seconds)
            victim = rng.choice(list(client.run(_process).values()))
            timer = threading.Timer(moment, os.kill, (victim, signal.SIGKILL))
            timer.start()
            begin = perf_counter()
            found = on_cluster.fit(clone(model), *parts).coef_
            took = perf_counter() - begin
            timer.join()
            if took < moment:  # it was over before
                continue
            hits += 1
            print(
                f"killed after {moment:.2f} s of {seconds:.2f}, took {took:.2f}: "
                f"same bits {np.array_equal(found, whole)}",
                flush=True,
            )


def _peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return np.nan


def memory(n, limit, wanted):
    """Print the workers' peak memory; they have 2 GB each, so that BAM keeps no rows.

    (Of few rows it does; what is printed are sizes of which it does not.)
    """
    models = {
        "LeastSquaresAUC": (LeastSquaresAUC(), SIZES),
        "LeastSquaresAUCCV": (LeastSquaresAUCCV(), SIZES),
        "squared_hinge": (BAM(), SIZES[3:]),
        "logistic": (BAM(loss="logistic"), SIZES[3:]),
    }
    for name in wanted or models:
        model, sizes = models[name]
        with workers():  # a first cluster compiles what is to be compiled
            on_cluster.fit(clone(model), *generated(10_000, 20, 5000))
        seconds = 0.0
        for size in sizes:
            if size > n or seconds * 3.4 > limit:
                break
            with workers(memory="2GB") as client:
                begin = perf_counter()
                on_cluster.fit(clone(model), *generated(size, 20, 500_000))
                seconds = perf_counter() - begin
                peak = max(client.run(_peak).values())
            print(
                f"{name:18} {size:.0e} rows {seconds:6.1f} s, peak {peak:.0f} MB",
                flush=True,
            )


def speed(n, d, block, wanted):
    """Print times of one process and of two workers, both with the rows in memory.

    A Newton step is what BAM takes beyond LeastSquaresAUC, which looks at the rows and
    takes their moments as BAM does, over its number of steps.
    """
    models = {
        "LeastSquaresAUC": LeastSquaresAUC(),
        "LeastSquaresAUCCV": LeastSquaresAUCCV(),
        "squared_hinge": BAM(),
        "logistic": BAM(loss="logistic"),
    }
    if wanted:
        models = {name: models[name] for name in ("LeastSquaresAUC", *wanted)}
    X = np.empty((n, d))
    y = np.empty(n, bool)
    for number, start in enumerate(range(0, n, block)):
        stop = min(start + block, n)
        X[start:stop], y[start:stop] = rows(number, stop - start, d)
    one = {}
    for name, model in models.items():
        clone(model).fit(X[:10_000], y[:10_000])
        alone = clone(model)
        if name == "LeastSquaresAUCCV":  # with the folds of the cluster
            alone.cv = PredefinedSplit(fold_of(np.arange(n), 5))
        begin, cpu = perf_counter(), process_time()
        fitted = alone.fit(X, y)
        one[name] = perf_counter() - begin, process_time() - cpu, fitted
    del X, y
    with workers() as client:
        parts = [list(dask.persist(*some)) for some in generated(n, d, block)]
        dask.compute(parts[1])
        base = None
        for name, model in models.items():
            alone, alone_cpu, before = one[name]
            on_cluster.fit(clone(model), *[some[:4] for some in parts])
            passes = []
            begin, cpu = perf_counter(), sum(client.run(process_time).values())
            fitted = on_cluster.fit(clone(model), *parts, watch=passes.append)
            seconds = perf_counter() - begin
            cpu = sum(client.run(process_time).values()) - cpu
            off = apart(fitted.coef_, before.coef_)
            print(
                f"{name:17} one process {alone:6.2f} s, cluster {seconds:6.2f} s "
                f"({seconds / alone:.2f} x); CPU {alone_cpu:.2f} and {cpu:.2f} s "
                f"({cpu / alone_cpu:.2f} x); {len(passes)} passes, weights apart "
                f"{off:.0e}",
                flush=True,
            )
            if name == "LeastSquaresAUCCV":
                off = np.abs(fitted.scores_ - before.scores_).max()
                print(
                    f"{'':17} AUC of folds apart {off:.0e}, of the path between "
                    f"{before.scores_.mean(axis=1).min():.8f} and "
                    f"{before.scores_.mean(axis=1).max():.8f}; l2 {before.l2_:.3g} and "
                    f"{fitted.l2_:.3g}",
                    flush=True,
                )
            if base is None:
                base = alone, seconds
            elif isinstance(model, BAM):
                steps = [
                    (some - less) / one_fit.n_iter_
                    for some, less, one_fit in zip(
                        (alone, seconds), base, (before, fitted), strict=True
                    )
                ]
                print(
                    f"{'':17} a step {steps[0]:.2f} and {steps[1]:.2f} s "
                    f"({steps[1] / steps[0]:.2f} x), {before.n_iter_} and "
                    f"{fitted.n_iter_} of them",
                    flush=True,
                )


def averaged(model, X, y, order, size):
    """Return the AUC of learners of partitions of so many rows, and of one learner."""
    half = len(order) // 2
    train, test = order[:half], order[half:]
    parts = np.array_split(train, max(round(half / size), 1))
    with warnings.catch_warnings(), dask.config.set(scheduler="sync"):
        warnings.simplefilter("ignore")  # that partitions are small
        found = on_cluster.fit(
            clone(model), [X[some] for some in parts], [y[some] for some in parts]
        )
    alone = clone(model).partial_fit(X[train], y[train], classes=[False, True])
    scores = (one.decision_function(X[test]) for one in (found, alone))
    return [auc(y[test], score) for score in scores]


def streams(seeds=3):
    """Print what averaging the learners of partitions loses, in AUC."""
    for size in (100, 300, 1000, 3000):
        for kind in (SPAM, OAM, PSAM):
            lost = []
            for name in STREAMED:
                X, y = shared(name)
                y = y == y.max()
                for seed in range(seeds if X.shape[0] >= 4 * size else 0):
                    order = np.random.default_rng(seed).permutation(X.shape[0])
                    model = kind(random_state=seed)
                    found, alone = averaged(model, X, y, order, size)
                    lost.append(alone - found)
            print(
                f"{size:5} rows a partition, {kind.__name__:5}: loses "
                f"{np.mean(lost):+.4f}, at worst {np.max(lost):+.4f}, of {len(lost)}",
                flush=True,
            )


def passes():
    """Print what choosing a penalty by moments would lose, which takes no second pass.

    Moments of a fold give the square loss of its pairs, and the AUC that there would be
    if scores were normal.
    """
    for name in [*SETS, "svmguide3.train", "magic04", "cod-rna", "cover_odds"]:
        X, y = shared(name)
        X, signed = X.toarray(), np.where(y == y.max(), 1.0, -1.0)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = np.array_split(order, 2)
        Z, some = np.ascontiguousarray(X[train]), signed[train]
        model, d = LeastSquaresAUCCV().fit(Z, some), X.shape[1]
        whole = gather(as_rows(Z), some, d)
        square, normal = 0.0, 0.0
        for _, out in folds(5, Z, some, ""):
            part = gather(as_rows(Z), some, d, out)
            H, delta, varies = part.quadratic()
            W = path(whole - part, model.l2s_, model.scale_)[varies]
            apart, curved = delta @ W, np.sum(W * (H @ W), axis=0)
            square = square + 1.0 - 2.0 * apart + curved
            normal = normal + apart / np.sqrt(np.maximum(curved - apart**2, 1e-300))
        found = areas(X[test], signed[test], model.coef_path_.T, False)
        best = found[model.scores_.mean(axis=1).argmax()]
        print(
            f"{name:16} test AUC {best:.4f}; by the square loss of folds "
            f"{found[square.argmin()] - best:+.4f}, by the AUC of normal scores "
            f"{found[normal.argmax()] - best:+.4f}",
            flush=True,
        )


def cost():
    """Print the CPU time of a row in each pass, of one worker of one thread."""
    with workers(1) as client:
        for d in (30, 100):
            print("\n".join(client.submit(_costs, d).result()), flush=True)


def _costs(d):
    """Return lines of times; in a worker, whose memory is not that of a process."""
    lines = []
    n = 30_000_000 // d
    X, y = rows(0, n, d)
    block = Block(X, np.where(y, 1.0, -1.0), 0, None)
    weight = Rows(np.array([y.sum(), (~y).sum()], float))
    w = np.full(d, 0.1)
    W = np.random.default_rng(0).standard_normal((d, 50))
    unit = np.full(50, d**0.5)
    judges = Judges([W] * 5, [np.zeros(50)] * 5, [unit] * 5, False, True)
    jobs = {
        "moments": lambda block=block: gathered(block, 1),
        "of 5 folds": lambda block=block: gathered(block, 5),
        "areas of 50": lambda block=block, judges=judges: _judge(block, judges),
    }
    for name in ("squared_hinge", "logistic"):
        loss = LOSSES[name]
        look = Look(weight, name, w, 0)
        field = loss.field(answered(block, [look])[0], 0)
        weigh = Weigh(weight, name, w, field, w)
        across = loss.across(field, answered(block, [weigh])[0])
        asked = {
            "loss": look,
            "slope": Back(weight, name, w, field),
            "Hv 1": weigh,
            "Hv 2": Back(weight, name, w, field, w, across),
        }
        for what, request in asked.items():
            jobs[f"{name} {what}"] = lambda block=block, request=request: answered(
                block, [request]
            )
        sent = sum(grid.nbytes for grid in field.grids)
        lines.append(
            f"d = {d}: field of {name}: {sent / 1e3:.0f} kB, across "
            f"{across.nbytes / 1e3:.0f} kB"
        )
    with one_thread():
        for what, job in jobs.items():
            job()
            best = np.inf
            for _ in range(5):
                begin = process_time()
                job()
                best = min(best, process_time() - begin)
            lines.append(f"d = {d}: {what:20} {best / n * 1e9:6.0f} ns a row")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    others = {
        "equal": equal,
        "cells": cells,
        "kill": kill,
        "streams": streams,
        "cost": cost,
        "passes": passes,
    }
    parser.add_argument("what", choices=["memory", "speed", *others])
    parser.add_argument("--rows", type=float, default=2e6)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--block", type=float, default=2.5e5)
    parser.add_argument("--model", nargs="*", help="some of them only")
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
