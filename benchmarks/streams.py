"""One pass over a stream: the linear AUCStream, its members, other online learners.

``stream_trees.py`` compares AUCStream with trees, its default.

All data sets of $AUCMAX_DATA or ../shared/data; at most 30 000 rows of each, 70 % for
training and 30 % for testing; rows in random order, raw features, defaults, chunks of
500. The reference is balanced ``LogisticRegressionCV`` with many passes over
standardised features. In sets with more than two classes, the rarer half of the labels
is positive.

``python benchmarks/streams.py run FILE [set …]`` adds a JSON line to FILE for each set,
order and learner. Results that are in FILE are not computed again, so it can be stopped
and resumed. Vowpal Wabbit and River are skipped if they are not installed.

``… report FILE`` prints the table of docs/streams.md from that file.

``… study`` compares candidates for the members of AUCStream, on every other data set
and on the rest.

``… drift [PICTURE]`` prints progressive AUC on streams that change, and CPU time.
Learners that are not installed are skipped; CapyMOA needs Java.

``… order [set …]`` takes rows in the order of the file: progressive AUC in windows of
1000 rows, AUC of all scores together, and whether drift was found.

``speed.py train`` times ``aucmax train`` on files.
"""

import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.stats import wilcoxon
from sklearn.linear_model import LogisticRegressionCV, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from aucmax import OAM, SPAM, AUCStream
from aucmax.metrics import auc
from bench import lines_of, read

SETS = (
    *("a9a", "aloi", "aloi_ad", "arrhythmia", "australian", "breastw", "cod-rna"),
    *("connect-4", "cover_odds", "covtype_sample", "creditcard_sample", "diabetes"),
    *("donors", "farm-ads", "fourclass", "german", "glass", "heart", "higgs_sample"),
    *("http", "ijcnn1", "ionosphere", "letter", "magic04", "mnist", "mushrooms"),
    *("news20", "page-blocks", "phishing", "phoneme", "reuters_money", "sector"),
    *("shuttle", "skin", "smtp", "spambase", "splice", "svmguide1", "svmguide3"),
    *("svmguide4", "thyroid", "usps", "vehicle"),
)
ORDERED = (
    *("a9a", "connect-4", "covtype_sample", "creditcard_sample", "higgs_sample"),
    *("ijcnn1", "letter", "phishing", "phoneme", "shuttle", "thyroid"),
)
MOST, CHUNK, ORDERS = 30_000, 500, 5
WIDE = 800  # features; rows with more stay sparse
RATES = (0.1, 0.5, 2.5)  # learning rates of Vowpal Wabbit; 0.5 is its default


class Split(NamedTuple):
    """A data set, in one random order."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def split(X: Any, y: np.ndarray, seed: int) -> Split:
    """Return the rows in the random order of a seed."""
    if len(y) > MOST:
        some = np.random.RandomState(seed).choice(len(y), MOST, replace=False)
        X, y = X[some], y[some]
    if X.shape[1] <= WIDE:
        X = X.toarray()
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=seed
    )
    return Split(X, y, X_test, y_test)


def chunks(data: Split) -> Iterator[tuple[Any, np.ndarray]]:
    for start in range(0, len(data.y), CHUNK):
        yield data.X[start : start + CHUNK], data.y[start : start + CHUNK]


def ours(model: Any) -> Callable[[Split], np.ndarray]:
    def run(data: Split) -> np.ndarray:
        for X, y in chunks(data):
            model.partial_fit(X, y, classes=[False, True])
        return model.decision_function(data.X_test)

    return run


def reference(data: Split) -> np.ndarray:
    """Return scores of tuned logistic regression on all rows at once."""
    scaler = StandardScaler(with_mean=not sparse.issparse(data.X)).fit(data.X)
    model = LogisticRegressionCV(
        Cs=np.logspace(-4, 2, 7),
        cv=3,
        scoring="roc_auc",
        class_weight="balanced",
        max_iter=300,
        l1_ratios=(0,),
        use_legacy_attributes=False,
    ).fit(scaler.transform(data.X), data.y)
    return model.decision_function(scaler.transform(data.X_test))


def sgd(data: Split) -> np.ndarray:
    """Return scores of logistic regression by SGD, with running scales."""
    wide = sparse.issparse(data.X)
    scaler = MaxAbsScaler() if wide else StandardScaler()
    model = SGDClassifier(loss="log_loss", random_state=0)
    for X, y in chunks(data):
        scaler.partial_fit(X)
        model.partial_fit(scaler.transform(X), y, classes=[False, True])
    return model.decision_function(scaler.transform(data.X_test))


def river(data: Split) -> np.ndarray:
    """Return scores of logistic regression after a StandardScaler."""
    from river import linear_model, preprocessing

    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    if sparse.issparse(data.X) or data.X.shape[1] > 300:
        raise ImportError("skipped: one pass takes more than a minute")
    for row, label in zip(data.X.tolist(), data.y.tolist(), strict=True):
        model.learn_one(dict(enumerate(row)), label)
    return np.array(
        [model.predict_proba_one(dict(enumerate(row)))[True] for row in data.X_test]
    )


def vw_file(path: Path, X: Any, y: np.ndarray) -> None:
    rows = sparse.csr_array(X)
    with path.open("w") as file:
        for i, label in enumerate(y):
            some = slice(rows.indptr[i], rows.indptr[i + 1])
            pairs = zip(rows.indices[some], rows.data[some], strict=True)
            text = " ".join(f"{j}:{x:.9g}" for j, x in pairs)
            file.write(f"{1 if label else -1} | {text}\n")


def vw(rate: float) -> Callable[[Split], np.ndarray]:
    def run(data: Split) -> np.ndarray:
        import vowpalwabbit

        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            vw_file(folder / "train", data.X, data.y)
            vw_file(folder / "test", data.X_test, data.y_test)
            common = "--quiet --loss_function logistic"
            for options in (
                f"-d {folder}/train -f {folder}/model -l {rate}",
                f"-d {folder}/test -t -i {folder}/model -r {folder}/scores",
            ):
                work = vowpalwabbit.Workspace(f"{common} {options}")
                work.finish()
            lines = (folder / "scores").read_text().split()
        return np.array([float(line.partition(":")[2] or line) for line in lines])

    return run


LEARNERS: dict[str, Callable[[], Callable[[Split], np.ndarray]]] = {
    "reference": lambda: reference,
    "AUCStream": lambda: ours(AUCStream(nonlinear=False)),
    "SPAM": lambda: ours(SPAM()),
    "OAM": lambda: ours(OAM()),
    "OAM, C=2, 25 rows": lambda: ours(OAM(2.0, buffer_size=25)),
    "OAM, C=6": lambda: ours(OAM(6.0)),
    "OAM, C=60": lambda: ours(OAM(60.0)),
    "SGDClassifier": lambda: sgd,
    "River": lambda: river,
    **{f"VW, -l {rate}": lambda rate=rate: vw(rate) for rate in RATES},
}


def run(path: Path, names: list[str]) -> None:
    done = {(one["set"], one["order"], one["learner"]) for one in lines_of(path)}
    with path.open("a") as file:
        for name in names or SETS:
            found = read(name)
            if found is None:
                continue
            for seed in range(ORDERS):
                data = split(*found, seed)
                for learner, make in LEARNERS.items():
                    if (name, seed, learner) in done:
                        continue
                    if learner == "River" and seed > 0:
                        continue
                    start = perf_counter()
                    try:
                        area = auc(data.y_test, make()(data))
                    except ImportError as error:
                        print(f"{learner}: {error}", file=sys.stderr)
                        continue
                    line = {
                        **{"set": name, "order": seed, "learner": learner},
                        **{"rows": len(data.y), "auc": area},
                        "seconds": round(perf_counter() - start, 4),
                    }
                    file.write(json.dumps(line) + "\n")
                    file.flush()


def report(path: Path) -> None:
    lines = lines_of(path)
    areas: dict[str, dict[str, dict[int, float]]] = {}
    rows, seconds = {}, {}
    for line in lines:
        its = areas.setdefault(line["learner"], {}).setdefault(line["set"], {})
        its[line["order"]] = line["auc"]
        rows[line["set"]] = line["rows"]
        seconds.setdefault(line["learner"], []).append(line["seconds"] / line["rows"])
    rates = [areas.get(f"VW, -l {rate}", {}) for rate in RATES]
    if all(rates):  # chosen by test AUC, which favours it
        areas["VW, best rate"] = {
            name: {o: max(rate[name][o] for rate in rates) for o in rates[0][name]}
            for name in rates[0]
        }
    goal, default = areas["reference"], areas.get(f"VW, -l {RATES[1]}", {})
    best = areas["AUCStream"]
    print(
        "| one pass | sets | mean, median AUC minus reference | more than 0.01 below "
        "it, with 5 000 rows | not below VW | AUCStream higher, p | µs a row |"
    )
    print("|---|---|---|---|---|---|---|")
    for learner, its in areas.items():
        gap = {
            name: np.mean([area - goal[name][o] for o, area in orders.items()])
            for name, orders in its.items()
        }
        values = np.array(list(gap.values()))
        bad = [name for name in gap if gap[name] < -0.01]
        big = [name for name in bad if rows[name] > 0.7 * 5000]
        vw_not = sum(
            np.mean(list(its[name].values())) >= np.mean(list(default[name].values()))
            for name in gap
            if name in default
        )
        paired = np.array(
            [
                np.mean([best[name][o] - area for o, area in its[name].items()])
                for name in gap
            ]
        )
        p = wilcoxon(paired).pvalue if paired.any() else 1.0
        known = learner in seconds and not learner.startswith("VW")  # it writes files
        speed = f"{1e6 * np.median(seconds[learner]):.1f}" if known else ""
        middle = np.median(values)
        print(
            f"| {learner} | {len(gap)} | {values.mean():+.4f}, {middle:+.4f} "
            f"| {len(bad)}, {len(big)} | {vw_not} of {len(default)} | "
            f"{(paired > 0).sum()} of {len(paired)}, {p:.1g} | {speed} |"
        )
    print("AUCStream, sets in order:")
    table = sorted(
        (np.mean([a - goal[s][o] for o, a in orders.items()]), s)
        for s, orders in best.items()
    )
    print(", ".join(f"{name} {gap:+.4f}" for gap, name in table))


def study(orders: int = 2) -> None:
    """Compare candidates on every other set, and on the rest."""
    from aucmax.stream import stream_state
    from aucmax.stream.members import Member

    def small(C: float) -> Any:
        return OAM(C, buffer_size=25)

    def plain(C: float, size: int) -> Any:
        return OAM(C, average=False, buffer_size=size, precondition=False)

    teams: dict[str, Callable[[], list[Any]]] = {
        "SPAM, .6/25, 6, 60": lambda: [SPAM(), small(0.6), OAM(6), OAM(60)],
        "SPAM, 2/25, 6, 60": lambda: [SPAM(), small(2), OAM(6), OAM(60)],
        **{
            f"and plain {C:g}/{size}": lambda C=C, size=size: [
                *(SPAM(), small(2), plain(C, size), OAM(6), OAM(60))
            ]
            for C, size in ((0.6, 25), (2, 25), (2, 10), (5, 10), (2, 5))
        },
        "SPAM, .2/25, 2, 20": lambda: [SPAM(), small(0.2), OAM(2), OAM(20)],
        "SPAM, 2/25, 20/25": lambda: [SPAM(), small(2), small(20)],
        "SPAM, .6, 6, 60": lambda: [SPAM(), OAM(0.6), OAM(6), OAM(60)],
        "SPAM, .6/25, 6": lambda: [SPAM(), small(0.6), OAM(6)],
        "6": lambda: [OAM(6)],
        ".6, 6, 60": lambda: [OAM(0.6), OAM(6), OAM(60)],
        "SPAM": lambda: [SPAM()],
        **{f"OAM {C:g}": lambda C=C: [OAM(C)] for C in (0.2, 0.6, 2, 20, 60)},
    }
    gaps: dict[str, list[float]] = {team: [] for team in teams}
    for name in SETS:
        found = read(name)
        if found is None:
            continue
        each: dict[str, list[float]] = {team: [] for team in teams}
        for seed in range(orders):
            data = split(*found, seed)
            target = auc(data.y_test, reference(data))
            for team, members in teams.items():
                stream_state.candidates = lambda *_, members=members: [
                    Member(str(k), member) for k, member in enumerate(members())
                ]
                score = ours(AUCStream(nonlinear=False))(data)
                each[team].append(auc(data.y_test, score) - target)
        for team, values in each.items():
            gaps[team].append(float(np.mean(values)))
        print(name, *(f"{gaps[team][-1]:+.4f}" for team in teams), flush=True)
    print("team: mean, bad sets on even sets | on odd sets")
    for team, values in gaps.items():
        halves = [np.array(values[k::2]) for k in (0, 1)]
        print(
            f"{team:20}",
            " | ".join(f"{h.mean():+.4f} {(h < -0.01).sum():2}" for h in halves),
        )


def changing(kind: str, n: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Return a stream of River that changes in the middle, or gradually."""
    from river.datasets import synth

    if kind == "hyperplane":
        parts = [synth.Hyperplane(seed=1, n_features=10, mag_change=0.002)]
    else:
        make = synth.SEA if kind == "SEA" else synth.Agrawal
        first, second = (0, 3) if kind == "SEA" else (6, 8)  # linear concepts
        if kind == "Agrawal, bands":  # of age and salary
            first, second = 1, 3
        parts = [make(first, seed=1), make(second, seed=2)]
    rows = [pair for part in parts for pair in part.take(n // len(parts))]
    X = np.array([[float(value) for value in row.values()] for row, _ in rows])
    return X, np.array([bool(label) for _, label in rows])


def capymoa_scores(kind: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the score of every row by a learner of CapyMOA before it is learnt."""
    from capymoa import classifier
    from capymoa.stream import NumpyStream

    rows = NumpyStream(X, y.astype(int), target_type="categorical")
    options = {"schema": rows.get_schema(), "random_seed": 1}
    if kind == "CapyMOA, forest":
        options["ensemble_size"] = 10
        model = classifier.AdaptiveRandomForestClassifier(**options)
    else:
        model = classifier.StreamingGradientBoostedTrees(**options)
    scores = np.zeros(len(y))
    for i in range(len(y)):
        row = rows.next_instance()
        votes = np.asarray(model.predict_proba(row), float).ravel()
        if votes.size > 1 and votes.sum() > 0.0:
            scores[i] = votes[1] / votes.sum()
        model.train(row)
    return scores


def progressive(kind: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the score of every row before it is learnt from."""
    if kind.startswith("CapyMOA"):
        return capymoa_scores(kind, X, y)
    if kind == "VW":
        import vowpalwabbit

        with tempfile.TemporaryDirectory() as folder:
            vw_file(Path(folder) / "rows", X, y)
            options = f"--quiet --loss_function logistic -d {folder}/rows"
            vowpalwabbit.Workspace(f"{options} -r {folder}/scores").finish()
            lines = (Path(folder) / "scores").read_text().split()
        return np.array([float(line.partition(":")[2] or line) for line in lines])
    if kind.startswith("River"):
        from river import forest, linear_model, preprocessing

        model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        if kind == "River, forest":
            model = forest.ARFClassifier(n_models=10, seed=0)
        scores = []
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            features = dict(enumerate(row))
            scores.append(model.predict_proba_one(features).get(True, 0.0))
            model.learn_one(features, label)
        return np.array(scores)
    half_life = 2000.0 if "half_life" in kind else None
    ours = AUCStream(half_life, nonlinear="linear" not in kind, random_state=0)
    scores = np.zeros(len(y))
    for start in range(0, len(y), 100):
        some = slice(start, start + 100)
        if start:
            scores[some] = ours.decision_function(X[some])
        ours.partial_fit(X[some], y[some], classes=[False, True])
    return scores


def drift(picture: str | None = None) -> None:
    streams = ("SEA", "Agrawal", "Agrawal, bands", "hyperplane")
    kinds = ("AUCStream, half_life=2000", "AUCStream", "River, forest", "VW")
    kinds += ("AUCStream, linear", "AUCStream, linear, half_life=2000")
    kinds += ("CapyMOA, forest", "CapyMOA, boosting")
    window, curves = 1000, {}
    print("mean AUC of windows of 1000 rows: first half, second half; CPU per row")
    for name in streams:
        X, y = changing(name)
        for kind in kinds:
            start = process_time()
            try:
                score = progressive(kind, X, y)
            except ImportError as error:
                print(f"{kind}: {error}", file=sys.stderr)
                continue
            micros = 1e6 * (process_time() - start) / len(y)
            curves[name, kind] = [
                auc(y[k : k + window], score[k : k + window])
                for k in range(0, len(y), window)
            ]
            halves = np.array(curves[name, kind]).reshape(2, -1).mean(axis=1)
            found = f"{halves[0]:.4f} {halves[1]:.4f} {micros:.0f} µs"
            print(f"{name:14} {kind:33} {found}", flush=True)
    if picture is None:
        return
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    for axis, name in zip(axes, streams, strict=True):
        for kind, style in zip(kinds, ("-", "--", ":", "-."), strict=False):
            curve = curves.get((name, kind), [])
            axis.plot(np.arange(1, len(curve) + 1), curve, style, label=kind)
        how = "gradually" if name == "hyperplane" else "at 10"
        axis.set(title=f"{name}, changes {how}", xlabel="thousand rows", ylabel="AUC")
        axis.grid(alpha=0.3)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4
    )
    figure.savefig(picture, dpi=110)


def order(*names: str) -> None:
    window, ours = 1000, "AUCStream, linear"
    kinds = (ours, f"{ours}, half_life=2000", "River", "VW")
    print("| set | rows | " + " | ".join(kinds) + " | drift found |")
    for name in names or ORDERED:
        found = read(name)
        if found is None:
            continue
        X, y = found
        X, y = X[:MOST].toarray(), y[:MOST]
        cells = []
        for kind in kinds:
            score = progressive(kind, X, y)
            windows = [slice(k, k + window) for k in range(0, len(y), window)]
            both = [w for w in windows if 0 < y[w].sum() < len(y[w])]
            areas = [auc(y[w], score[w]) for w in both]
            weight = [y[w].mean() * (1.0 - y[w].mean()) for w in both]
            mean = np.average(areas, weights=weight) if both else np.nan
            cells.append(f"{mean:.3f}, {auc(y, score):.3f}")
        model = AUCStream().partial_fit(X, y)
        cells.append("yes" if model.drift_.found else "no")
        print(f"| {name} | {len(y):,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, *rest = sys.argv[1:] or ["study"]
    if what == "run":
        run(Path(rest[0]), rest[1:])
    else:
        jobs: dict[str, Callable[..., None]]
        jobs = {"report": lambda path: report(Path(path)), "study": study}
        (jobs | {"drift": drift, "order": order})[what](*rest)
