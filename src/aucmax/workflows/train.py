"""Training from files and streams: any algorithm, bounded memory, no work lost.

A learner of streams sees one chunk after the other. Between two chunks all there is to
know is its state and a :class:`Progress`; a checkpoint is a model file with both, next
to the model that is to be. As learners do not care how a stream is cut, and readers cut
it the same way again, a run that goes on from a checkpoint ends with the very bytes it
would have ended with.

Other learners get all rows at once.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.row_hashes import row_hashes
from aucmax.io.background import prefetch, ticking
from aucmax.io.batch import Batch, Positive, labelled
from aucmax.io.chunk import START, BadLine, Chunk, Position, Source
from aucmax.io.collect import join, widened
from aucmax.io.feature_scales import Spreads
from aucmax.io.fingerprint import Origin, file_digest
from aucmax.io.malformed_lines import BadLines
from aucmax.io.open_data import open_data, reopen
from aucmax.io.recipe import Judgement
from aucmax.io.table_source import TableSource
from aucmax.io.text import BLOCK
from aucmax.metrics import auc, auc_interval
from aucmax.online.base import OnlineAUC
from aucmax.registry import configured, full_name, named
from aucmax.storage.atomic import (
    check_writable,
    discard,
    refuse_overwriting,
    refuse_twice,
    sole_writer,
)
from aucmax.tables.hashed_names import Word
from aucmax.tables.labels import Task
from aucmax.workflows.models import load_with_recipe, save

_MEMORY_SHARE = 8  # data that would take more than this part of the memory are a stream
FAST = "fast"  # in place of a name: what ranks well in little time
_CHOSEN = ("auto", FAST)
_FEW_ROWS = 300  # too few to tell several models apart
_WIDE = 2000  # features, beyond which a blend is of linear models only
_BLENDED = 1e6  # values that several models take no longer than a minute or two for;
_BUDGET = 60.0  # seconds, beyond that …
_MOST_BLENDED = 1e8  # … up to here
_MANY_VALUES = 2e7  # beyond, Newton's method takes minutes
_FEW_FEATURES = 500  # up to here, class covariances cost next to nothing
_PATIENCE = 0.2  # seconds to wait for data before looking around
_TOLD = 20  # features whose spreads are kept, to tell which ones have the most say
_KEPT_ROWS = 1_000_000  # of a pipe, held out: nobody can read them again
_ROOM = (
    8  # one part in so many more features than seen, while their number is not known
)

Stop = Callable[[], int]  # 0 to go on, else a reason to stop
Score = Callable[[Any], NDArray[np.float64]]  # of rows


class StoppedError(Exception):
    """Training was asked to stop, and has; ``checkpoint`` has all that was learnt."""

    def __init__(self, checkpoint: Path, reason: int) -> None:
        super().__init__(f"Stopped; {checkpoint} has all that was learnt.")
        self.checkpoint = checkpoint
        self.reason = reason  # what the observer gave


@dataclass(frozen=True)
class Plan:
    """What is to be done: the same plan on the same data gives the same model."""

    data: list[str]
    algorithm: str = "auto"
    params: dict[str, Any] = field(default_factory=dict)
    passes: int | None = None
    seed: int = 0
    holdout: float = 0.0  # share of the rows
    positive: str | None = None  # labels, see Task.parse
    reader: dict[str, Any] = field(default_factory=dict)  # options of open_data
    on_bad_line: str = "fail"  # or "skip", "quarantine"
    size: int | None = None  # of the data: they must not change either
    digests: list[str] | None = None  # of each file, see file_digest

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Return what is not as in another plan, given as a dictionary."""
        mine = asdict(self)
        digests, known = mine.pop("digests"), other.get("digests")
        found = [
            f"{name} was {other.get(name)!r}, is {mine[name]!r}"
            for name in mine
            if mine[name] != other.get(name)
        ]
        # Of a run of an earlier version nobody knows.
        if not found and known is not None and digests != known:
            found = ["the data have changed since, though their size is the same"]
        return found


@dataclass
class Progress:
    """How far a run has come."""

    passes: int = 0  # that are over
    position: Position = START
    steps: int = 0  # rows learnt in all passes
    rows: int = 0  # learnt in the first pass
    positives: int = 0  # of these
    held_out: int = 0  # rows in the first pass that were not learnt
    features: int = 0  # seen
    bad: int = 0  # lines in the first pass that were no rows
    quarantined: int = 0  # bytes
    wins: float = 0.0  # pairs of some rows, ranked right before they were learnt …
    pairs: float = 0.0  # … of so many
    mixed: int = 0  # chunks of the first pass with both classes …
    chunks: int = 0  # … of so many

    @property
    def auc(self) -> float | None:
        """Progressive validation: rows are ranked before they are learnt."""
        return self.wins / self.pairs if self.pairs else None


class Observer:
    """Whom a run tells how it goes, and asks whether to stop; this one is silent."""

    def progress(self, progress: Progress, done: int) -> None:
        """Take note of how far things are; ``done`` bytes have been read."""

    def leaderboard(self, lines: Sequence[Any]) -> None:
        """Take note of how members of a race stand, the leader first."""

    def fitting(self, name: str) -> None:
        """Take note that all rows are read, by a learner that wants them at once."""

    def fitted(self, name: str, done: int, total: int) -> None:
        """Take note that a model of a blend is fitted, and how many are."""

    def warn(self, text: str) -> None:
        """Take what a user should know."""

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Give, while a stream is learnt, what is asked between chunks."""
        yield lambda: 0


_SILENT = Observer()


class Result(NamedTuple):
    """A model file that has been written, and how it came about."""

    estimator: Any
    recipe: dict[str, Any]
    progress: Progress
    judged: dict[str, Any] | None  # AUC on rows that were not learnt
    resumed: bool  # whether it went on from a checkpoint


def train(
    plan: Plan,
    output: Path,
    *,
    test: Sequence[str] = (),
    quarantine: Path | None = None,
    checkpoint_rows: int | None = None,
    checkpoint_seconds: float = 30.0,
    resume: bool = False,
    observer: Observer = _SILENT,
) -> Result:
    """Train as planned and write the model to ``output``."""
    if test and plan.holdout:
        raise ValueError("The model is judged by --holdout or by --test: take one.")
    check_writable(output)
    with sole_writer(output):
        return _train(
            plan,
            output,
            test,
            quarantine,
            checkpoint_rows,
            checkpoint_seconds,
            resume,
            observer,
        )


def _train(
    plan: Plan,
    output: Path,
    test: Sequence[str],
    quarantine: Path | None,
    checkpoint_rows: int | None,
    checkpoint_seconds: float,
    resume: bool,
    observer: Observer,
) -> Result:
    """Train; nobody else writes to ``output`` meanwhile."""
    checkpoint = output.with_name(output.name + ".checkpoint")
    refuse_twice(output, checkpoint, quarantine)
    run = _found(checkpoint, plan) if resume else None
    if not resume and checkpoint.exists():
        raise FileExistsError(
            f"{checkpoint} is there: a run was interrupted. Go on with --resume, or "
            "delete that file to begin anew."
        )
    if run is None:
        if resume:
            observer.warn(
                f"There is no {checkpoint} to go on from: training begins anew."
            )
        run = begin(plan)
        resumed = False
    else:
        resumed = True
    refuse_overwriting(output, run.source.files)
    if test and "-" not in test:
        # What is wrong with a name or a column is better known before all is learnt.
        judges = reopen(test, run.source.recipe())
        refuse_overwriting(output, judges.files)
        if quarantine is not None:
            refuse_overwriting(quarantine, judges.files)
        for chunk in until_rows(judges.chunks()):
            labelled(chunk, run.task)
    if quarantine is not None:
        refuse_overwriting(quarantine, run.source.files)
    lines = BadLines(plan.on_bad_line, quarantine, run.progress.quarantined)
    saver = _Saver(
        run, checkpoint, checkpoint_rows, checkpoint_seconds, observer, resumed
    )
    try:
        if run.streams:
            with observer.listening() as stop:
                held = _stream(run, lines, saver, observer, stop)
        else:
            held = _at_once(run, lines, observer)
    finally:
        lines.close()
    run.spreads = telling(run)
    with suppress(OSError, ValueError):  # a file may be gone: names are not worth it
        run.words = run.source.words(run.spreads.features)
    recipe = run.recipe()
    save(run.estimator, output, recipe)
    if saver.wrote:  # else somebody else has
        discard(checkpoint)
    try:
        judged = _judge(run, held, test, recipe)
    except ValueError as error:
        raise ValueError(
            f"{output} is written, but could not be judged: {error}"
        ) from error
    if judged is not None:
        recipe["judged"] = judged
        save(run.estimator, output, recipe)
    return Result(run.estimator, recipe, run.progress, judged, resumed)


@dataclass
class Run:
    """A run under way."""

    plan: Plan
    source: Source
    begun: Iterator[Chunk] | None  # the first pass, if it has been looked into
    task: Task
    estimator: Any
    passes: int
    progress: Progress
    origin: Origin
    spreads: Spreads
    words: Sequence[Word] = ()

    @property
    def streams(self) -> bool:
        """Whether the learner sees one chunk after the other."""
        return hasattr(self.estimator, "partial_fit")

    def recipe(self) -> dict[str, Any]:
        """Return what a model file is to say of its origin."""
        progress = self.progress
        return {
            "input": self.source.recipe(),
            "task": self.task.to_json(),
            "training": {
                "algorithm": self.plan.algorithm,
                "data": self.source.files,
                "rows": progress.rows,
                "positives": progress.positives,
                "held_out": progress.held_out,
                "bad_lines": progress.bad,
                "passes": self.passes if self.streams else None,
                "progressive_auc": progress.auc,
            },
            "origin": self.origin._asdict(),
            "spreads": self.spreads._asdict(),
            "words": [word._asdict() for word in self.words],
        }


def begin(plan: Plan) -> Run:
    """Open the data and look at the first rows; choose what has not been said."""
    keep_text = plan.on_bad_line == "quarantine"
    source = open_data(plan.data, keep_text=keep_text, **plan.reader)
    chunks = source.chunks()
    seen = list(until_rows(chunks))
    if not seen or seen[-1].X.shape[0] == 0:
        problem = next((str(line) for chunk in seen for line in chunk.bad), None)
        reason = f": {problem}" if problem else "; is it empty?"
        raise ValueError(f"There is no row in {', '.join(source.files)}{reason}")
    first = seen[-1]
    if first.y is None:
        raise ValueError(
            "There are no labels to learn from: name their --label column."
        )
    task = _settled(wanted_task(plan.positive, source), source, seen, chunks)
    name = plan.algorithm
    name = choose(source, first, name == FAST) if name in _CHOSEN else full_name(name)
    params = plan.params
    if plan.algorithm in _CHOSEN and name == "AUCClassifier":
        params = {**_budget(source, first), **params}
    plan = replace(plan, algorithm=name, size=source.size, digests=_digests(source))
    estimator = build(name, params, plan.seed)
    passes = plan.passes
    if passes is None:
        # Of the learners of streams, sums of moments gain nothing by a second pass.
        learner = getattr(estimator, "learner", estimator)
        again = isinstance(learner, OnlineAUC) and source.size is not None
        passes = learner.max_iter if again else 1
    if hasattr(estimator, "partial_fit"):
        if passes > 1 and source.size is None:
            raise ValueError("A pipe can be read once only: --passes 1, or use a file.")
    elif plan.passes is not None:
        configured(estimator, {"max_iter": passes})
    return Run(
        plan,
        source,
        chain(seen, chunks),
        task,
        estimator,
        passes,
        Progress(),
        Origin.of(plan.digests or [], first.X),
        Spreads.of(first.X),
    )


def telling(run: Run) -> Spreads:
    """Return the spreads that people will ask for: of the features that say most."""
    try:
        features, weights = run.estimator._formula().slopes()
    except TypeError:  # more than one formula
        return Spreads()
    return run.spreads.largest(features, weights, _TOLD)


def wanted_task(positive: str | None, source: Source) -> Task:
    """Return what the user says is positive, else what is known of the data."""
    if positive is None and source.task is not None:
        return source.task
    return Task.parse(positive)


def _settled(
    task: Task, source: Source, seen: list[Chunk], chunks: Iterator[Chunk]
) -> Task:
    """Return the task, settled by the first rows.

    The first chunk of a pipe is small, and may have one class only: more are read, and
    added to those ``seen``, until labels say enough or it is as much as of a file. It
    takes as much to see which label is the rarer one.
    """
    labels = [chunk.y for chunk in seen if chunk.X.shape[0]]
    while source.size is None and seen[-1].after.offset < BLOCK:
        if not task.halves:  # for which it takes all labels
            with suppress(ValueError):
                found = task.settle(join(labels))
                if not found.by_rarity:
                    return found
        more = next(chunks, None)
        if more is None:
            break
        seen.append(more)
        labels.append(more.y)
    return task.settle(join(labels))


def until_rows(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield chunks up to the first that has rows."""
    for chunk in chunks:
        yield chunk
        if chunk.X.shape[0]:
            return


def choose(source: Source, first: Chunk, fast: bool = False) -> str:
    """Return the algorithm for who names none, by the size of the data.

    A blend for a table (not if it is to be ``fast``), with a time budget if it is
    large; else cross-validated Newton if the data fit in memory, the square loss if
    they are many for that, a race of streams if they do not fit or come through a pipe.
    """
    if source.size is None:
        return "AUCStream"
    total = source.size / max(first.done, 1)
    X = first.X
    stored = X.data.size if sparse.issparse(X) else X.size
    size = total * stored * (X.dtype.itemsize + 4 * sparse.issparse(X))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory / _MEMORY_SHARE:
        return "AUCStream"
    rows, width = total * X.shape[0], X.shape[1]
    is_table = isinstance(source, TableSource)
    narrow = width <= _WIDE or is_table  # of texts, linear models do as well
    values = total * stored if is_table else rows * width
    if not fast and rows >= _FEW_ROWS and narrow and values <= _MOST_BLENDED:
        return "AUCClassifier"
    if total * stored <= _MANY_VALUES:
        return "BAMCV"
    return "LeastSquaresAUCCV" if X.shape[1] <= _FEW_FEATURES else "AUCStream"


def _budget(source: Source, first: Chunk) -> dict[str, float]:
    """Return the time budget of a blend that nobody asked for, if it needs one."""
    values = (source.size or 0) / max(first.done, 1) * np.prod(first.X.shape)
    return {"time_budget": _BUDGET} if values > _BLENDED else {}


def build(name: str, params: dict[str, Any], seed: int) -> Any:
    """Return an estimator by name, with parameters as given."""
    estimator = named(name, **params)
    for key in estimator.get_params():
        if key.rpartition("__")[2] == "random_state" and "random_state" not in params:
            estimator.set_params(**{key: params.get(key, seed)})
    return estimator


def _found(checkpoint: Path, plan: Plan) -> Run | None:
    """Return the run that a checkpoint has kept, if there is one and it is this one."""
    if not checkpoint.exists():
        return None
    estimator, recipe = load_with_recipe(checkpoint)
    if recipe is None or "checkpoint" not in recipe:
        raise ValueError(f"{checkpoint} is a model, not a checkpoint.")
    try:
        theirs, progress, passes = _kept(recipe["checkpoint"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{checkpoint} is a damaged checkpoint: {error}") from error
    keep_text = plan.on_bad_line == "quarantine"
    source = reopen(plan.data, recipe["input"], keep_text=keep_text)
    settled = replace(plan, size=source.size, digests=_digests(source))
    if plan.algorithm in _CHOSEN:
        settled = replace(settled, algorithm=theirs["algorithm"])
    differences = settled.differences(theirs)
    if differences:
        raise ValueError(
            f"{checkpoint} is of another run: {'; '.join(differences)}. Resume with "
            "the same options and data, or delete that file to begin anew."
        )
    task = Task.from_json(recipe["task"])
    told = Origin.told(recipe), Spreads.told(recipe)
    return Run(settled, source, None, task, estimator, passes, progress, *told)


def _kept(said: Any) -> tuple[dict[str, Any], Progress, int]:
    """Return the plan, the progress and the passes that a checkpoint says."""
    plan, passes, numbers = said["plan"], said["passes"], dict(said["progress"])
    position = Position(*numbers.pop("position"))
    for number in (passes, *position, *numbers.values()):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"{number!r} is no number.")
        if not 0 <= number < np.inf:
            raise ValueError(f"{number!r} is no count.")
    if not all(isinstance(number, int) for number in (passes, *position)):
        raise TypeError(f"its position is {position}, of {passes} passes.")
    if not isinstance(plan["algorithm"], str):
        raise TypeError(f"its algorithm is {plan['algorithm']!r}.")
    return plan, Progress(position=position, **numbers), passes


def _digests(source: Source) -> list[str] | None:
    """Return what tells each file from another of its size; None for a pipe."""
    if source.size is None:
        return None
    return [file_digest(Path(name)) for name in source.files]


class _Saver:
    """Writes a checkpoint when one is due."""

    def __init__(
        self,
        run: Run,
        path: Path,
        rows: int | None,
        seconds: float,
        observer: Observer,
        resumed: bool,
    ) -> None:
        self._run, self.path, self._observer = run, path, observer
        self.wrote = resumed  # whether the file is of this run
        self._rows, self._seconds = rows, seconds
        self._steps, self._time = run.progress.steps, monotonic()

    def due(self) -> bool:
        """Return whether it is time."""
        if self._rows is not None:
            return self._run.progress.steps - self._steps >= self._rows
        return monotonic() - self._time >= self._seconds

    def write(self, lines: BadLines) -> None:
        """Write one; what goes wrong here is no reason to stop training."""
        run = self._run
        self._steps, self._time = run.progress.steps, monotonic()
        kept = {
            "plan": asdict(run.plan),
            "passes": run.passes,
            "progress": asdict(run.progress),
        }
        try:
            lines.flush()
            if self.path.exists() and not self.wrote:
                raise FileExistsError(f"{self.path} is not of this run")
            self.wrote = True
            save(run.estimator, self.path, {**run.recipe(), "checkpoint": kept})
        except OSError as error:
            self._observer.warn(
                f"No checkpoint could be written: {error}. Training goes on."
            )


def _stream(
    run: Run,
    lines: BadLines,
    saver: _Saver,
    observer: Observer,
    stop: Stop,
) -> list[Batch]:
    """Learn chunk by chunk; return the rows held out if they cannot be read again."""
    progress, kept = run.progress, []
    again = run.source.size is not None
    with _Referee(progress) as referee:
        while progress.passes < run.passes:
            begun, run.begun = run.begun, None
            reading = begun or run.source.chunks(progress.position)
            for part in ticking(_parts(run, reading), _PATIENCE):
                if part is not None:
                    if progress.passes == 0:
                        _note(progress, part, lines)
                        if part.held is not None and not again:
                            kept.append(part.held)
                            _check_kept(progress)
                    _learn(run, part.learnt, referee)
                    progress.position = part.after
                    progress.steps += len(part.learnt.positive)
                    observer.progress(progress, part.done)
                    if hasattr(run.estimator, "_judged"):
                        observer.leaderboard(run.estimator.leaderboard_)
                # Without a part, a pipe says nothing: is there a wish to stop?
                if reason := stop():
                    referee.wait()
                    saver.write(lines)
                    raise StoppedError(saver.path, reason)
                if part is not None and saver.due():
                    referee.wait()
                    saver.write(lines)
            progress.passes += 1
            progress.position = START
    _check_classes(run)
    if run.estimator.n_features_in_ > progress.features:
        run.estimator._resize(progress.features)
    return kept


def _check_classes(run: Run) -> None:
    progress = run.progress
    if progress.positives in (0, progress.rows):
        side = "positive" if progress.positives else "negative"
        rows = (
            "The only row is"
            if progress.rows == 1
            else f"All {progress.rows:,} rows are"
        )
        raise ValueError(
            f"{rows} of one class, the {side} one; there is "
            f"nothing to rank. Labels were taken as {run.task}: see --positive."
        )


def _check_kept(progress: Progress) -> None:
    if progress.held_out > _KEPT_ROWS:
        raise ValueError(
            f"More than {_KEPT_ROWS:,} rows of a pipe are to be held out, which is too "
            "many to keep: use --test FILE."
        )


def _learn(run: Run, batch: Batch, referee: "_Referee") -> None:
    X, positive, weight = batch
    if len(positive) == 0:
        return
    estimator, progress = run.estimator, run.progress
    progress.features = max(progress.features, X.shape[1])
    if not hasattr(estimator, "classes_"):
        X = widened(X, _roomy(run))
    else:
        if X.shape[1] > estimator.n_features_in_:
            estimator._resize(_roomy(run))
        X = widened(X, estimator.n_features_in_)
        mixed = progress.passes == 0 and 0 < positive.sum() < len(positive)
        if mixed and not hasattr(estimator, "_judged"):
            score = estimator._snapshot()
            if score is not None:
                referee.rank(X, positive, score)
    estimator.partial_fit(X, positive, classes=[False, True], sample_weight=weight)
    if progress.passes == 0 and hasattr(estimator, "_judged"):  # a race, by itself
        progress.wins, progress.pairs = estimator._judged


def _roomy(run: Run) -> int:
    """Return how many features to make room for: to grow by a few costs O(d)."""
    seen = run.progress.features
    if run.source.n_features is not None:
        return seen
    one, two, three = map(run.estimator._state_size, (8, 16, 24))
    linear = three - two <= two - one  # of what grows like d² there is none to spare
    return seen + seen // _ROOM if linear else seen


class _Referee:
    """Ranks chunks by the model from before they were learnt, in a second thread."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._pool = ThreadPoolExecutor(1, "aucmax-referee")
        self._open: deque[Future[tuple[float, float]]] = deque()

    def __enter__(self) -> "_Referee":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if kind is None:
                self.wait()
        finally:
            self._pool.shutdown(cancel_futures=True)

    def rank(self, X: Any, positive: Positive, score: Score) -> None:
        """Rank the rows of a chunk; nobody changes the arrays."""
        self.wait()  # chunks take memory
        self._open.append(self._pool.submit(_won, X, positive, score))

    def wait(self, most: int = 0) -> None:
        """Wait until ``most`` chunks are not judged; add up the others, in order."""
        while len(self._open) > most:
            wins, pairs = self._open.popleft().result()
            self._progress.wins += wins
            self._progress.pairs += pairs


def _won(X: Any, positive: Positive, score: Score) -> tuple[float, float]:
    """Return how many pairs of a chunk are ranked right, and how many there are."""
    pairs = float(positive.sum()) * float((~positive).sum())
    return pairs * auc(positive, score(X)), pairs


def _at_once(run: Run, lines: BadLines, observer: Observer) -> list[Batch]:
    """Read all rows, then fit; return the rows held out."""
    learnt, kept, progress = [], [], run.progress
    for part in prefetch(_parts(run, run.begun or run.source.chunks())):
        _note(progress, part, lines)
        learnt.append(part.learnt)
        if part.held is not None:
            kept.append(part.held)
        observer.progress(progress, part.done)
    batch = Batch.of(learnt)
    del learnt
    _check_classes(run)
    run.spreads = Spreads.of(batch.X)
    observer.fitting(run.plan.algorithm)
    if hasattr(run.estimator, "_told"):  # a blend
        schema = getattr(run.source, "schema", None)
        run.estimator._told(observer.fitted, schema and schema.feature_columns())
    run.estimator.fit(batch.X, batch.positive, sample_weight=batch.weight)
    return kept


class _Part(NamedTuple):
    """A chunk, its labels understood."""

    learnt: Batch
    held: Batch | None  # out
    bad: list[BadLine]
    after: Position
    done: int


def _parts(run: Run, chunks: Iterable[Chunk]) -> Iterator[_Part]:
    """Yield the rows to be learnt and those held out; for the thread that reads."""
    for chunk in chunks:
        batch, bad = labelled(chunk, run.task)
        held = None
        if run.plan.holdout:
            out = held_out(batch.X, run.plan.holdout, run.plan.seed)
            batch, held = batch.where(~out), batch.where(out)
        yield _Part(batch, held, bad, chunk.after, chunk.done)


def _note(progress: Progress, part: _Part, lines: BadLines) -> None:
    learnt, held = part.learnt, part.held
    positives = int(learnt.positive.sum())
    progress.quarantined += lines.take(part.bad)
    progress.rows += len(learnt.positive)
    progress.positives += positives
    progress.held_out += 0 if held is None else len(held.positive)
    progress.bad += len(part.bad)
    progress.mixed += 0 < positives < len(learnt.positive)
    progress.chunks += 1


def held_out(X: Any, share: float, seed: int) -> Positive:
    """Return which rows to hold out: by what is in them, so equal rows go together."""
    hashes = row_hashes(X, seed)
    chosen: Positive = (hashes >> np.uint64(11)) * 2.0**-53 < share
    return chosen


def _judge(
    run: Run, kept: list[Batch], test: Sequence[str], recipe: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the AUC on rows that were not learnt, with its interval."""
    width = run.estimator.n_features_in_
    if test:
        batches = _batches(reopen(test, recipe["input"], n_features=width), run.task)
    elif run.plan.holdout and kept:
        batches = iter(kept)
    elif run.plan.holdout:
        share, seed = run.plan.holdout, run.plan.seed
        data = reopen(run.plan.data, recipe["input"], n_features=width)
        again = _batches(data, run.task)
        batches = (some.where(held_out(some.X, share, seed)) for some in again)
    else:
        return None
    positives, scores, weights = [], [], []
    for X, positive, weight in batches:
        if len(positive):
            scores.append(run.estimator.decision_function(widened(X, width)))
            positives.append(positive)
            weights.append(weight)
    if not positives:
        raise ValueError("There is no row to judge the model by.")
    weighted = all(weight is not None for weight in weights)
    positive, weight = np.concatenate(positives), join(weights) if weighted else None
    if positive.all() or not positive.any():
        side = "positive" if positive.all() else "negative"
        raise ValueError(f"there are {side} rows only to judge by, and no others.")
    interval = auc_interval(positive, np.concatenate(scores), sample_weight=weight)
    return Judgement(
        "test" if test else "holdout",
        len(positive),
        int(positive.sum()),
        weighted,
        {"value": interval.value, "low": interval.low, "high": interval.high},
    )._asdict()


def _batches(source: Source, task: Task) -> Iterator[Batch]:
    for chunk in prefetch(source.chunks()):
        yield labelled(chunk, task)[0]
