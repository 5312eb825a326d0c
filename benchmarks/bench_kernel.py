"""Kernels: what they gain, what they cost, and beside the dissertation's tables.

``python benchmarks/bench_kernel.py gain`` compares ``KernelAUCCV`` with the linear
``BAMCV`` and with LightGBM (200 rounds at 0.05), by test AUC on random 70/30 splits of
all sets below 30 000 rows: mean difference, worst split, seconds of a fit.

``… tables`` fits the dissertation's nonlinear systems with their default settings, on
the given split or a random one of 80/20, at most 80 000 training rows (chapter 3), and
prints AUC beside what is printed there. Classes are grouped into the rarer half of the
labels and the rest, as far as the dissertation does not say.

``… ridge`` tries penalties of landmarks' features, the factor of (1/n₊ + 1/n₋), on BAM
and PSAM.

``… speed`` times the map against its products of matrices, scoring against its
product, and NPSAM against NBAM on ijcnn1 and cod-rna, with the map and without. On an
idle machine. ``… memory`` measures that of NPSAM on 350 000 rows of noise.

Data are read from $AUCMAX_DATA or ../shared/data.
"""

import resource
import sys
import warnings
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import aucmax
from aucmax import BAM, BAMCV, PSAM, KernelAUCCV, KMeansNystroem
from aucmax.metrics import auc
from bench import shared

SMALL = (
    *("arrhythmia", "australian", "breastw", "creditcard_sample", "diabetes"),
    *("fourclass", "german", "glass", "heart", "higgs_sample", "ionosphere", "letter"),
    *("magic04", "mushrooms", "page-blocks", "phishing", "phoneme", "spambase"),
    *("splice", "svmguide1", "svmguide3", "svmguide4", "thyroid", "usps", "vehicle"),
)
SPLIT = (
    *("higgs_sample", "ijcnn1", "letter", "mnist", "splice", "svmguide1"),
    *("svmguide4", "usps"),
)
# khalid2019-dissertation, tables 3.2, 6.5 and 7.5: mean, and deviation where printed.
PRINTED = {
    "spambase": {"RBF-RankSVM": 0.9800, "FBAM": 0.9775, "NBAM": 0.9804},
    "usps": {"RBF-RankSVM": 0.9908, "FBAM": 0.9742, "NBAM": 0.9924},
    "magic04": {"FBAM": 0.9283, "NBAM": 0.9306},
    "ijcnn1": {
        **{"FBAM": 0.9886, "NBAM": 0.9957, "NASAM": 0.9969, "NSOLAM": 0.9873},
        **{"NOAMseq": 0.9905, "NOAMgra": 0.9876},
    },
    "connect-4": {
        **{"FBAM": 0.9110, "NBAM": 0.9409, "NASAM": 0.9360, "NSOLAM": 0.8986},
        **{"NOAMseq": 0.8593, "NOAMgra": 0.8600},
    },
    "cod-rna": {
        **{"FBAM": 0.9912, "NBAM": 0.9912, "NASAM": 0.9916, "NPSAM": 0.9920},
        **{"NSOLAM": 0.9911, "NOAMseq": 0.9807, "NOAMgra": 0.9818},
    },
    "skin": {"FBAM": 1.0, "NBAM": 0.9998, "NASAM": 0.9998, "NSOLAM": 0.9995},
    "mnist": {"NBAM": 0.9942, "NASAM": 0.9938, "NSOLAM": 0.9809, "NOAMseq": 0.9834},
}
# Table 5.2, five folds: FOAM, FCBR-RS, FCBR-FIFO.
FOLDS = {
    "spambase": (0.9640, 0.9685, 0.9724),
    "magic04": (0.8358, 0.9016, 0.9201),
    "ijcnn1": (0.9290, 0.9758, 0.9855),
    "cod-rna": (0.9871, 0.9903, 0.9917),
    "svmguide3": (0.7763, 0.8275, 0.8346),
    "vehicle": (0.7678, 0.8961, 0.9015),
    "glass": (0.8164, 0.8228, 0.8201),
}


def _read(name: str) -> tuple[Any, Any]:
    found = shared(name, positive=None)
    if found is None:
        sys.exit(f"There is no {name}: see $AUCMAX_DATA.")
    return found


def both(name: str) -> tuple[Any, Any]:
    """Return all rows of a set as a dense array, and which are positive."""
    if name in SPLIT:
        parts = [_read(f"{name}.{half}") for half in ("train", "test")]
    else:
        parts = [_read("svmguide3.train" if name == "svmguide3" else name)]
    width = max(X.shape[1] for X, _ in parts)
    rows = [np.pad(X.toarray(), ((0, 0), (0, width - X.shape[1]))) for X, _ in parts]
    labels = np.concatenate([y for _, y in parts])
    found, counts = np.unique(labels, return_counts=True)
    rarer = found[np.argsort(counts, kind="stable")][: max(len(found) // 2, 1)]
    if name in ("vehicle", "glass"):
        rarer = found[:1]  # class 1 against the rest, as in chapter 5
    if name == "connect-4":
        rarer = found[-1:]  # won or not
    return np.vstack(rows), np.isin(labels, rarer)


def split(name: str, seed: int, share: float) -> list[Any]:
    X, y = both(name)
    return train_test_split(X, y, test_size=share, stratify=y, random_state=seed)


def gain(repeat: int) -> None:
    from lightgbm import LGBMClassifier

    print(f"{'':18} rows  linear  kernel: mean    worst    s | LightGBM: mean    s")
    for name in SMALL:
        rows = []
        for seed in range(repeat):
            X, X_test, y, y_test = split(name, seed, 0.3)
            linear = auc(y_test, BAMCV().fit(X, y).decision_function(X_test))
            start = perf_counter()
            model = KernelAUCCV(random_state=seed).fit(X, y)
            seconds = perf_counter() - start
            kernel = auc(y_test, model.decision_function(X_test))
            start = perf_counter()
            boosted = LGBMClassifier(
                n_estimators=200, learning_rate=0.05, verbose=-1, random_state=seed
            ).fit(X, y)
            more = perf_counter() - start
            trees = auc(y_test, boosted.predict_proba(X_test)[:, 1])
            rows.append((linear, kernel - linear, seconds, trees - linear, more))
        table = np.array(rows)
        linear, kernel, seconds, trees, more = table.mean(axis=0)
        print(
            f"{name:18} {len(y):5} {linear:.4f} {kernel:+.4f} "
            f"{table[:, 1].min():+.4f} {seconds:5.1f} | {trees:+.4f} {more:5.1f}",
            flush=True,
        )


def tables() -> None:
    for name, printed in PRINTED.items():
        X, X_test, y, y_test = split(name, 0, 0.2)
        if name in SPLIT:
            X, y = both(name)
            n = _read(f"{name}.train")[0].shape[0]
            X, X_test, y, y_test = X[:n], X[n:], y[:n], y[n:]
        if len(y) > 80_000:
            some = np.random.default_rng(0).permutation(len(y))[:80_000]
            X, y = X[some], y[some]
        for system, value in printed.items():
            start = perf_counter()
            model = aucmax.named(system, random_state=0).fit(X, y)
            seconds = perf_counter() - start
            area = auc(y_test, model.decision_function(X_test))
            print(
                f"{name:10} {system:12} {area:.4f}, printed {value:.4f}: "
                f"{area - value:+.4f} {seconds:6.1f} s",
                flush=True,
            )
    for name, values in FOLDS.items():
        for system, value in zip(("FOAM", "FCBR-RS", "FCBR-FIFO"), values, strict=True):
            areas = []
            for seed in range(3):
                X, X_test, y, y_test = split(name, seed, 0.2)
                model = aucmax.named(system, random_state=seed, max_iter=1).fit(X, y)
                areas.append(auc(y_test, model.decision_function(X_test)))
            print(
                f"{name:10} {system:12} {np.mean(areas):.4f}, printed {value:.4f}: "
                f"{np.mean(areas) - value:+.4f}",
                flush=True,
            )


def ridge() -> None:
    factors = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
    print("factor", *factors)
    for name in ("magic04", "ijcnn1", "spambase", "splice", "svmguide3", "german"):
        X, X_test, y, y_test = split(name, 0, 0.3)
        mapper = KMeansNystroem(800, random_state=0).fit(X)
        F, F_test = (mapper.features(rows, np.float32) for rows in (X, X_test))
        one = 1.0 / y.sum() + 1.0 / (~y).sum()
        for kind in (BAM, PSAM):
            areas = [
                auc(y_test, kind(factor * one).fit(F, y).decision_function(F_test))
                for factor in factors
            ]
            print(name, kind.__name__, *(f"{area:.4f}" for area in areas), flush=True)


def best(job: Any, times: int = 3) -> float:
    seconds = []
    for _ in range(times):
        start = perf_counter()
        job()
        seconds.append(perf_counter() - start)
    return min(seconds)


def speed() -> None:
    X = np.random.default_rng(0).standard_normal((20_000, 54))
    mapper = KMeansNystroem(1600, random_state=0).fit(X)
    w = np.ones(mapper.n_features_out)
    for dtype in (np.float32, np.float64):
        Z, L = X.astype(dtype), mapper.landmarks_.astype(dtype)
        C = mapper.components_.astype(dtype)
        mapped = best(lambda dtype=dtype: mapper.features(X, dtype))
        products = best(lambda Z=Z, L=L, C=C: (Z @ L) @ C)
        print(f"{dtype.__name__}: map {mapped / products:.2f} x its products")
    amplitudes = np.ones(mapper.landmarks_.shape[1])
    scored = best(lambda: mapper.scores(X, w))
    products = best(lambda: (X @ mapper.landmarks_) @ amplitudes)
    print(f"scores {scored / products:.2f} x their products")
    for name in ("ijcnn1", "cod-rna"):
        X, X_test, y, y_test = split(name, 0, 0.3)
        for system in ("NPSAM", "NBAM"):
            model = aucmax.named(system, random_state=0)
            total = best(lambda model=model, X=X, y=y: model.fit(X, y), 2)
            F = model.map_.features(X, np.float32)
            learner = type(model.learner_)(**model.learner_.get_params())
            alone = best(lambda learner=learner, F=F, y=y: learner.fit(F, y), 2)
            area = auc(y_test, model.decision_function(X_test))
            print(f"{name} {system}: {area:.4f}, {total:.2f} s, learning {alone:.2f} s")


def memory() -> None:
    X = np.random.default_rng(0).standard_normal((350_000, 54))
    y = X[:, 0] * X[:, 1] > 1.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    model = aucmax.named("NPSAM", random_state=0, max_iter=1).fit(X, y)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"350 000 x 54, one pass of NPSAM: {perf_counter() - start:.0f} s, peak "
        f"{after / 1e6:.2f} GB, {before / 1e6:.2f} GB before; "
        f"AUC {model.score(X, y):.3f}"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what = sys.argv[1] if len(sys.argv) > 1 else "gain"
    if what == "gain":
        gain(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    else:
        {"tables": tables, "ridge": ridge, "speed": speed, "memory": memory}[what]()
