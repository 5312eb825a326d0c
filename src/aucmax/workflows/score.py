"""Scoring of files and streams, batch by batch, in the order of the data.

A model that was trained from files stores how to read such files.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from aucmax.blend.blended_model import BlendedModel
from aucmax.core.validation import DataWarning
from aucmax.io.background import prefetch
from aucmax.io.batch import Batch, Source
from aucmax.io.collect import widened
from aucmax.io.malformed_lines import BadLines
from aucmax.io.open_data import guess_format, reopen
from aucmax.io.svmlight import SvmlightSource
from aucmax.io.text import Text
from aucmax.storage.atomic import refuse_overwriting
from aucmax.storage.model_file import is_model
from aucmax.tables.encoder import TableEncoder
from aucmax.tables.labels import Task
from aucmax.workflows.models import load_with_recipe
from aucmax.workflows.score_writers import (
    ArrowWriter,
    CsvWriter,
    JsonWriter,
    ScoreWriter,
    opened,
)
from aucmax.workflows.select_rows import Scores, TopRows


class Model(NamedTuple):
    """The estimator of a model file, and how it reads data."""

    estimator: Any
    recipe: dict[str, Any] | None  # None if the model was trained in Python

    @classmethod
    def load(cls, path: str | Path) -> "Model":
        """Read a model file."""
        return cls(*load_with_recipe(path))

    @classmethod
    def load_for(cls, path: Path, data: Sequence[str], command: str) -> "Model":
        """Read a model file; raise an error if model and data are interchanged."""
        if data and is_model(data[0]) and not is_model(path):
            raise ValueError(
                f"{path} is not a model file, but {data[0]} is. The model comes first: "
                f"aucmax {command} {data[0]} {path}"
            )
        return cls.load(path)

    @property
    def width(self) -> int:
        """Return the number of features."""
        return int(self.estimator.row_width)

    def task(self) -> Task:
        """Return which labels are positive."""
        if self.recipe is not None:
            return Task.from_json(self.recipe["task"])
        negative, positive = self.estimator.classes_.tolist()
        if isinstance(positive, bool):
            return Task()
        return Task.of([positive], [negative])

    def names(self, features: Sequence[int] | None = None) -> list[str]:
        """Return names of features (default: all), or their numbers as text."""
        if features is None:
            features = range(self.width)
        reading = {"format": None} if self.recipe is None else self.recipe["input"]
        if reading["format"] not in (None, "svmlight"):  # columns are not features
            from aucmax.tables.schema import Schema

            return Schema.from_json(reading).feature_names(features)
        if hasattr(self.estimator, "feature_names_in_"):
            known = self.estimator.feature_names_in_
            return [str(known[index]) for index in features]
        one_based = reading["format"] == "svmlight" and not reading["zero_based"]
        return [str(index + one_based) for index in features]

    def open(
        self,
        data: Sequence[str],
        changes: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Source:
        """Return a reader that builds the features this model was trained on.

        ``changes`` and ``options`` are as for :func:`aucmax.io.open_data.reopen`.
        """
        options["n_features"] = self.width
        if self.recipe is not None:
            return reopen(data, self.recipe["input"], changes=changes, **options)
        changes = dict(changes or {})
        has_columns = bool(options.pop("extra", ()))
        has_columns |= options.pop("weight", None) not in (None, "none")
        text = Text(data)
        known = guess_format(text)
        if known != "svmlight" or has_columns:
            raise ValueError(
                "The model was trained in Python and does not store how columns become "
                f"features: it cannot read {known} data. Train it with aucmax train, "
                "or score in Python: aucmax.load(MODEL).decision_function(X)."
            )
        options["missing"] = changes.pop("missing", "error")
        if changes:
            raise ValueError(
                f"{', '.join(sorted(changes))}: svmlight data only accept the option "
                "'missing'."
            )
        return SvmlightSource(text, **options)

    def score(self, X: Any) -> Scores:
        """Return the score of each row; features unknown to the model are ignored."""
        if X.shape[1] > self.width:
            warnings.warn(
                f"The model has {self.width:,} features: further features of the data "
                "are ignored.",
                DataWarning,
                stacklevel=2,
            )
            X = X[:, : self.width]
        X = widened(X, self.width)
        scores: Scores = self.estimator.decision_function(X)
        return scores


def scored(
    model: Model, source: Source, watch: Callable[[int, int], None]
) -> Iterator[tuple[Batch, Scores]]:
    """Yield batches of the data with the scores of their rows.

    ``watch`` is called with the numbers of bytes and rows done.
    """
    rows = 0
    for batch in prefetch(source.batches()):
        n = batch.rows.shape[0]
        scores = model.score(batch.rows) if n else np.empty(0)
        rows += n
        yield batch, scores
        watch(batch.done, rows)


class Output(NamedTuple):
    """What is written for each row beside its score, and for which rows."""

    top: int | None = None  # rows with the highest scores; None: all rows
    probability: bool = False
    decide: bool = False
    reasons: int = 0  # columns that contribute most

    def names(self) -> list[str]:
        """Return the names of the columns that are added."""
        wanted = {
            "score": True,
            "probability": self.probability,
            "decision": self.decide,
            "reasons": bool(self.reasons),
        }
        return [name for name, asked in wanted.items() if asked]


def write_scores(
    model: Model,
    data: Sequence[str],
    output: Path | None,
    bad: BadLines,
    watch: Callable[[Sequence[str]], Any],
    changes: Mapping[str, Any] | None = None,
    what: Output = Output(),  # noqa: B008 (immutable)
) -> tuple[int, int]:
    """Score data and write the scores to a file or standard output.

    Return the numbers of rows scored and written. The file appears when it is complete.
    ``watch`` takes the files and returns a context manager that gives ``watch`` of
    :func:`scored`; ``changes`` are as for :meth:`Model.open`.
    """
    _check_output(model, what)
    if what.reasons and model.recipe is not None:
        # Names of columns; the rows are encoded by the reader.
        model.estimator.encoder_ = TableEncoder.from_json(model.recipe["input"])
    # prompt: a program that writes to the pipe may wait for the scores.
    reopened = partial(model.open, labelled=False, changes=changes)
    source = reopened(data, keep_text=True, prompt=True)
    known, rows, written = source.recipe()["format"], 0, 0
    if known == "svmlight" and what.top is not None:
        raise ValueError(
            "--top leaves out rows, but scores of svmlight data are matched to rows by "
            "their order; use CSV, JSON lines or Parquet."
        )
    to_parquet = output is not None and output.suffix in (".parquet", ".pq")
    if to_parquet and known != "parquet":
        raise ValueError(f"{output}: only Parquet data can be written as Parquet.")
    if output is not None:
        refuse_overwriting(output, source.files)
    held = None if what.top is None else TopRows(what.top)
    with opened(output) as file, watch(source.files) as meter:
        writer: ScoreWriter
        if known == "csv":
            writer = CsvWriter(file, what.names(), source, reopened)
        elif known == "parquet":
            writer = ArrowWriter(file, what.names(), to_parquet)
        else:
            kind = JsonWriter if known == "jsonl" else ScoreWriter
            writer = kind(file, what.names())
        for batch, scores in scored(model, source, meter):
            bad.take(batch.malformed)
            if scores.size or batch.malformed:
                writer.check(batch)
            if held is not None:
                batch = batch._replace(malformed=[])
            rows += scores.size
            if held is not None:
                held.add(batch, scores)
                continue
            writer.write(batch, _columns(model, batch, scores, what))
            written += scores.size
            if output is None:
                file.flush()
        if held is not None and (found := held.rows()) is not None:
            writer.write(found[0], _columns(model, *found, what))
            written += found[1].size
        writer.close()
    return rows, written


def _check_output(model: Model, what: Output) -> None:
    name = type(model.estimator).__name__
    if what.probability and not hasattr(model.estimator, "predict_proba"):
        raise ValueError(
            f"--probability: {name} produces ranking scores, not probabilities; train "
            "with the default algorithm."
        )
    if what.decide and not isinstance(model.estimator, BlendedModel):
        raise ValueError(f"--decide needs a model of AUCClassifier, not of {name}.")
    if what.reasons and not isinstance(model.estimator, BlendedModel):
        raise ValueError(f"--reasons needs a model of AUCClassifier, not of {name}.")
    if what.reasons and what.top is None:
        raise ValueError("--reasons takes a while for each row: add --top K.")


def _columns(
    model: Model, batch: Batch, scores: Scores, what: Output
) -> list[NDArray[Any]]:
    columns: list[NDArray[Any]] = [scores]
    if what.probability:
        columns.append(expit(scores))
    if what.decide:
        columns.append(model.estimator.called(scores).astype(np.int64))
    if what.reasons:
        rows = widened(batch.rows, model.width)
        found = model.estimator.reasons(rows, top=what.reasons)
        texts = [
            "; ".join(f"{one.column} {one.contribution:+.2f}" for one in row)
            for row in found
        ]
        columns.append(np.array(texts, dtype=object))
    return columns
