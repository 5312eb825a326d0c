"""Reference results of all that a user can call, which a redesign must not change.

``python tests/golden/references.py [JOB …]`` compares the results with
``references.json``, lists each line that differs, and exits with 1 if there are any.
``--write [PREFIX …]`` stores the lines that begin with a
prefix, or all, and lists what changed: a commit that does so says why. ``--add`` stores
new lines only.

A line has a few values and the tolerance that they are compared with:

- ``exact``: equal, for texts and counts;
- ``close``: to 1e-10 of the largest value of the line;
- ``auc``: to 0.001, where bits may differ between machines or versions of libraries.

Only public names are used, so that the lines outlive the modules.
"""

import argparse
import json
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone

FILE = Path(__file__).with_name("references.json")
CLOSE, AUC = 1e-10, 1e-3
Line = dict[str, Any]
Job = Callable[[], dict[str, Line]]


def line(tolerance: str, values: Any) -> Line:
    return {"tolerance": tolerance, "values": values}


def differs(old: Line, new: Line) -> bool:
    """Return whether a line differs from its reference by more than its tolerance."""
    a, b = old["values"], new["values"]
    if old["tolerance"] == "exact" or len(a) != len(b):
        return a != b
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    if any(isinstance(x, str | None) or isinstance(y, str | None) for x, y in pairs):
        return True
    largest = max((abs(x) for x in a if isinstance(x, float | int)), default=1.0)
    limit = AUC if old["tolerance"] == "auc" else CLOSE * max(largest, 1.0)
    return any(not abs(x - y) <= limit for x, y in pairs)


# Learners ---------------------------------------------------------------------------


def learner_sets() -> dict[str, Any]:
    """Return X, y and weights of three sets: units, words, rare positives."""
    rng = np.random.default_rng(7)
    units = np.array([1.0, 1e-3, 1e3, 1.0, 10.0, 0.1])
    X = rng.standard_normal((500, 6)) * units + 3.0 * units
    y = X @ (np.array([1.0, 0.5, -0.5, 0.0, 0.3, 0.0]) / units) > rng.normal(4, 1, 500)
    words = (rng.random((500, 40)) < 0.15) * rng.lognormal(0, 0.5, (500, 40))
    topic = words[:, :5].sum(axis=1) + rng.normal(0, 0.4, 500) > 1.0
    rare = rng.standard_normal((500, 5)).astype(np.float32)
    few = rare[:, 0] + rare[:, 1] * rare[:, 2] + rng.normal(0, 0.5, 500) > 2.0
    weight = rng.integers(0, 4, 300).astype(np.float64)
    weight[few[:300]] += 1.0
    return {
        "units": (X, y, None),
        "words": (sparse.csr_array(words), topic, None),
        "rare": (rare, few, weight),
    }


def learners() -> dict[str, Line]:
    from aucmax import AUCClassifier, metrics
    from contracts.estimators import VARIANTS, as_id, with_methods

    found = {}
    plain = [one for one in VARIANTS if not isinstance(one, AUCClassifier)]
    for estimator, method in with_methods(plain):
        for name, (X, y, weight) in learner_sets().items():
            model = clone(estimator)
            seeds = [k for k in model.get_params() if k.endswith("random_state")]
            model.set_params(**dict.fromkeys(seeds, 0))
            train, test = slice(0, 300), slice(300, 500)
            if method == "fit":
                model.fit(X[train], y[train], weight)
            else:
                for start in range(0, 300, 77):
                    some = slice(start, min(start + 77, 300))
                    w = None if weight is None else weight[some]
                    model.partial_fit(X[some], y[some], [False, True], w)
            scores = model.decision_function(X[test])
            key = f"learners/{as_id(estimator)}/{method}/{name}"
            some = [*scores[:3].tolist(), float(np.abs(scores).mean())]
            found[key] = line("close", some)
            found[f"{key}/auc"] = line("auc", [metrics.auc(y[test], scores)])
    return found


# Tables -----------------------------------------------------------------------------


def tables() -> dict[str, Any]:
    """Return eight tables: frame, labels, arguments of the class and of ``fit``."""
    rng = np.random.default_rng(11)
    n = 900
    x = rng.standard_normal((n, 3))
    town = rng.choice(["Bath", "York", "Oslo", "Lyon"], n, p=[0.5, 0.3, 0.15, 0.05])
    shop = np.minimum(rng.geometric(0.05, n), 60)
    words = np.array(["late", "fine", "refund", "thanks", "broken", "ok"])
    day = pd.Timestamp("2023-01-01") + pd.to_timedelta(
        np.sort(rng.integers(0, 700, n)), "D"
    )
    noise = rng.logistic(size=n)
    effect = np.random.default_rng(1).normal(0, 1, 61)[shop]
    base = pd.DataFrame({"a": x[:, 0], "b": np.exp(x[:, 1]), "town": town})
    mixed = base.assign(shop=[f"s{k}" for k in shop], member=x[:, 2] > 0.4)
    score = x[:, 0] + 0.8 * x[:, 1] + (town == "York") + effect
    y = score + noise > 1.0
    text = base.assign(note=[" ".join(words[rng.integers(0, 6, 4)]) for _ in range(n)])
    refund = text.note.str.contains("refund").to_numpy()
    gaps = mixed.assign(a=np.where(rng.random(n) < 0.2, np.nan, x[:, 0]))
    gaps["town"] = gaps.town.where(rng.random(n) > 0.3, None)
    dated = base.assign(since=day[rng.permutation(n)])
    autumn = dated.since.dt.month.to_numpy() > 8
    group = np.repeat(np.arange(n // 6), 6)
    shift = np.repeat(np.random.default_rng(2).normal(0, 1, n // 6), 6)
    weight = rng.integers(0, 4, n).astype(np.float64)
    return {
        "numbers": (base.drop(columns="town"), x[:, 0] * x[:, 1] + noise > 1.0, {}, {}),
        "mixed": (mixed, y, {}, {}),
        "texts": (text, score + 2.0 * refund + noise > 2.0, {}, {}),
        "missing": (gaps, y, {}, {}),
        "dates": (dated, x[:, 0] + 1.5 * autumn + noise > 1.0, {}, {}),
        "weights": (mixed, y, {}, {"sample_weight": weight}),
        "time": (base.assign(day=day), y, {"time": "day"}, {}),
        "groups": (mixed, score + shift + noise > 1.0, {}, {"groups": group}),
    }


def cut(values: Any, rows: slice) -> Any:
    return None if values is None else np.asarray(values)[rows]


def classifiers() -> dict[str, Line]:
    from aucmax import AUCClassifier, metrics

    found = {}
    for name, (frame, y, given, fit) in tables().items():
        train, test = slice(0, 600), slice(600, None)
        model = AUCClassifier(
            random_state=0, n_jobs=1, goal="recall@fpr=0.1", **given
        ).fit(frame[train], y[train], **{k: cut(v, train) for k, v in fit.items()})
        scores = model.decision_function(frame[test])
        key = f"classifier/{name}"
        found[key] = line("close", [*scores[:4].tolist(), *model.auc_[:3]])
        members = [[e.member, e.auc, e.weight] for e in model.leaderboard_]
        found[f"{key}/members"] = line("close", [v for one in members for v in one])
        found[f"{key}/columns"] = line(
            "exact", [f"{c.name} {c.kind}" for c in model.columns_]
        )
        more = [metrics.auc(y[test], scores), model.goal_.value]
        found[f"{key}/auc"] = line("auc", more)
    return found


def streams() -> dict[str, Line]:
    from aucmax import AUCStream, metrics

    found = {}
    for name, (frame, y, _, fit) in tables().items():
        weight = fit.get("sample_weight")
        for half_life in (None, 500.0) if name == "mixed" else (None,):
            model = AUCStream(half_life, random_state=0)
            for _ in range(3):  # trees start after 1000 rows
                for start in range(0, 600, 150):
                    some = slice(start, start + 150)
                    model.partial_fit(
                        frame[some], y[some], [False, True], cut(weight, some)
                    )
            scores = model.decision_function(frame[600:])
            key = f"stream/{name}" + ("" if half_life is None else "/half_life")
            found[key] = line("close", [*scores[:4].tolist(), *model.progressive_auc])
            found[f"{key}/auc"] = line("auc", [metrics.auc(y[600:], scores)])
    return found


# Statistics -------------------------------------------------------------------------


def vectors() -> Iterator[Any]:
    """Yield labels, two scores, weights and groups of twenty samples."""
    for k in range(20):
        rng = np.random.default_rng(100 + k)
        n = [60, 150, 400, 30][k % 4]
        y = rng.random(n) < [0.5, 0.2, 0.1][k % 3]
        y[:4] = [True, False, True, False]
        s = rng.standard_normal(n) + [1.0, 0.3, 3.0, -0.5][k % 4] * y
        t = s + rng.standard_normal(n)
        if k % 5 == 1:
            s, t = np.round(s, 1), np.round(t)  # ties
        if k % 5 == 2:
            s = np.where(y, s + 9.0, s)  # separated
        if k == 18:
            s = np.zeros(n)
        if k == 19:
            s[0], s[1] = np.inf, -np.inf
        weight = rng.integers(0, 5, n) + (np.arange(n) < 4) if k % 2 else None
        if k % 4 == 3:
            weight = weight * 10.0 ** rng.uniform(-3, 3, n)
        yield y, s, t, weight, rng.integers(0, max(n // 4, 9), n)


def statistics() -> dict[str, Line]:
    from aucmax import metrics as m
    from aucmax import thresholds

    def p(s: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-np.clip(s, -9, 9)))

    def streaming(y: Any, s: Any) -> Any:
        one, other = m.StreamingAUC(), m.StreamingAUC()
        one.update(y[::2], s[::2])
        return one.merge(other.update(y[1::2], s[1::2])).bounds()

    calls: dict[str, Any] = {
        "auc": lambda y, s, t, w, g: m.auc(y, s, sample_weight=w),
        "auc_by_group": lambda y, s, t, w, g: m.auc_by_group(
            y, s, g % 3, sample_weight=w
        ),
        "auc_interval": lambda y, s, t, w, g: m.auc_interval(y, s, sample_weight=w),
        "auc_interval wald": lambda y, s, t, w, g: m.auc_interval(y, s, method="wald"),
        "auc_interval groups": lambda y, s, t, w, g: m.auc_interval(
            y, s, groups=g, sample_weight=w
        ),
        "auc_test": lambda y, s, t, w, g: m.auc_test(y, s, t, sample_weight=w),
        "auc_test groups": lambda y, s, t, w, g: m.auc_test(y, s, t, groups=g),
        "auc_test margin": lambda y, s, t, w, g: m.auc_test(y, s, t, margin=0.1),
        "auc_test partial": lambda y, s, t, w, g: m.auc_test(y, s, t, max_fpr=0.3),
        "auc_test_unpaired": lambda y, s, t, w, g: m.auc_test_unpaired(y, s, ~y, t),
        "average_precision": lambda y, s, t, w, g: m.average_precision(
            y, s, sample_weight=w
        ),
        "average_precision_interval": lambda y, s, t, w, g: (
            m.average_precision_interval(y, s, sample_weight=w)
        ),
        "best_accuracy": lambda y, s, t, w, g: m.best_accuracy(y, s, sample_weight=w),
        "best_f_score": lambda y, s, t, w, g: m.best_f_score(y, s, sample_weight=w),
        "breakeven": lambda y, s, t, w, g: m.breakeven(y, s, sample_weight=w),
        "brier_score": lambda y, s, t, w, g: m.brier_score(y, p(s), sample_weight=w),
        "calibration_curve": lambda y, s, t, w, g: m.calibration_curve(
            y, p(s), sample_weight=w
        ),
        "calibration_error": lambda y, s, t, w, g: m.calibration_error(
            y, p(s), sample_weight=w
        ),
        "calibration_line": lambda y, s, t, w, g: m.calibration_line(
            y, p(t), sample_weight=w
        ),
        "confusion_at": lambda y, s, t, w, g: m.confusion_at(
            y, s, 0.5, sample_weight=w
        ),
        "cost_curve": lambda y, s, t, w, g: m.cost_curve(y, s, sample_weight=w),
        "cross_auc": lambda y, s, t, w, g: m.cross_auc(y, s, g % 2, sample_weight=w),
        "cv_auc_interval": lambda y, s, t, w, g: m.cv_auc_interval(
            y, s, np.arange(y.size) % 3, sample_weight=w
        ),
        "expected_auc": lambda y, s, t, w, g: m.expected_auc(p(t)),
        "f_score": lambda y, s, t, w, g: m.f_score(y, s, 0.5, sample_weight=w),
        "fpr_at": lambda y, s, t, w, g: m.fpr_at(y, s, 0.8, sample_weight=w),
        "ks_statistic": lambda y, s, t, w, g: m.ks_statistic(y, s, sample_weight=w),
        "lift_area": lambda y, s, t, w, g: m.lift_area(y, s, sample_weight=w),
        "lift_at": lambda y, s, t, w, g: m.lift_at(y, s, 0.2, sample_weight=w),
        "lift_curve": lambda y, s, t, w, g: m.lift_curve(y, s, sample_weight=w),
        "multiclass_auc": lambda y, s, t, w, g: m.multiclass_auc(
            g % 3, np.column_stack([t, s * 0.0 + t**2, t + y]), sample_weight=w
        ),
        "net_benefit": lambda y, s, t, w, g: m.net_benefit(y, p(s), sample_weight=w),
        "operating_point fpr": lambda y, s, t, w, g: m.operating_point(
            y, s, fpr=0.2, sample_weight=w
        ),
        "operating_point tpr": lambda y, s, t, w, g: m.operating_point(y, s, tpr=0.9),
        "operating_point precision": lambda y, s, t, w, g: m.operating_point(
            y, s, precision=0.4
        ),
        "operating_point cost": lambda y, s, t, w, g: m.operating_point(
            y, s, cost_ratio=5.0
        ),
        "operating_point rows": lambda y, s, t, w, g: m.operating_point(y, s, rows=9),
        "partial_auc": lambda y, s, t, w, g: m.partial_auc(
            y, s, max_fpr=0.2, sample_weight=w
        ),
        "partial_auc two-way": lambda y, s, t, w, g: m.partial_auc(
            y, s, max_fpr=0.6, min_tpr=0.3, standardise=True
        ),
        "partial_auc_interval": lambda y, s, t, w, g: m.partial_auc_interval(
            y, s, max_fpr=0.3, groups=g, sample_weight=w
        ),
        "precision_at": lambda y, s, t, w, g: m.precision_at(
            y, s, 0.1, sample_weight=w
        ),
        "precision_interval": lambda y, s, t, w, g: m.precision_interval(
            y, s, 0.2, sample_weight=w
        ),
        "roc_band": lambda y, s, t, w, g: m.roc_band(y, s, sample_weight=w),
        "roc_band simultaneous": lambda y, s, t, w, g: m.roc_band(
            y, s, kind="simultaneous"
        ),
        "roc_curve": lambda y, s, t, w, g: m.roc_curve(y, s, sample_weight=w),
        "roc_hull": lambda y, s, t, w, g: m.roc_hull(y, s, sample_weight=w),
        "stability_index": lambda y, s, t, w, g: m.stability_index(s, t),
        "StreamingAUC": lambda y, s, t, w, g: streaming(y, s),
        "threshold_interval": lambda y, s, t, w, g: m.threshold_interval(y, s, fpr=0.2),
        "tpr_at": lambda y, s, t, w, g: m.tpr_at(y, s, 0.2, sample_weight=w),
        "power": lambda y, s, t, w, g: [
            m.auc_power(0.6 + 0.01 * (y.size % 9), 40, 60),
            m.auc_power(0.8, 40, 60, null=0.75, correlation=0.4),
            *m.auc_sample_size(0.7 + 0.001 * y.size % 0.2),
            m.auc_variance(0.8, 30, 50),
        ],
    }
    promises = ["fpr<=0.2", "recall>=0.7", "precision>=0.3", "alerts<=0.3", "cost=5"]
    for promise in promises:

        def chosen(y: Any, s: Any, t: Any, w: Any, g: Any, of: str = promise) -> Any:
            found = thresholds.choose(y, s, of, sample_weight=w)
            return [*found[:1], *found[2:], *thresholds.verify(~y, -t, found)[0]]

        calls[f"thresholds {promise}"] = chosen
        calls[f"thresholds {promise} groups"] = lambda y, s, t, w, g, of=promise: (
            thresholds.choose(y, s, of, groups=g).value
        )
    return {
        f"metrics/{name}": line(
            "close", [v for sample in vectors() for v in digest(call, sample)]
        )
        for name, call in calls.items()
    }


def digest(call: Any, sample: Any) -> list[Any]:
    """Return few values of a result: of many, their number and two sums."""
    try:
        values = list(flat(call(*sample)))
    except ValueError as error:
        return [f"{type(error).__name__}: {error}"[:60]]
    if len(values) <= 4:
        return [plain(v) for v in values]
    known = [v for v in values if math.isfinite(v)]
    wave = sum(v * math.cos(i) for i, v in enumerate(known))
    return [len(values), len(known), plain(sum(known)), plain(wave)]


def flat(value: Any) -> Iterator[float]:
    """Yield all numbers of nested tuples, lists and arrays."""
    if value is None or isinstance(value, str):
        return
    if not isinstance(value, tuple | list) and np.ndim(value) == 0:
        yield float(value)
        return
    for one in value:
        yield from flat(one)


def plain(value: float) -> Any:
    return float(value) if math.isfinite(value) else str(value)


# Files ------------------------------------------------------------------------------


def files() -> dict[str, Line]:
    from helpers.commands import invoke

    frame, y, *_ = tables()["missing"]
    frame = frame.assign(y=np.where(y, "yes", "no"))
    cuts = {"train": frame[:600], "new": frame[600:]}
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for part, some in cuts.items():
            some.to_csv(folder / f"{part}.csv", index=False)
            euro = some.assign(b=some.b.map(lambda v: f"{v:.4f}".replace(".", ",")))
            euro = euro.replace({"Bath": "Köln"})
            euro.to_csv(
                folder / f"{part}-euro.csv", index=False, sep=";", encoding="cp1252"
            )
            some.to_json(folder / f"{part}.jsonl", orient="records", lines=True)
            some.to_parquet(folder / f"{part}.parquet")
            bad = (folder / f"{part}.csv").read_text().splitlines(keepends=True)
            bad.insert(9, "x,y,z\n")
            (folder / f"{part}-bad.csv").write_text("".join(bad))
            rows = some[["a", "b"]].fillna(0.0).to_numpy()
            signs = np.where(some.y == "yes", "+1", "-1")
            lines = [
                f"{z} 1:{a!r} 2:{b!r}\n"
                for z, (a, b) in zip(signs, rows.tolist(), strict=True)
            ]
            (folder / f"{part}.svm").write_text("".join(lines))
        skip = ["--on-bad-line", "skip"]
        for name, options, more in [
            (".csv", ["--label", "y"], []),
            ("-euro.csv", ["--label", "y", "--algorithm", "LeastSquaresAUCCV"], []),
            (".jsonl", ["--label", "y", "--algorithm", "SPAM"], []),
            (".parquet", ["--label", "y", "--algorithm", "BAMCV"], []),
            ("-bad.csv", ["--label", "y", "--algorithm", "fast", *skip], skip),
            (".svm", ["--algorithm", "AUCStream"], []),
        ]:
            model, out = folder / f"m{name}.aucmax", folder / f"scores{name}"
            train = [folder / f"train{name}", "-o", model, "--seed", "0", *options]
            new = folder / f"new{name}"
            trained = run(invoke, "train", *train, "--json")
            run(invoke, "score", model, new, "-o", out, *more)
            evaluated = run(invoke, "evaluate", model, new, "--json", *more)
            key = f"files/train{name}"
            found[f"{key}/train"] = line(
                "exact", [trained["rows"], trained["algorithm"]]
            )
            found[f"{key}/score"] = line("close", scores_of(out)[:4])
            numbers = [evaluated[name] for name in ("rows", "positives")]
            measures = (
                [*evaluated["auc"].values()]
                if isinstance(evaluated["auc"], dict)
                else [evaluated["auc"]]
            )
            found[f"{key}/evaluate"] = line("close", [*numbers, *measures])
    return found


def run(invoke: Any, *arguments: Any) -> Any:
    result = invoke(*arguments)
    if result.exit_code:
        raise RuntimeError(f"{arguments}: {result.output}")
    return json.loads(result.stdout) if "--json" in arguments else None


def scores_of(path: Path) -> list[float]:
    if path.suffix == ".parquet":
        return pd.read_parquet(path)["score"].tolist()
    if path.suffix == ".jsonl":
        return pd.read_json(path, lines=True)["score"].tolist()
    if path.suffix == ".svm":
        return [float(one.split()[0]) for one in path.read_text().splitlines()]
    sep = ";" if "euro" in path.name else ","
    return pd.read_csv(path, sep=sep, encoding="cp1252")["score"].tolist()


JOBS: dict[str, Job] = {
    "learners": learners,
    "classifier": classifiers,
    "stream": streams,
    "metrics": statistics,
    "files": files,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=", ".join(JOBS))
    parser.add_argument("--write", nargs="*", metavar="PREFIX")
    parser.add_argument("--add", action="store_true")
    given = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1]))
    warnings.simplefilter("ignore")
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    jobs = given.jobs or list(JOBS)
    found = {key: value for job in jobs for key, value in JOBS[job]().items()}
    wanted = {key for key in known if key.split("/")[0] in jobs}
    changed = 0
    for key in sorted(wanted | found.keys()):
        old, new = known.get(key), found.get(key)
        if old is None or new is None:
            print("gone" if new is None else "new ", key)
        elif differs(old, new):
            print("diff", key, old["values"], new["values"])
        else:
            continue
        changed += 1
    if given.write is None and not given.add:
        sys.exit(changed > 0)
    if given.add:
        kept = {**found, **known}
    else:
        chosen = tuple(given.write) or ("",)
        kept = {k: v for k, v in known.items() if not k.startswith(chosen)}
        kept |= {k: v for k, v in found.items() if k.startswith(chosen)}
    lines = [f"{json.dumps(k)}: {json.dumps(kept[k])}" for k in sorted(kept)]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
