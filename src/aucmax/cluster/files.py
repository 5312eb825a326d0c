"""Training from files that all workers can read.

The client reads the first rows and decides how columns become features and which labels
are positive, as in :mod:`aucmax.workflows.train`. The workers then read spans of rows:
some row groups of a Parquet file, or a whole file of another format.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import delayed

from aucmax.cluster.distributed_rows import (
    Block,
    DistributedRows,
    PassCallback,
    checked_block,
)
from aucmax.cluster.fitting import find_fit, fit_rows
from aucmax.cluster.versions import check_versions
from aucmax.io.batch import Batch, Position, Source
from aucmax.io.collect import concatenate, widened
from aucmax.io.open_data import open_data, reopen
from aucmax.storage.atomic import check_writable, refuse_overwriting
from aucmax.storage.locks import sole_writer
from aucmax.storage.models import save_model
from aucmax.tables.encoder import TableEncoder
from aucmax.tables.labels import Task
from aucmax.workflows.choose import FAST
from aucmax.workflows.plan import Plan
from aucmax.workflows.run import (
    begin,
    first_batches,
    influential_scales,
)
from aucmax.workflows.train import Result

_SPAN_BYTES = 1 << 27  # of dense float64 rows that one task reads
_MAX_ROWS = 1 << 40  # of a file: spaces the row numbers of files of unknown length
_FEW_FEATURES = 1000  # up to here, class covariances are cheap


class Span(NamedTuple):
    """Rows ``first`` to ``stop`` of a file."""

    file: str
    first: int
    stop: int | None  # None if the length of the file is unknown
    start: int  # number of the first row among all rows


def fit_files(
    estimator: Any,
    paths: str | Sequence[str],
    *,
    label: str | int | None = None,
    positive: str | None = None,
    watch: PassCallback | None = None,
    **reader: Any,
) -> Any:
    """Fit an estimator to files that all workers of a cluster can read.

    Parameters
    ----------
    estimator : LeastSquaresAUC, LeastSquaresAUCCV, BAM or BAMCV
        As for :func:`fit`.
    paths : str or list of str
        Files, folders or patterns such as ``part-*.parquet``. Parquet files are
        divided by row groups, others by file.
    label : str or int, default=None
        Label column (name or 0-based index).
    positive : str, default=None
        Positive labels, separated by commas, as for ``aucmax train``; by default
        guessed from the first rows.
    watch : callable, default=None
        Called after each pass over the rows with the number of passes so far.
    **reader
        Reader options, as for ``aucmax train --input``.

    Returns
    -------
    estimator
        The fitted estimator, with classes False and True; it accepts data frames with
        the columns of the files.

    Notes
    -----
    Encodings that depend on all rows, such as means for imputation and one-hot
    categories, are computed by the client in one pass of its own. The options
    ``missing="zero"`` and ``encode="hash"`` avoid it.

    Examples
    --------
    >>> from aucmax import LeastSquaresAUCCV, cluster
    >>> model = cluster.fit_files(
    ...     LeastSquaresAUCCV(), "clicks-*.parquet", label="clicked"
    ... )  # doctest: +SKIP
    """
    fitting = find_fit(estimator)
    names = [paths] if isinstance(paths, str) else list(paths)
    source = open_data(names, label=label, **reader)
    first = _first(source)
    task = Task.parse(positive).settle(first.labels)
    fit_rows(estimator, fitting, _distributed_rows(source, task, watch))
    recipe = source.recipe()
    if recipe["format"] != "svmlight":
        estimator.encoder_ = TableEncoder.from_json(recipe)
    return estimator


def _first(source: Source) -> Batch:
    """Return the first labelled rows."""
    seen = list(first_batches(source.batches()))
    if not seen or seen[-1].rows.shape[0] == 0:
        raise ValueError(f"No rows in {', '.join(source.files)}.")
    if seen[-1].labels is None:
        raise ValueError("The files have no labels: name the label column by label=.")
    return seen[-1]


def _distributed_rows(
    source: Source, task: Task, watch: PassCallback | None = None
) -> DistributedRows:
    """Return the rows of all files, to be read by the workers."""
    check_versions()
    if source.n_features is None:
        raise ValueError(
            "The number of features is unknown before all rows are read: set the "
            "reader option n_features."
        )
    spans = list(_spans(source))
    recipe, labels, n_features = source.recipe(), task.to_json(), source.n_features
    make = delayed(_block, pure=False)
    blocks = [make(span, recipe, labels, n_features) for span in spans]
    if all(span.stop is not None for span in spans):
        n_rows = sum(span.stop - span.first for span in spans if span.stop is not None)
    else:
        n_rows = sum(dask.compute(*[delayed(_count, pure=False)(b) for b in blocks]))
    weighted = recipe.get("weight") is not None
    classes = np.array([False, True])
    return DistributedRows(blocks, classes, n_rows, weighted, None, watch)


def _count(block: Block) -> int:
    return int(block.X.shape[0])


def _spans(source: Source) -> Iterator[Span]:
    size = max(_SPAN_BYTES // (8 * max(source.n_features or 1, 1)), 1)
    start = 0
    for number, file in enumerate(source.files):
        groups = _group_sizes(file) if source.recipe()["format"] == "parquet" else None
        if groups is None:
            yield Span(file, 0, None, number * _MAX_ROWS)
            continue
        first = stop = 0
        for rows in groups:
            if stop > first and stop + rows - first > size:
                yield Span(file, first, stop, start + first)
                first = stop
            stop += rows
        yield Span(file, first, stop, start + first)
        start += stop


def _group_sizes(file: str) -> list[int] | None:
    from aucmax.io.arrow_source import Batches

    with Batches(file) as batches:
        return batches.group_sizes()


def _block(
    span: Span, recipe: dict[str, Any], labels: dict[str, Any], n_features: int
) -> Block:
    """Read the rows of a span."""
    task = Task.from_json(labels)
    source = reopen([span.file], recipe, n_features=n_features)
    parts = []
    if span.stop != span.first:
        for read in source.batches(Position(0, span.first, span.first)):
            batch = read.labelled(task)
            if bad := batch.malformed:
                more = f" (and {len(bad) - 1:,} more nearby)" if bad[1:] else ""
                raise ValueError(f"{bad[0]}{more}")
            if span.stop is not None and batch.end.offset > span.stop:
                raise ValueError(f"{span.file} changed while it was read: train again.")
            parts.append(batch._replace(rows=widened(batch.rows, n_features)))
            if batch.end.offset == span.stop:
                break
    if not parts:
        return checked_block(np.empty((0, n_features)), np.empty(0), span.start)
    X, positive, weight = concatenate(parts)
    signed = np.where(positive, 1.0, -1.0)
    if weight is not None:
        signed *= weight
    try:
        return checked_block(X, signed, span.start)
    except ValueError as error:
        raise ValueError(f"{span.file}, from row {span.first}: {error}") from error


def train(plan: Plan, output: Path, watch: PassCallback | None = None) -> Result:
    """Train by a plan on a cluster, and write the model to ``output``."""
    check_writable(output)
    with sole_writer(output):
        if plan.algorithm in ("auto", FAST):
            wide = (open_data(plan.data, **plan.reader).n_features or 0) > _FEW_FEATURES
            plan = replace(plan, algorithm="BAM" if wide else "LeastSquaresAUCCV")
        run = begin(plan)
        refuse_overwriting(output, run.source.files)
        fitting = find_fit(run.estimator)
        rows = _distributed_rows(run.source, run.task, watch)
        fit_rows(run.estimator, fitting, rows)
        run.progress.rows = rows.n_rows
        run.progress.positives = int(rows.class_counts[0])
        run.spreads = influential_scales(run)
        recipe = run.recipe()
        recipe["training"]["passes"] = None
        save_model(run.estimator, output, recipe=recipe)
        return Result(run.estimator, recipe, run.progress, None, False)
