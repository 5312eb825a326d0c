"""Fuzz model files: a tampered file must work or raise a ValueError.

    python tools/fuzz_models.py                     # 10,000 mutations, many minutes
    python tools/fuzz_models.py 500 --only OAM      # estimators whose name contains OAM
    python tools/fuzz_models.py 1 --first 4711      # repeat mutation 4711

Each mutation changes numbers, shapes or names of arrays, or values of the header, and
writes a file with a valid checksum. The file is loaded, scores rows, is trained
further, and is used as by ``aucmax score``, in a subprocess with bounds checks. Any
other exception, a crash or a timeout is a finding. The exit code is 1 if there is one.
"""

import argparse
import copy
import json
import os
import resource
import signal
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np
from scipy import sparse

import aucmax
from aucmax.blend.boosting import BoostedTrees
from aucmax.cli import info
from aucmax.io.open_data import open_data
from aucmax.storage import model_file as tensors
from aucmax.storage.state import flatten
from aucmax.workflows.score import Model

MUTATIONS = 10_000
SECONDS = 60  # per mutation, including compilation
MEMORY = 12 << 30  # bytes of address space
NUMBERS = [
    *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 7.0, 1e9, -1e9),
    *(2.0**31, 2.0**32, 2.0**53, 2.0**63, -(2.0**63), 2.0**64, 1e300, -1e300, 5e-324),
]
# Replacements for values of the header.
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 7, 0.5, -0.5, 1e300, 10**9, 10**30, "", "x", "1"),
    *(625, 10**15, 2**63, -(2**31)),  # positions of a RandomState, and sizes
    *(float("nan"), float("inf"), [], {}, [[]], [1, 1], [None], ["x", "x"], {"x": 1}),
    *({"class": "SPAM", "parameters": {}}, {"class": "x"}, {"RandomState": []}),
]
POSITIONS = [0, 1, -1, 2, 624, 625, 10**6, 10**9, -(10**9), 2**32, 0.5, True, None]
HUGE = [10**6, 2**27, 10**9, 2**31, 2**32 + 5, 10**15, 2**63]  # numbers of features
TABLE = "label,a,b,c,d\n1,0.5,1,x,2\n0,-1,,y,0.25\n1,2,0,z,1\n0,0,3,x,1\n"
LINES = "1 1:0.5 4:2\n0 2:1 3:-1\n1 1:2 5:1\n"


def kinds() -> list[Any]:
    """Return small learners, one for each kind of state."""
    small = {"buffer_size": 3, "max_iter": 2, "random_state": 0, "cv": 2}
    small["n_batches"] = 5
    few = {"n_components": 3, "first_rows": 10, "rank": 2}
    found = [getattr(aucmax, name)() for name in aucmax.ESTIMATORS if name != "Chain"]
    found += [
        aucmax.CBR(covariance="diag"),
        aucmax.CBR(policy="reservoir", precondition=False),
        aucmax.OPAUC(rank=2),
        aucmax.SPAM(l1=0.01),
        aucmax.OAM(policy="reservoir"),
        aucmax.OAM(update="gra"),
        aucmax.SOLAM(norm="l1", radius=1.0),
        aucmax.PSAM(rskip=3, askip=5),
        aucmax.LeastSquaresAUC(solver="cg"),
        aucmax.AUCStream(half_life=20.0),
        aucmax.AUCStream(nonlinear=False),
        aucmax.Chain(aucmax.KMeansNystroem(3, random_state=0), aucmax.BAM()),
        aucmax.Chain(aucmax.RandomFourier(4, random_state=0), aucmax.OAM()),
        aucmax.Chain(aucmax.Projection(2, random_state=0), aucmax.LeastSquaresAUC()),
        aucmax.AUCClassifier([("trees", BoostedTrees(2))], cv=2),
    ]
    for model in found:
        known = model.get_params(deep=False)
        wanted = small if known.get("rank", 0) is None else small | few
        model.set_params(**{key: wanted[key] for key in wanted.keys() & known.keys()})
    seed = {"random_state": np.random.RandomState(0)}  # its state is in the file
    found += [kind(**seed) for kind in (aucmax.SPAM, aucmax.PSAM, aucmax.ASAM)]
    fourier = aucmax.RandomFourier(4, **seed)
    found.append(aucmax.Chain(fourier, aucmax.SAM(**seed), first_rows=10))
    return found


def rows(seed: int = 0) -> tuple[Any, Any]:
    """Return 40 rows of four features, many of them zero."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((40, 4)), 1) * (rng.random((40, 4)) < 0.6)
    X[:, 0] = rng.standard_normal(40)
    y = (X[:, 0] + rng.standard_normal(40) > 0.5).astype(int)
    return X, y


def originals(only: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return descriptions, headers and arrays of trained models."""
    found = []
    X, y = rows()
    table, lines = _recipes()
    for model in kinds():
        if only not in type(model).__name__:
            continue
        for method in ("fit", "partial_fit"):
            for layout in (np.asarray, sparse.csr_array):
                if not hasattr(model, method):
                    continue
                trained = getattr(copy.deepcopy(model), method)(layout(X), y)
                header, arrays = flatten(trained.state())
                if layout is np.asarray or method == "partial_fit":
                    header["recipe"] = table if layout is np.asarray else lines
                header = json.loads(json.dumps(header))  # as in a file
                what = " ".join(repr(model).split())
                found.append((f"{what}.{method}", header, arrays))
    return found


def _recipes() -> list[dict[str, Any]]:
    """Return the reader settings of models, for a CSV table and svmlight text."""
    rest = {
        "task": {"positive": [1.0], "negative": [0.0]},
        "training": {"algorithm": "SPAM", "rows": 4, "positives": 2},
    }
    options = {"label": "label", "encode": "onehot", "missing": "impute"}
    with TemporaryDirectory() as folder:
        table, lines = Path(folder, "a.csv"), Path(folder, "a.svm")
        table.write_text(TABLE)
        lines.write_text(LINES)
        sources = open_data([str(table)], **options), open_data([str(lines)])
        return [{"input": source.recipe(), **rest} for source in sources]


def mutate(header: Any, arrays: Any, rng: Any) -> tuple[Any, Any, str]:
    """Return a changed header and arrays, and a description of the change."""
    header, arrays = copy.deepcopy(header), dict(arrays)
    done = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if rng.random() < 0.05:
            done.append(_widen(header, int(HUGE[rng.integers(len(HUGE))])))
        elif (states := list(_random_states(header))) and rng.random() < 0.3:
            done.append(_mutate_state(states[rng.integers(len(states))], rng))
        elif not arrays or rng.random() < 0.35:
            done.append(_mutate_header(header, rng))
        else:
            done.append(_mutate_array(arrays, rng))
    return header, arrays, "; ".join(done)


def _random_states(value: Any) -> Any:
    """Yield the states of random generators in a header."""
    if isinstance(value, dict):
        state = value.get("RandomState")
        if isinstance(state, list) and len(state) == 5:
            yield state
        for inner in value.values():
            yield from _random_states(inner)


def _mutate_state(state: list[Any], rng: Any) -> str:
    """Change one part of a state: kind, keys, pos, has_gauss, gauss."""
    place = int(rng.choice([1, 2, 2, 2, 3, 4]))  # NumPy does not check the second
    value = POSITIONS[rng.integers(len(POSITIONS))]
    state[place] = value if place > 1 else [value] * int(rng.choice([0, 623, 624]))
    return f"RandomState[{place}]: {value}"


def _widen(header: Any, width: int) -> str:
    """Set the number of features of the model and of its parts."""
    if isinstance(header, dict) and isinstance(header.get("attributes"), dict):
        header["attributes"]["n_features_in_"] = width
        parts = header.get("parts")
        for part in parts.values() if isinstance(parts, dict) else ():
            _widen(part, width)
    return f"n_features_in_: {width}"


def _mutate_header(header: Any, rng: Any) -> str:
    """Change one value of the header, or remove it."""
    places = list(_places(header, ()))
    path = places[rng.integers(len(places))]
    inner = header
    for key in path[:-1]:
        inner = inner[key]
    key, value = path[-1], copy.deepcopy(ODD[rng.integers(len(ODD))])
    change = rng.choice(["replace", "replace", "remove", "nest", "swap"])
    if change == "remove":
        del inner[key]
    elif change == "nest":
        for _ in range(rng.choice([1, 5, 900])):
            value = rng.choice(["x", "parts", "class", "parameters"]).item(), value
            value = dict([value])
        inner[key] = value
    elif change == "swap":
        other = places[rng.integers(len(places))]
        value = header
        for step in other:
            value = value[step]
        value = inner[key] = copy.deepcopy(value)
    else:
        inner[key] = value
    said = "nothing" if change == "remove" else str(value)[:60]
    return f"header {'.'.join(map(str, path))}: {change}, {said}"


def _places(value: Any, path: tuple[Any, ...]) -> Any:
    """Yield the paths to all values in JSON."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value[:20])
    for key, inner in items:
        yield (*path, key)
        yield from _places(inner, (*path, key))


def _mutate_array(arrays: Any, rng: Any) -> str:
    """Change numbers of an array, its shape or its name."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = np.array(arrays[name], np.float64)
    change = rng.choice(
        ["one", "one", "one", "some", "all", "shuffle", "shape", "name", "swap", "near"]
    )
    value = NUMBERS[rng.integers(len(NUMBERS))]
    flat = array.reshape(-1)
    if change == "name":
        arrays[f"{name}x" if rng.random() < 0.5 else "x"] = arrays.pop(name)
    elif change == "swap":
        other = sorted(arrays)[rng.integers(len(arrays))]
        arrays[name], arrays[other] = arrays[other], arrays[name]
        value = other
    elif change == "shape":
        arrays[name] = _other_shape(array, rng)
        value = arrays[name].shape
    elif flat.size:
        used = np.flatnonzero(flat)
        place = rng.integers(flat.size)
        if used.size and rng.random() < 0.7:  # most of a buffer may be empty
            place = used[rng.integers(used.size)]
        if change == "one":
            flat[place] = value
        elif change == "near":
            value = rng.choice([-2.0, -1.0, 1.0, 2.0])
            flat[place] += value
        elif change == "some":
            flat[rng.random(flat.size) < 0.3] = value
        elif change == "all":
            flat[:] = value
        else:
            rng.shuffle(flat)
        arrays[name] = array
    return f"{name}: {change}, {value}"


def _other_shape(array: Any, rng: Any) -> Any:
    """Return the array in another shape."""
    way = rng.integers(5)
    if way == 0 or array.ndim == 0:
        return array[np.newaxis]
    if way == 1:
        return array.T if array.ndim > 1 else array[:0]
    axis = rng.integers(array.ndim)
    if way == 2:
        return np.concatenate([array, array], axis)
    if way == 3:
        return np.take(array, range(array.shape[axis] // 2), axis)
    return array.reshape(-1)


def use(path: Path) -> None:
    """Load a file and call everything that can be called on it."""
    X, y = rows(1)
    model = Model.load(path)
    estimator, labels = model.estimator, model.estimator.classes_[y]
    for data in (X, sparse.csr_array(X)):
        _attempt(estimator.decision_function, data)
        if hasattr(estimator, "partial_fit"):
            _attempt(estimator.partial_fit, data, labels)
    _attempt(estimator.predict, X)
    _attempt(model.task)
    _attempt(_described, path)
    if model.recipe is not None:
        for suffix, text in ((".csv", TABLE), (".svm", LINES)):
            data = path.with_suffix(suffix)
            data.write_text(text)
            _attempt(_scored, model, data)
    _attempt(estimator.save, path.with_suffix(".again"))


def _described(path: Path) -> None:
    json.dumps(info.describe(path))


def _scored(model: Model, data: Path) -> None:
    for chunk in model.open([str(data)]).batches():
        model.score(chunk.rows)


def _attempt(step: Any, *given: Any) -> None:
    try:
        step(*given)
    except ValueError as error:
        if not str(error):
            raise AssertionError("an error without a message") from error


def work(first: int, count: int, only: str, folder: Path) -> None:
    """Try mutations; print each first, to identify a crash."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    models = originals(only)
    path = folder / "model.aucmax"
    refused = 0
    for number in range(first, first + count):
        rng = np.random.default_rng(number)
        what, header, arrays = models[number % len(models)]
        try:
            header, arrays, done = mutate(header, arrays, rng)
            tensors.write(path, header, arrays)
        except RecursionError:
            continue  # nested too deeply to be written
        print(f"{number} {what}: {done}", flush=True)
        signal.alarm(SECONDS)  # without a handler, it ends the process
        try:
            use(path)
        except ValueError:
            refused += 1
        except BaseException as error:
            signal.alarm(0)
            text = "".join(traceback.format_exception(error)[-4:])
            print(f"FOUND {number} {what}: {done}\n{text}", file=sys.stderr, flush=True)
    signal.alarm(0)
    print(f"refused {refused}", flush=True)


def run(first: int, count: int, only: str) -> tuple[int, int]:
    """Try mutations in subprocesses; return the numbers of findings and refusals."""
    findings = refused = 0
    cache = Path(gettempdir(), f"aucmax-fuzz-{os.getuid()}")
    env = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    env.setdefault("NUMBA_CACHE_DIR", str(cache))  # kernels with bounds checks
    while count > 0:
        with TemporaryDirectory() as folder:
            todo = [str(first), str(count), "--only", only, "--worker", folder]
            done = subprocess.run(
                [sys.executable, __file__, *todo[1:2], "--first", todo[0], *todo[2:]],
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
        found = [line for line in done.stderr.splitlines() if "FOUND" in line]
        findings += len(found)
        if done.stderr:
            print(done.stderr)
        last = (done.stdout.splitlines() or [""])[-1]
        if done.returncode == 0:
            refused += int(last.removeprefix("refused "))
            break
        print(f"CRASH {done.returncode} at {last}")
        findings += 1
        if not last[:1].isdigit():
            break
        over = int(last.split()[0]) + 1 - first
        first, count = first + over, count - over
    return findings, refused


def main() -> int:
    """Fuzz model files and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=MUTATIONS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        work(given.first, given.count, given.only, given.worker)
        return 0
    findings, refused = run(given.first, given.count, given.only)
    print(f"{given.count} mutations: {refused} were refused, {findings} findings.")
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())
