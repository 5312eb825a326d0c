"""Columns of training files that look like time or groups."""

import numpy as np

from aucmax.io.open_data import reopen
from aucmax.io.table_source import TableSource
from aucmax.tables.structure import Hint, find_structure
from aucmax.workflows.run import Run

_ROWS = 20_000  # that are read again
_MOST_COLUMNS = 500


def file_hints(run: Run) -> list[Hint]:
    """Return hints for an AUCClassifier of a table, from its first rows as text.

    They are read again, so there are none for a pipe, and none if the user has named a
    column of time or of groups.
    """
    source = run.source
    if not isinstance(source, TableSource) or source.size is None:
        return []
    if run.estimator.time is not None or run.estimator.group is not None:
        return []
    schema = source.schema
    names = [
        name for name in schema.columns if name not in (schema.label, schema.weight)
    ]
    again = reopen(source.files, source.recipe(), extra=names[:_MOST_COLUMNS])
    parts, rows = [], 0
    for batch in again.batches():
        parts.append(batch.labelled(run.task))
        rows += parts[-1].rows.shape[0]
        if rows >= _ROWS:
            break
    columns = {
        name: np.concatenate([part.extra[name] for part in parts])
        for name in names[:_MOST_COLUMNS]
    }
    labels = np.concatenate([part.labels for part in parts])
    return find_structure(columns, labels)
