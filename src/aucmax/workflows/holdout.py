"""Held-out rows, and the AUC on them or on test data."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from aucmax.core.row_hashes import row_hashes
from aucmax.io.background import prefetch
from aucmax.io.batch import Batch, Positive
from aucmax.io.collect import join, widened
from aucmax.io.open_data import reopen
from aucmax.io.recipe import Judgement
from aucmax.metrics import auc_interval
from aucmax.workflows.run import Run


def held_out(X: Any, share: float, seed: int) -> Positive:
    """Return which rows to hold out.

    Rows are chosen by a hash of their content, so that equal rows stay together.
    """
    hashes = row_hashes(X, seed)
    chosen: Positive = (hashes >> np.uint64(11)) * 2.0**-53 < share
    return chosen


def evaluate_held_out(
    run: Run, kept: list[Batch], test: Sequence[str], recipe: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the AUC on test or held-out rows, with its confidence interval."""
    width, share = run.estimator.row_width, run.plan.holdout
    if not test and not share:
        return None
    batches: Iterable[Batch] = kept
    if test or not kept:
        source = reopen(test or run.plan.data, recipe["input"], n_features=width)
        batches = (b.labelled(run.task) for b in prefetch(source.batches()))
    positives, scores, weights = [], [], []
    for batch in batches:
        if not test and not kept:
            batch = batch.where(held_out(batch.rows, share, run.plan.seed))
        if batch.rows.shape[0]:
            rows = widened(batch.rows, width)
            scores.append(run.estimator.decision_function(rows))
            positives.append(batch.labels)
            weights.append(batch.weights)
    if not positives:
        raise ValueError("there are no rows to evaluate on.")
    weighted = all(weight is not None for weight in weights)
    positive, weight = np.concatenate(positives), join(weights) if weighted else None
    if positive.all() or not positive.any():
        side = "positive" if positive.all() else "negative"
        raise ValueError(f"all rows to evaluate on are {side}.")
    interval = auc_interval(positive, np.concatenate(scores), sample_weight=weight)
    return Judgement(
        "test" if test else "holdout",
        len(positive),
        int(positive.sum()),
        weighted,
        {"value": interval.value, "low": interval.low, "high": interval.high},
    )._asdict()
