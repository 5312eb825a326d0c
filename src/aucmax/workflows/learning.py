"""The loops over the rows: batch by batch, or all rows at once."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.base.interfaces import StreamLearner
from aucmax.io.background import prefetch
from aucmax.io.batch import START, Batch, Positive
from aucmax.io.collect import concatenate, widened
from aucmax.io.malformed_lines import BadLines
from aucmax.io.table_source import TableSource
from aucmax.metrics import auc
from aucmax.workflows.checkpoint import CheckpointWriter
from aucmax.workflows.holdout import held_out
from aucmax.workflows.plan import Observer, Progress, Stop, StoppedError
from aucmax.workflows.run import Run

_PATIENCE = 0.2  # seconds to wait for data before asking whether to stop
_KEPT_ROWS = 1_000_000  # held-out rows of a pipe, which cannot be read again
_ROOM = 8  # room for 1/8 more features than seen, while their number is unknown
Score = Callable[[Any], NDArray[np.float64]]


def learn_stream(
    run: Run,
    lines: BadLines,
    saver: CheckpointWriter,
    observer: Observer,
    stop: Stop,
) -> list[Batch]:
    """Learn batch by batch; return held-out rows that cannot be read again."""
    progress, kept = run.progress, []
    again = run.source.size is not None
    with Evaluator(progress) as evaluator:
        while progress.passes < run.passes:
            begun, run.begun = run.begun, None
            reading = begun or run.source.batches(progress.position)
            for part in prefetch(_split(run, reading), _PATIENCE):
                if part is not None:
                    batch, held = part
                    if progress.passes == 0:
                        _count(progress, batch, held, lines)
                        if held is not None and not again:
                            kept.append(held)
                            _check_kept(progress)
                    _learn(run, batch, evaluator)
                    progress.position = batch.end
                    progress.steps += batch.rows.shape[0]
                    observer.progress(progress, batch.done)
                    if progress.steps and run.estimator.progressive_auc is not None:
                        observer.leaderboard(run.estimator.leaderboard_)
                        observer.refit(*run.estimator.refits_)
                # A pipe without new data gives None, so that a stop is noticed.
                if reason := stop():
                    evaluator.wait()
                    saver.write()
                    raise StoppedError(saver.path, reason)
                if part is not None and saver.due():
                    evaluator.wait()
                    saver.write()
            progress.passes += 1
            progress.position = START
    _check_classes(run)
    if run.estimator.n_features_in_ > progress.features:
        run.estimator.resize(progress.features)
    run.estimator.finish()
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
            f"{rows} {side}; both classes are needed. The positive label is "
            f"{run.task}: see --positive."
        )


def _check_kept(progress: Progress) -> None:
    if progress.held_out > _KEPT_ROWS:
        raise ValueError(
            f"More than {_KEPT_ROWS:,} rows of a pipe would be held out in memory: use "
            "--test FILE instead."
        )


def _learn(run: Run, batch: Batch, evaluator: "Evaluator") -> None:
    X, positive = batch.rows, batch.labels
    if not X.shape[0]:
        return
    estimator: StreamLearner = run.estimator
    progress = run.progress
    progress.features = max(progress.features, X.shape[1])
    if progress.steps == 0 and run.plan.start is None:
        X = widened(X, _with_room(run))
    else:
        if X.shape[1] > estimator.n_features_in_:
            estimator.resize(_with_room(run))
        X = widened(X, estimator.n_features_in_)
        mixed = progress.passes == 0 and 0 < positive.sum() < len(positive)
        if mixed and estimator.progressive_auc is None:
            score = estimator.scorer()
            if score is not None:
                evaluator.rank(X, positive, score)
    estimator.partial_fit(
        X, positive, classes=[False, True], sample_weight=batch.weights
    )
    if progress.passes == 0 and estimator.progressive_auc is not None:
        progress.wins, progress.pairs = estimator.progressive_auc


def _with_room(run: Run) -> int:
    """Return the number of features to make room for; growing costs O(d)."""
    seen = run.progress.features
    if run.source.n_features is not None:
        return seen
    quadratic = run.estimator.grows_quadratically  # room would cost too much
    return seen if quadratic else seen + seen // _ROOM


class Evaluator:
    """Rank batches by the model before it learns them, in a second thread."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._pool = ThreadPoolExecutor(1, "aucmax-evaluator")
        self._open: Future[tuple[float, float]] | None = None

    def __enter__(self) -> "Evaluator":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if kind is None:
                self.wait()
        finally:
            self._pool.shutdown(cancel_futures=True)

    def rank(self, X: Any, positive: Positive, score: Score) -> None:
        """Rank the rows of a batch; the arrays must not change."""
        self.wait()  # batches take memory
        self._open = self._pool.submit(_correct_pairs, X, positive, score)

    def wait(self) -> None:
        """Wait for the last batch, and count its pairs."""
        if self._open is not None:
            wins, pairs = self._open.result()
            self._open = None
            self._progress.wins += wins
            self._progress.pairs += pairs


def _correct_pairs(X: Any, positive: Positive, score: Score) -> tuple[float, float]:
    """Return the number of correctly ranked pairs of a batch, and of all its pairs."""
    pairs = float(positive.sum()) * float((~positive).sum())
    return pairs * auc(positive, score(X)), pairs


def learn_at_once(run: Run, lines: BadLines, observer: Observer) -> list[Batch]:
    """Read all rows, then fit; return the held-out rows."""
    learnt, kept, progress = [], [], run.progress
    for batch, held in prefetch(_split(run, run.begun or run.source.batches())):
        _count(progress, batch, held, lines)
        learnt.append(batch)
        if held is not None:
            kept.append(held)
        observer.progress(progress, batch.done)
    rows = concatenate(learnt)
    extra = {
        name: np.concatenate([batch.extra[name] for batch in learnt])
        for name in learnt[0].extra
    }
    del learnt
    _check_classes(run)
    observer.fitting(run.plan.algorithm)
    if run.plan.algorithm == "AUCClassifier":
        encoder = None
        if isinstance(run.source, TableSource):
            encoder = run.source.encoder
        run.estimator.fit_encoded(
            *rows, encoder=encoder, extra=extra, progress=observer.fitted
        )
    else:
        run.estimator.fit(*rows)
    return kept


def _split(run: Run, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Batch | None]]:
    """Yield rows to learn and held-out rows; runs in the reading thread."""
    for batch in batches:
        labelled, held = batch.labelled(run.task), None
        if run.plan.holdout:
            out = held_out(labelled.rows, run.plan.holdout, run.plan.seed)
            labelled, held = labelled.where(~out), labelled.where(out)
        yield labelled, held


def _count(
    progress: Progress, batch: Batch, held: Batch | None, lines: BadLines
) -> None:
    """Count the rows of the first pass; handle malformed lines."""
    rows, positives = batch.rows.shape[0], int(np.count_nonzero(batch.labels))
    lines.take(batch.malformed)
    progress.rows += rows
    progress.positives += positives
    progress.held_out += 0 if held is None else held.rows.shape[0]
    progress.bad += len(batch.malformed)
    progress.unlabelled += batch.unlabelled
    progress.mixed += 0 < positives < rows
    progress.chunks += 1
