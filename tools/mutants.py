"""Mutation testing: break the sources in one place at a time and run the tests.

    python tools/mutants.py                   # all mutants
    python tools/mutants.py losses/pairwise   # those whose file or name contains this
    python tools/mutants.py --check           # only check that all places exist

A mutant is a file, a piece of its text that occurs exactly once, the replacement, and
the tests that must fail. It runs in a temporary copy of the project; the same tests
must pass in an unchanged copy. The exit code is 1 if a mutant survives, because then a
test is missing, or if a place is not found.
"""

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/aucmax")
FAILED = 1  # pytest: tests were run, and some failed


class Mutant(NamedTuple):
    """One change that tests must detect."""

    name: str
    file: str  # under src/aucmax
    old: str
    new: str
    tests: str  # arguments of pytest


MUTANTS = [
    Mutant(
        "target encoding of a training row counts the row itself",
        "blend/target_encoding.py",
        "other_hits = hits.sum(axis=1)[which] - hits[which, inner]",
        "other_hits = hits.sum(axis=1)[which]",
        "tests/blend/test_target_encoding.py",
    ),
    Mutant(
        "the count of a training row counts the row itself",
        "blend/target_encoding.py",
        "others = np.maximum(total[which] - weight, 0.0)",
        "others = total[which]",
        "tests/blend/test_target_encoding.py",
    ),
    Mutant(
        "a missing value goes left at every node",
        "blend/forest.py",
        "left = kind == MISSING_LEFT",
        "left = True",
        "tests/blend/test_trees.py",
    ),
    Mutant(
        "boosted trees stop where the first fold is best",
        "blend/boosting.py",
        "mean = np.mean([g.curve for g in judged], axis=0)",
        "mean = np.array(judged[0].curve)",
        "tests/blend/test_boosting.py",
    ),
    Mutant(
        "rows without a label are not left out",
        "tables/faults.py",
        "good = ~self.unlabelled",
        "good = np.ones(len(self._batch), bool)",
        "tests/io/test_csv_source.py -k label",
    ),
    Mutant(
        "step sizes decrease with rows instead of effective rows",
        "online/engine/step_sizes.py",
        "raised(1.0 + (balance / width) * t, power)",
        "raised(1.0 + (1.0 / width) * t, power)",
        "tests/online/test_solam.py",
    ),
    Mutant(
        "wrong sign in the explicit step",
        "online/engine/step_sizes.py",
        "return eta / (1.0 - eta * ridge)",
        "return eta / (1.0 + eta * ridge)",
        "tests/as_published -k 'test_streams and OPAUC'",
    ),
    Mutant(
        "row weights are not divided by their mean",
        "online/engine/feature_table.py",
        "stats[TO_MEAN] = stats[ROWS] / (pos + neg)",
        "stats[TO_MEAN] = 1.0",
        "tests/contracts/test_weights.py -k 'constant_factor and SOLAM'",
    ),
    Mutant(
        "off by one: soft threshold",
        "online/projections.py",
        "threshold = (total - radius) / above",
        "threshold = (total - radius) / (above + 1)",
        "tests/online/test_projections.py",
    ),
    Mutant(
        "pair weights normalised by the wrong class",
        "losses/pairwise.py",
        "total = y[positive].sum(), -y[~positive].sum()",
        "total = -y[~positive].sum(), y[positive].sum()",
        "tests/losses",
    ),
    Mutant(
        "squared hinge: a factor of two is missing",
        "losses/pairwise.py",
        "second += apart * (2.0 * first + other * apart)",
        "second += apart * (first + other * apart)",
        "tests/losses/test_pairwise.py",
    ),
    Mutant(
        "squared hinge: wrong sign in the Hessian",
        "losses/pairwise.py",
        "(mass[i] * v[i] - other)",
        "(mass[i] * v[i] + other)",
        "tests/losses/test_pairwise.py",
    ),
    Mutant(
        "exponential loss: the wrong class's mean",
        "losses/pairwise.py",
        "np.where(self.positive, of_neg, of_pos)",
        "np.where(self.positive, of_pos, of_neg)",
        "tests/losses/test_pairwise.py",
    ),
    Mutant(
        "tied scores count as pairs out of order",
        "losses/pairwise.py",
        "            if apart > 0.0:\n",
        "            if apart >= 0.0:\n",
        "tests/losses/test_pairwise.py",
    ),
    Mutant(
        "merged moments without the distance of the means",
        "linear/solvers/covariances.py",
        "scatter_a + scatter_b + between",
        "scatter_a + scatter_b",
        "tests/linear/solvers/test_covariances.py",
    ),
    Mutant(
        "subtracted moments: the wrong share",
        "linear/solvers/covariances.py",
        "mean_b = mean + (weight_a / weight_b) * (mean - mean_a)",
        "mean_b = mean + (weight_a / weight) * (mean - mean_a)",
        "tests/linear/solvers/test_covariances.py",
    ),
    Mutant(
        "moments drop the weight of a row",
        "linear/solvers/covariances.py",
        "root = np.sqrt(abs(y[i]))",
        "root = 1.0",
        "tests/linear/solvers/test_covariances.py",
    ),
    Mutant(
        "moments are summed in float32",
        "linear/solvers/covariances.py",
        "buffer = np.empty((size, d + 1))",
        "buffer = np.empty((size, d + 1), dtype=np.float32)",
        "tests/linear/solvers/test_covariances.py",
    ),
    Mutant(
        "Newton: l2 is left out of the gradient",
        "linear/solvers/newton.py",
        "h = c.gradient(here.gradient + o.l2 * here.w)",
        "h = c.gradient(here.gradient)",
        "tests/linear/test_bam.py",
    ),
    Mutant(
        "Newton: l2 is left out of the Hessian",
        "linear/solvers/newton.py",
        "Hp = c.gradient(Hv + o.l2 * v)",
        "Hp = c.gradient(Hv)",
        "tests/linear/test_bam.py",
    ),
    Mutant(
        "Newton: steps that do not lower the objective are taken",
        "linear/solvers/newton.py",
        "if point.value + ridge <= J + _ARMIJO * length * slope:",
        "if True:",
        "tests/linear/test_bam.py",
    ),
    Mutant(
        "OPAUC: the row's own class instead of the other",
        "online/covariance.py",
        "other = NEG if side == POS else POS",
        "other = side",
        "tests/online/test_opauc.py",
    ),
    Mutant(
        "OPAUC: wrong sign of the margin",
        "online/covariance.py",
        "residual = s - c_w - (1.0 if side == POS else -1.0)",
        "residual = s - c_w + (1.0 if side == POS else -1.0)",
        "tests/online/test_opauc.py",
    ),
    Mutant(
        "OPAUC: weights do not follow their scale",
        "online/covariance.py",
        "        V[W, j] *= scale / old\n",
        "        V[W, j] *= 1.0\n",
        "tests/online/test_opauc.py",
    ),
    Mutant(
        "off by one: slots of the buffer",
        "online/engine/buffer.py",
        "slot = int(seen[side]) - 1",
        "slot = int(seen[side])",
        "tests/online/test_oam.py",
    ),
    Mutant(
        "a reservoir that prefers new rows",
        "online/engine/buffer.py",
        "slot = int(uniform(seed) * seen[side])",
        "slot = int(uniform(seed) * size)",
        "tests/online/test_oam.py",
    ),
    Mutant(
        "the default penalty ignores the number of rows",
        "base/penalty.py",
        "factor = _FACTOR * curvature * float((1.0 / weight).sum())",
        "factor = _FACTOR * curvature * 0.01",
        "tests/linear/test_least_squares.py tests/linear/test_bam.py",
    ),
    Mutant(
        "infinity is accepted",
        "core/validation.py",
        "bad = ~(np.abs(values) <= min(MOST, float(np.finfo(values.dtype).max)))",
        "bad = np.isnan(values)",
        "tests/core/test_validation.py",
    ),
    Mutant(
        "wrong row of an invalid value in a sparse matrix",
        "core/validation.py",
        'np.searchsorted(X.indptr, at, side="right")',
        'np.searchsorted(X.indptr, at, side="left")',
        "tests/core/test_validation.py",
    ),
    Mutant(
        "negative weights are accepted",
        "core/validation.py",
        "    check_weights(weight, MOST)\n",
        "    check_weights(np.abs(weight), MOST)\n",
        "tests/contracts/test_weights.py -k 'bad_weights and SPAM'",
    ),
    Mutant(
        "partial_fit forgets earlier chunks",
        "linear/least_squares.py",
        "moments = self.state_ + moments",
        "moments = moments + moments",
        "tests/contracts/test_streams.py -k 'chunking and LeastSquaresAUC'",
    ),
    Mutant(
        "l1 is ignored",
        "linear/least_squares.py",
        "l2, float(self.l1), self.max_iter)",
        "l2, 0.0, self.max_iter)",
        "tests/linear/test_least_squares.py",
    ),
    Mutant(
        "partial AUC: rectangles instead of trapezoids",
        "metrics/area.py",
        "(height[1:] + height[:-1])",
        "(height[1:] + height[1:])",
        "tests/metrics/test_partial.py",
    ),
    Mutant(
        "DeLong: the variance of the wrong class",
        "metrics/delong.py",
        "_variance(beaten, pos) / n**2 / m",
        "_variance(beaten, pos) / n**2 / n",
        "tests/metrics/test_delong.py",
    ),
    Mutant(
        "jackknife: the row itself is not left out",
        "metrics/influence.py",
        "rest = 1.0 - share",
        "rest = np.ones_like(share)",
        "tests/metrics/test_delong.py",
    ),
    Mutant(
        "average precision: recall of all rows",
        "metrics/precision_recall.py",
        "increments(tp / tp[-1]) @ (tp / (tp + fp))",
        "increments(tp / tp[-1]) @ (tp / (tp[-1] + fp))",
        "tests/metrics/test_top.py",
    ),
    Mutant(
        "numbers equal to a threshold are positive",
        "tables/labels.py",
        "np.where(y > task.above, 1, -1)",
        "np.where(y >= task.above, 1, -1)",
        "tests/tables/test_labels.py",
    ),
]

# The engine and the kernels that call it.
KERNELS = [
    Mutant(
        "SPAM uses the mean score of the wrong class",
        "online/spam.py",
        "pace, goal = 2.0 * eta * (1.0 - p), b + 1.0",
        "pace, goal = 2.0 * eta * (1.0 - p), a + 1.0",
        "tests/online/test_spam.py",
    ),
    Mutant(
        "SPAM's average weighs all steps equally",
        "online/spam.py",
        "stats.add_to_average(table, t)",
        "stats.add_to_average(table, 1.0)",
        "tests/online/test_spam.py",
    ),
    Mutant(
        "SOLAM descends in alpha, as published in Algorithm 10",
        "online/solam.py",
        "alpha = (alpha + pace * g_alpha) / (1.0 + forget)",
        "alpha = (alpha - pace * g_alpha) / (1.0 + forget)",
        "tests/online/test_solam.py",
    ),
    Mutant(
        "UniExp keeps its bias when reference points move",
        "online/uniexp.py",
        "bias -= renew(table, how)",
        "renew(table, how)",
        "tests/online/test_uniexp.py",
    ),
    Mutant(
        "OAM ignores the previous step in a pair's margin",
        "online/oam.py",
        "margin = y_t * (s - s_b - total * x_xb)",
        "margin = y_t * (s - s_b)",
        "tests/online/test_oam.py",
    ),
    Mutant(
        "CBR's buffer keeps the covariance from before the step",
        "online/cbr_full.py",
        "scw.add_multiple(-beta * x_z, w, c)",
        "scw.add_multiple(0.0, w, c)",
        "tests/online/test_cbr.py",
    ),
    Mutant(
        "FSAUC keeps the step size of the previous stage",
        "online/fsauc_stages.py",
        "z[ETA] *= min(z[FALL] / before * np.sqrt(beta / z[BETA]), 1.0)",
        "z[ETA] *= 1.0",
        "tests/online/test_fsauc.py",
    ),
    Mutant(
        "the pair samplers draw partners of the row's own class",
        "online/pair_sampler.py",
        "partners = 1 - side",
        "partners = side",
        "tests/online/test_psam.py",
    ),
    Mutant(
        "SVRG's penalty ignores how rare a feature is",
        "online/svrg_rows.py",
        "share = step * pull[RARITY, j]",
        "share = step",
        "tests/online/test_svrg.py tests/online/engine/test_engine.py",
    ),
    Mutant(
        "the l2 penalty is ignored",
        "online/engine/feature_table.py",
        "shrunk = soft / (1.0 + due * ridge(feat, j, l2) * feat[D, j])",
        "shrunk = soft",
        "tests/online/test_spam.py",
    ),
    Mutant(
        "a weight does not follow the scale of its feature",
        "online/engine/feature_table.py",
        "growth = new / old - 1.0 if old > 0.0 else 0.0",
        "growth = 0.0",
        "tests/online/test_spam.py",
    ),
    Mutant(
        "a feature that becomes active keeps its old weight",
        "online/engine/feature_table.py",
        "ASLEEP * new < mark and",
        "new < 0.0 and",
        "tests/contracts/test_streams.py -k 'wake_up and SPAM'",
    ),
    Mutant(
        "squares of sparse rows leave the cross term out",
        "online/engine/centred_rows.py",
        "return s, q - 2.0 * cross, a - cross, b - cross",
        "return s, q, a - cross, b - cross",
        "tests/online/engine/test_engine.py",
    ),
    Mutant(
        "the pending penalty is lost when scales are renewed",
        "online/engine/row_visit.py",
        "        settle(table, how)\n    shift",
        "        table.stats[DUE] = 0.0\n    shift",
        "tests/online/test_spam.py",
    ),
    Mutant(
        "a counted row does not change its class's mean score",
        "online/engine/row_visit.py",
        "news.share * (news.score - a) if y_i > 0.0",
        "0.0 * (news.score - a) if y_i > 0.0",
        "tests/online/test_spam.py",
    ),
    Mutant(
        "steps are not weighted",
        "online/engine/statistics.py",
        "return abs(y[i]) * table.stats[TO_MEAN]",
        "return table.stats[TO_MEAN] * 1.0",
        "tests/online/test_spam.py",
    ),
    Mutant(
        "a threshold allows one false positive too many",
        "thresholds.py",
        "edge = float(np.sort(sample)[n - 1 - allowed])",
        "edge = float(np.sort(sample)[n - 2 - allowed])",
        "tests/test_thresholds.py",
    ),
    Mutant(
        "partial area: the border of the negatives is not cut",
        "metrics/influence.py",
        "W = _mean_clipped(tpr[:-1], tpr[1:], min_tpr, max(end, min_tpr))",
        "W = _mean_clipped(tpr[:-1], tpr[1:], min_tpr, 1.0)",
        "tests/metrics/test_influence.py",
    ),
    Mutant(
        "test rows of a time split may be as old as training rows",
        "blend/honest_splits.py",
        "train = np.isnan(time) | (time < start - wait)",
        "train = np.isnan(time) | (time <= start - wait)",
        "tests/blend/test_honest_splits.py",
    ),
    Mutant(
        "report: names are not escaped",
        "report/html_parts.py",
        'lines.append(f"<tr><th>{escape(first)}</th>{cells}</tr>")',
        'lines.append(f"<tr><th>{first}</th>{cells}</tr>")',
        "tests/report/test_html_report.py",
    ),
]


def check(mutant: Mutant) -> str:
    """Return what is wrong with a mutant's place or tests; empty if nothing is."""
    path = ROOT / SOURCE / mutant.file
    if not path.exists():
        return f"{mutant.file} does not exist ({mutant.name})"
    found = path.read_text().count(mutant.old)
    if found != 1:
        text = f"{mutant.old!r} occurs {found} times, expected once"
        return f"{mutant.file}: {text} ({mutant.name})"
    files = [word for word in mutant.tests.split() if word.startswith("tests/")]
    missing = [file for file in files if not (ROOT / file).exists()]
    return f"{', '.join(missing)} does not exist ({mutant.name})" if missing else ""


def copy(folder: Path) -> None:
    """Copy what the tests need."""
    ignored = shutil.ignore_patterns("__pycache__", "*.nb[ci]")
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)


def run_tests(folder: Path, tests: str) -> int:
    """Return the exit code of pytest in this copy."""
    arguments = "-x -q --no-header -p no:cacheprovider -p no:xdist -o addopts="
    options = "--strict-markers --import-mode=importlib"
    environment = {
        "PYTHONPATH": str(folder / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(folder / "cache"),  # copies must not share kernels
    }
    return subprocess.run(
        f"{sys.executable} -m pytest {arguments} {options} {tests}",
        shell=True,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    ).returncode


def attempt(mutant: Mutant | None, tests: str) -> tuple[int, float]:
    """Return the exit code of pytest and the seconds it took."""
    start = perf_counter()
    with TemporaryDirectory() as name:
        folder = Path(name)
        copy(folder)
        if mutant is not None:
            path = folder / SOURCE / mutant.file
            path.write_text(path.read_text().replace(mutant.old, mutant.new))
        return run_tests(folder, tests), perf_counter() - start


def main() -> int:
    """Run the selected mutants and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", nargs="?", default="", help="part of a file or name")
    parser.add_argument("--check", action="store_true", help="only check the places")
    parser.add_argument(
        "--jobs", type=int, default=2, help="parallel runs (default: 2)"
    )
    given = parser.parse_args()
    every = [*MUTANTS, *KERNELS]
    chosen = [one for one in every if given.which in f"{one.file} {one.name}"]
    wrong = [text for mutant in chosen if (text := check(mutant))]
    if wrong or given.check:
        print(
            *wrong,
            f"{len(chosen) - len(wrong)} of {len(chosen)} places found",
            sep="\n",
        )
        return 1 if wrong else 0
    return run(chosen, given.jobs)


def run(chosen: list[Mutant], jobs: int) -> int:
    """Run mutants, after their tests without any; return 1 if one survives."""
    suites = sorted({mutant.tests for mutant in chosen})
    with ThreadPoolExecutor(jobs) as pool:
        passed = pool.map(lambda tests: attempt(None, tests), suites)
        for tests, (code, _) in zip(suites, passed, strict=True):
            if code:
                raise SystemExit(f"pytest {tests} exits with {code} without any mutant")
        survivors = 0
        done = pool.map(lambda mutant: attempt(mutant, mutant.tests), chosen)
        for mutant, (code, seconds) in zip(chosen, done, strict=True):
            # Only a failed test counts: with other codes the tests did not run.
            word = {FAILED: "caught", 0: "SURVIVED"}.get(code, f"BROKEN ({code})")
            survivors += code != FAILED
            print(
                f"{word:9} {seconds:5.0f} s  {mutant.file}: {mutant.name}", flush=True
            )
    print(f"{len(chosen) - survivors} of {len(chosen)} caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
