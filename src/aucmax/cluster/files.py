"""Training from files that all workers can read, each its own part.

The first rows say how columns become features and which labels are positive, as in
:mod:`aucmax.workflows.train`; with that recipe, workers read spans of rows. A span of
Parquet is some row groups of a file, whose sizes are known; of other formats, it is a
file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed

from aucmax.cluster.blocks import Block, Table, Watch, checked, summed
from aucmax.cluster.fitting import fit_table, how_to_fit
from aucmax.cluster.versions import check_versions
from aucmax.io.batch import Batch, labelled
from aucmax.io.chunk import Chunk, Position, Source
from aucmax.io.collect import widened
from aucmax.io.open_data import open_data, reopen
from aucmax.storage.atomic import check_writable, refuse_overwriting
from aucmax.storage.locks import sole_writer
from aucmax.storage.models import save_model
from aucmax.tables.labels import Task
from aucmax.workflows.choose import FAST
from aucmax.workflows.plan import Plan
from aucmax.workflows.run import begin, first_chunks, influential_scales, requested_task
from aucmax.workflows.train import Result

_SPAN_BYTES = 1 << 27  # of rows, as numbers, that one task reads
_PLACES = 1 << 40  # rows that a file may have, where nobody has counted
_FEW_FEATURES = 1000  # up to here, class covariances cost little


class Span(NamedTuple):
    """Rows of a file."""

    file: str
    first: int
    last: int | None  # one past it, if that is known
    start: int  # the place of the first among all rows


def fit_files(
    estimator: Any,
    paths: str | Sequence[str],
    *,
    label: str | int | None = None,
    positive: str | None = None,
    watch: Watch | None = None,
    **reader: Any,
) -> Any:
    """Fit an estimator to files that all workers of a cluster can read.

    Parameters
    ----------
    estimator : LeastSquaresAUC, LeastSquaresAUCCV, BAM or BAMCV
        As for :func:`fit`.
    paths : str or list of str
        Files, folders or patterns, as "part-*.parquet". Parquet files are shared out by
        row groups, others file by file.
    label : str or int, default=None
        The column of the labels.
    positive : str, default=None
        The labels to rank high, with commas, as for ``aucmax train``; by default what
        the first rows say.
    watch : callable, default=None
        Is told the number of passes over the rows, after each.
    **reader
        Options of the reader, as for ``aucmax train --input``.

    Returns
    -------
    estimator
        The same, fitted, with classes False and True; it takes data frames that have
        the columns of the files.

    Notes
    -----
    What has to be learnt of all rows before there are features, as means to impute and
    one-hot categories, is read once by this process alone; with ``missing="zero"`` and
    ``encode="hash"`` there is nothing to learn.
    """
    how = how_to_fit(estimator)
    names = [paths] if isinstance(paths, str) else list(paths)
    source = open_data(names, label=label, **reader)
    first = _first(source)
    task = requested_task(positive, source).settle(first.y)
    fit_table(estimator, how, _table(source, task, watch))
    recipe = source.recipe()
    if recipe["format"] in ("csv", "parquet"):
        from aucmax.io.frame import FrameEncoder  # which needs pyarrow

        estimator.encoder_ = FrameEncoder(recipe)
    return estimator


def _first(source: Source) -> Chunk:
    """Return the first rows, with labels."""
    seen = list(first_chunks(source.chunks()))
    if not seen or seen[-1].X.shape[0] == 0:
        raise ValueError(f"There is no row in {', '.join(source.files)}.")
    if seen[-1].y is None:
        raise ValueError("There are no labels to learn from: name their label column.")
    return seen[-1]


def _table(source: Source, task: Task, watch: Watch | None = None) -> Table:
    """Return the rows of all files, that nobody has read."""
    check_versions()
    if source.n_features is None:
        raise ValueError(
            "How many features there are is not known before all rows are read: say "
            "so by the option n_features of the reader."
        )
    spans = list(_spans(source))
    recipe, told, width = source.recipe(), task.to_json(), source.n_features
    make = delayed(_block, pure=False)
    blocks = [make(span, recipe, told, width) for span in spans]
    if all(span.last is not None for span in spans):
        n_rows = sum(span.last - span.first for span in spans if span.last is not None)
    else:
        n_rows = summed([delayed(_count, pure=False)(block) for block in blocks])
    weighted = recipe.get("weight") is not None
    return Table(blocks, np.array([False, True]), n_rows, weighted, None, watch)


def _count(block: Block) -> int:
    return int(block.X.shape[0])


def _spans(source: Source) -> Iterator[Span]:
    size = max(_SPAN_BYTES // (8 * max(source.n_features or 1, 1)), 1)
    start = 0
    for number, file in enumerate(source.files):
        groups = _group_sizes(file) if source.recipe()["format"] == "parquet" else None
        if groups is None:
            yield Span(file, 0, None, number * _PLACES)
            continue
        first = last = 0
        for rows in groups:
            if last > first and last + rows - first > size:
                yield Span(file, first, last, start + first)
                first = last
            last += rows
        yield Span(file, first, last, start + first)
        start += last


def _group_sizes(file: str) -> list[int] | None:
    from aucmax.io.parquet import Batches

    with Batches(file) as batches:
        return batches.group_sizes()


def _block(
    span: Span, recipe: dict[str, Any], told: dict[str, Any], width: int
) -> Block:
    """Read the rows of a span."""
    task = Task.from_json(told)
    source = reopen([span.file], recipe, n_features=width)
    parts = []
    if span.last != span.first:
        for chunk in source.chunks(Position(0, span.first, span.first)):
            batch, bad = labelled(chunk, task)
            if bad:
                more = f" (and {len(bad) - 1:,} more nearby)" if bad[1:] else ""
                raise ValueError(f"{bad[0]}{more}")
            if span.last is not None and chunk.after.offset > span.last:
                raise ValueError(f"{span.file} has changed while it was read.")
            parts.append(batch._replace(X=widened(batch.X, width)))
            if chunk.after.offset == span.last:
                break
    if not parts:
        return checked(np.empty((0, width)), np.empty(0), span.start)
    X, positive, weight = Batch.of(parts)
    signed = np.where(positive, 1.0, -1.0)
    if weight is not None:
        signed *= weight
    try:
        return checked(X, signed, span.start)
    except ValueError as error:
        raise ValueError(f"{span.file}, from row {span.first}: {error}") from error


def train(plan: Plan, output: Path, watch: Watch | None = None) -> Result:
    """Train as planned on a cluster, and write the model to ``output``."""
    check_writable(output)
    with sole_writer(output):
        if plan.algorithm in ("auto", FAST):
            wide = (open_data(plan.data, **plan.reader).n_features or 0) > _FEW_FEATURES
            plan = replace(plan, algorithm="BAM" if wide else "LeastSquaresAUCCV")
        run = begin(plan)
        refuse_overwriting(output, run.source.files)
        how = how_to_fit(run.estimator)
        table = _table(run.source, run.task, watch)
        fit_table(run.estimator, how, table)
        run.progress.rows = table.n_rows
        run.progress.positives = int(table.counts[0])
        run.spreads = influential_scales(run)
        recipe = run.recipe()
        recipe["training"]["passes"] = None
        save_model(run.estimator, output, recipe=recipe)
        return Result(run.estimator, recipe, run.progress, None, False)
