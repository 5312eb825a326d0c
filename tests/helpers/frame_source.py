"""A source of a data frame, to compare files and frames by one interface."""

from aucmax.io.arrow_source import ArrowSource, Batches
from aucmax.io.table_source import TableSource
from aucmax.tables.frames import to_arrow


class FrameSource(ArrowSource):
    """Rows of a data frame, read as those of an Arrow file are."""

    def __init__(self, frame, **options):
        self._table = to_arrow(frame)
        self._sizes = [int(self._table.nbytes)]
        TableSource.__init__(self, ["data frame"], self._sizes[0], **options)

    def _opened(self, file):
        return _Frame(self._table)


class _Frame(Batches):
    def __init__(self, table):
        self._table, self.schema = table, table.schema

    def __exit__(self, *_):
        pass

    def read(self, columns, start, size):
        """Yield at most ``size`` rows at a time, and how much is done."""
        for batch in self._table.select(columns).slice(start).to_batches(size):
            start += len(batch)
            yield batch, start / max(len(self._table), 1)
