"""Speed and memory of aucmax beside what else does the same work.

``python benchmarks/speed.py JOB … [--repeat N] [--scale S]``, on an idle machine.
``--scale 0.1`` makes generated data ten times smaller.

auc      metrics.auc and scikit-learn's roc_auc_score.
online   one pass of SPAM, SOLAM and PSAM, and of SGDClassifier.
exact    LeastSquaresAUC and BAM, and LogisticRegression.
cv       LeastSquaresAUCCV and BAMCV, and LogisticRegressionCV, with test AUC.
kernel   the Nyström map, and NPSAM and NBAM with it.
read     svmlight files: our reader and load_svmlight_file, MB/s.
csv      CSV files: our reader and pyarrow's, MB/s.
train    from a file to a model, each in a new process: aucmax train, scikit-learn,
         Vowpal Wabbit.
score    aucmax score, from a file to a file.
memory   peak memory of aucmax train and score on pipes (2 GB at --scale 1).
start    imports and the first fit in a new process.
compile  compilation at the first use of each estimator (or those after --sets).
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import aucmax
from aucmax import (
    BAM,
    BAMCV,
    PSAM,
    SOLAM,
    SPAM,
    KMeansNystroem,
    LeastSquaresAUC,
    LeastSquaresAUCCV,
)
from aucmax.io.open_data import open_data
from aucmax.metrics import auc
from bench import (
    Options,
    Row,
    best_of,
    csv_text,
    main,
    normal_rows,
    read,
    repeated,
    shared,
    svmlight_text,
)


def matrices(options: Options) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield names, rows and labels: dense, sparse, and a9a."""
    for n, d in ((500_000, 30), (100_000, 300)):
        X, y = normal_rows(int(options.scale * n), d)
        yield f"dense {len(y):,} x {d}", X, y
    n, d, nnz = int(options.scale * 50_000), 200_000, 75
    rng = np.random.default_rng(0)
    columns = rng.integers(0, d, n * nnz).astype(np.int32)
    start = np.arange(n + 1, dtype=np.int32) * nnz
    X = sparse.csr_matrix((rng.standard_normal(n * nnz), columns, start), shape=(n, d))
    X.sum_duplicates()
    yield f"sparse {n:,} x {d:,}", X, (rng.random(n) < 0.1).astype(int)
    a9a = shared("a9a.train")
    if a9a is not None:
        yield "a9a, sparse", *a9a


def time_auc(options: Options) -> list[Row]:
    rows = []
    auc([0, 1], [0.0, 1.0])  # compiles
    for positives in (0.1, 0.5):
        for size in (100_000, 1_000_000, 10_000_000):
            rng = np.random.default_rng(0)
            y = (rng.random(int(options.scale * size)) < positives).astype(np.int64)
            score = rng.standard_normal(len(y)) + y
            jobs = {
                "aucmax": partial(auc, y, score),
                "scikit-learn": partial(roc_auc_score, y, score),
            }
            name = f"{len(y):,} rows, {positives:.0%} positive"
            rows.append({"data": name} | ratios(options.repeat, jobs))
    return rows


def ratios(repeat: int, jobs: dict[str, Callable[[], Any]]) -> Row:
    """Return milliseconds of each job, and how many times faster than the last."""
    seconds = best_of(repeat, jobs)
    *ours, rival = jobs
    row: Row = {f"{name}, ms": 1e3 * value for name, value in seconds.items()}
    return row | {f"rival / {name}": seconds[rival] / seconds[name] for name in ours}


def fits(models: dict[str, Any], X: Any, y: Any, repeat: int) -> Row:
    """Compile the models on a few rows, and return the ratios of their ``fit``."""
    for model in models.values():
        model.fit(X[:500], y[:500])
    return ratios(repeat, {key: partial(m.fit, X, y) for key, m in models.items()})


def time_online(options: Options) -> list[Row]:
    models = {
        "SPAM": SPAM(max_iter=1),
        "SOLAM": SOLAM(max_iter=1),
        "PSAM": PSAM(max_iter=1),
        "SGDClassifier": SGDClassifier(max_iter=1, tol=None),
    }
    return [
        {"data": name} | fits(models, X, y, options.repeat)
        for name, X, y in matrices(options)
    ]


def time_exact(options: Options) -> list[Row]:
    models = {
        "LeastSquaresAUC": LeastSquaresAUC(),
        "BAM": BAM(),
        "LogisticRegression": LogisticRegression(max_iter=1000),
    }
    return [
        {"data": name} | fits(models, X, y, options.repeat)
        for name, X, y in matrices(options)
        if X.shape[1] < 1000
    ]


def time_cv(options: Options) -> list[Row]:
    models = {
        "LeastSquaresAUCCV, 50 penalties": LeastSquaresAUCCV(50, cv=5),
        "BAMCV, 2 losses, 6 penalties": BAMCV(6, cv=3),
        "LogisticRegressionCV, 6 penalties": LogisticRegressionCV(
            Cs=6, cv=3, scoring="roc_auc", class_weight="balanced", max_iter=1000
        ),
    }
    rows = []
    for name in options.sets or ("a9a", "magic04"):
        found = read(name)
        if found is None:
            continue
        X, X_test, y, y_test = train_test_split(
            found[0].toarray(), found[1], test_size=0.3, random_state=0
        )
        for key, model in models.items():
            model.fit(X[:500], y[:500])  # compiles
            seconds = best_of(1, {key: partial(model.fit, X, y)})[key]
            area = auc(y_test, model.decision_function(X_test))
            rows.append({"data": name, "model": key, "seconds": seconds, "AUC": area})
    return rows


def time_kernel(options: Options) -> list[Row]:
    X, _ = normal_rows(int(options.scale * 20_000), 54)
    nystroem = KMeansNystroem(1600, random_state=0).fit(X)
    L, C = nystroem.landmarks_, nystroem.components_
    jobs = {
        "map": lambda: nystroem.features(X, np.float64),
        "two matrix products": lambda: (X @ L) @ C,
    }
    rows = [{"data": "1600 landmarks", **ratios(options.repeat, jobs)}]
    for name in options.sets or ("ijcnn1",):
        found = read(name)
        if found is None:
            continue
        X, X_test, y, y_test = train_test_split(
            found[0].toarray(), found[1], test_size=0.3, random_state=0
        )
        for key in ("NPSAM", "NBAM"):
            model = aucmax.named(key, random_state=0)
            seconds = best_of(options.repeat, {key: partial(model.fit, X, y)})[key]
            area = auc(y_test, model.decision_function(X_test))
            rows.append({"data": f"{name}, {key}", "seconds": seconds, "AUC": area})
    return rows


def passed(path: Path, **options: Any) -> None:
    """Read a file with our reader."""
    for _ in open_data([str(path)], **options).batches():
        pass


def rates(path: Path, repeat: int, jobs: dict[str, Callable[[], Any]]) -> Row:
    """Return MB/s of each job; the first is run once before, to compile."""
    next(iter(jobs.values()))()
    size = path.stat().st_size / 1e6
    seconds = best_of(repeat, jobs)
    return {"MB": size} | {f"{key}, MB/s": size / seconds[key] for key in jobs}


def time_read(options: Options) -> list[Row]:
    rows = []
    with TemporaryDirectory() as folder:
        for kind in ("numbers", "words", "ones"):
            path = Path(folder, f"{kind}.svm")
            repeated(path, svmlight_text(kind, 2000), options.scale * 75e6)
            jobs = {
                "aucmax": partial(passed, path),
                "load_svmlight_file": partial(load_svmlight_file, str(path)),
            }
            rows.append({"data": kind, **rates(path, options.repeat, jobs)})
    return rows


def csv_tables(n: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield tables of numbers, of integers, and of numbers with categories."""
    rng = np.random.default_rng(0)
    label = {"y": rng.integers(0, 2, n)}
    numbers = {f"x{j}": rng.normal(size=n).round(6) for j in range(20)}
    yield "numbers, 6 digits", pa.table(numbers | label)
    yield "numbers, 17 digits", pa.table({k: rng.random(n) for k in numbers} | label)
    integers = {f"x{j}": rng.integers(0, 256, n) for j in range(100)}
    yield "integers", pa.table(integers | label)
    words = {
        f"c{j}": [f"value {k}" for k in rng.integers(0, 10 ** (j // 2 + 1), n)]
        for j in range(8)
    }
    yield "numbers and categories", pa.table(numbers | words | label)


def matrix(path: Path) -> np.ndarray:
    """Read a CSV file of numbers with pyarrow into one array."""
    table = arrow_csv.read_csv(str(path))
    X = np.empty((len(table), table.num_columns))
    for j in range(table.num_columns):
        X[:, j] = table.column(j).to_numpy()
    return X


def time_csv(options: Options) -> list[Row]:
    rows = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "data.csv")
        for name, table in csv_tables(max(int(options.scale * 400_000), 1000)):
            arrow_csv.write_csv(table, str(path))
            jobs: dict[str, Callable[[], Any]] = {
                "aucmax": partial(passed, path, label="y")
            }
            for threads in (False, True):
                given = arrow_csv.ReadOptions(use_threads=threads)
                key = "pyarrow" if threads else "pyarrow, one thread"
                jobs[key] = partial(arrow_csv.read_csv, str(path), given)
            if "c0" not in table.column_names:  # strings have no matrix
                jobs["pyarrow to a matrix"] = partial(matrix, path)
            rows.append({"data": name, **rates(path, options.repeat, jobs)})
    return rows


_SKLEARN = """
import sys
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file(sys.argv[1])
X.indices, X.indptr = X.indices.astype("int32"), X.indptr.astype("int32")
SGDClassifier(loss="log_loss", max_iter=1, tol=None).fit(X, y)
"""
_VOWPAL = """
import sys
import vowpalwabbit
options = "--quiet --loss_function logistic"
vowpalwabbit.Workspace(f"{options} -d {sys.argv[1]} -f {sys.argv[1]}.model").finish()
"""


def python(*arguments: str, **environment: str) -> None:
    """Run Python in a new process."""
    command = [sys.executable, *map(str, arguments)]
    env = {**os.environ, **environment}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)


def time_train(options: Options) -> list[Row]:
    rows = []
    with TemporaryDirectory() as folder:
        for kind in ("numbers", "words"):
            path = Path(folder, f"{kind}.svm")
            text = svmlight_text(kind, 5000)
            repeated(path, text, options.scale * 1e9)
            train = ("-m", "aucmax", "train", path, "-o", path.with_suffix(".aucmax"))
            spam = (*train, "--algorithm", "SPAM", "--param", "max_iter=1")
            jobs = {
                "AUCStream": partial(python, *train, "--algorithm", "AUCStream"),
                "SPAM": partial(python, *spam),
                "scikit-learn": partial(python, "-c", _SKLEARN, path),
            }
            try:
                import vowpalwabbit  # noqa: F401

                other = path.with_suffix(".vw")
                text = re.sub(r"(?m)^([+-]1) ", r"\1 | ", text)
                repeated(other, text, path.stat().st_size)
                jobs["Vowpal Wabbit"] = partial(python, "-c", _VOWPAL, other)
            except ImportError:
                pass
            for compiles in ("AUCStream", "SPAM"):
                jobs[compiles]()
            size = path.stat().st_size / 1e6
            seconds = best_of(options.repeat, jobs)
            row: Row = {"data": f"{kind}, {size:,.0f} MB"}
            rows.append(row | {f"{key}, s": value for key, value in seconds.items()})
    return rows


def time_score(options: Options) -> list[Row]:
    rows = []
    with TemporaryDirectory() as folder:
        for kind in ("numbers", "words"):
            path, model = Path(folder, f"{kind}.svm"), Path(folder, "model.aucmax")
            text = svmlight_text(kind, 5000)
            repeated(path, text, 0)
            python("-m", "aucmax", "train", path, "-o", model, "--algorithm", "SPAM")
            repeated(path, text, options.scale * 300e6)
            command = ("-m", "aucmax", "score", model, path, "-o", f"{path}.scores")
            jobs = {"aucmax score": partial(python, *command)}
            rows.append({"data": kind, **rates(path, options.repeat, jobs)})
    return rows


def peak(arguments: list[str], head: str, text: str, size: float) -> tuple[float, Row]:
    """Pipe text into a command; return its peak memory in MB, and its speed."""
    command = [sys.executable, "-m", "aucmax", *arguments]
    start, data = perf_counter(), text.encode()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stdin is not None
    process.stdin.write(head.encode())
    times = max(round(size / len(data)), 1)
    for _ in range(times):
        process.stdin.write(data)
    process.stdin.close()
    # wait4 would include this process, from which the child was forked.
    status, most = Path(f"/proc/{process.pid}/status"), 0
    while process.poll() is None:
        found = re.search(r"VmHWM:\s*(\d+)", status.read_text())
        most = int(found[1]) if found else most
        sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed")
    rate = times * len(data) / 1e6 / (perf_counter() - start)
    return most / 1024, {"MB": times * len(data) / 1e6, "MB/s": rate}


def time_memory(options: Options) -> list[Row]:
    rows = []
    lines = max(int(options.scale * 2_000_000), 20_000)
    table = ["--input", "format=csv", "--label", "label"]
    with TemporaryDirectory() as folder:
        model = str(Path(folder, "model.aucmax"))
        for kind, head, text, given in (
            ("svmlight", "", svmlight_text("words", 20_000), []),
            ("CSV", "amount,day,town,remark,label\n", csv_text(lines), table),
        ):
            for arguments in (
                ["train", "-", "-o", model, *given],
                ["score", model, "-"],
            ):
                for size in (options.scale * 1e8, options.scale * 2e9):
                    memory, speed = peak(arguments, head, text, size)
                    name = f"{kind}, aucmax {arguments[0]}"
                    rows.append({"data": name, "peak MB": memory, **speed})
    return rows


_FIT = """
import numpy as np
from aucmax import SPAM
X = np.random.default_rng(0).standard_normal((500, 10))
SPAM().fit(X, X[:, 0] > 0)
"""
_STARTS = {
    "python alone": "pass",
    "import aucmax": "import aucmax",
    "import sklearn.linear_model": "import sklearn.linear_model",
    "from aucmax import SPAM": "from aucmax import SPAM",
    "first fit, kernels in the cache": _FIT,
}


def time_start(options: Options) -> list[Row]:
    with TemporaryDirectory() as cache:
        cold = best_of(1, {"": partial(python, "-c", _FIT, NUMBA_CACHE_DIR=cache)})[""]
        jobs = {
            name: partial(python, "-c", code, NUMBA_CACHE_DIR=cache)
            for name, code in _STARTS.items()
        }
        seconds = best_of(options.repeat, jobs)
    seconds["first fit, nothing compiled"] = cold
    return [{"data": name, "seconds": value} for name, value in seconds.items()]


_COMPILE = """
import sys, time, warnings
import numpy as np
from scipy import sparse
import aucmax
warnings.simplefilter("ignore")
X = np.random.default_rng(0).standard_normal((60, 5))
estimator = getattr(aucmax, sys.argv[1])
def seconds(method, X):
    model = estimator()
    start = time.perf_counter()
    getattr(model, method)(X, np.arange(60) % 2)
    return time.perf_counter() - start
for method in ("fit", "partial_fit"):
    for layout in (X, sparse.csr_array(X)):
        known = hasattr(estimator(), method)
        print(seconds(method, layout) - seconds(method, layout) if known else "nan")
"""


def time_compile(options: Options) -> list[Row]:
    """Return the first fit less the second, for each estimator in a new process."""
    columns = ("fit, dense", "then CSR", "then a stream", "then CSR chunks")
    rows: list[Row] = []
    for name in options.sets or aucmax.ESTIMATORS:
        with TemporaryDirectory() as cache:
            done = subprocess.run(
                [sys.executable, "-c", _COMPILE, name],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                capture_output=True,
                check=True,
                text=True,
            )
        seconds = map(float, done.stdout.split())
        rows.append({"data": name, **dict(zip(columns, seconds, strict=True))})
    return rows


JOBS = {
    name.removeprefix("time_"): job
    for name, job in list(globals().items())
    if name.startswith("time_")
}

if __name__ == "__main__":
    main(__doc__, JOBS)
