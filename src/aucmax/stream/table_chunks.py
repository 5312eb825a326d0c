"""Data frames and lists of dictionaries as chunks of a stream.

The encoder is fitted to the first ``FIRST_ROWS`` rows of a stream, whatever its chunks
are. Until there are so many, the rows are kept.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.table_input import needs_encoding
from aucmax.core.rows import Float
from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning, check_values
from aucmax.storage.state import check_like

FIRST_ROWS = 1000  # with weight
_TAIL = 64  # features that the categories share which are not in the first rows


def is_records(X: Any) -> bool:
    """Return whether X is a list of dictionaries, one per row."""
    if type(X) is dict:
        raise ValueError(
            "X is one dictionary, expected a list of dictionaries, one per row: pass "
            "[X]."
        )
    return isinstance(X, list) and bool(X) and isinstance(X[0], dict)


def is_table(X: Any) -> bool:
    """Return whether X must be encoded: categories, dates, missing values, records."""
    if is_records(X) or needs_encoding(X):
        return True
    return is_numeric_frame(X) and bool(np.isnan(_numbers(X)).any())


def is_numeric_frame(X: Any) -> bool:
    """Return whether X is a pandas data frame of numbers, with unique column names."""
    frame = hasattr(X, "columns") and hasattr(X, "dtypes") and not needs_encoding(X)
    return frame and bool(X.columns.is_unique)


def has_columns(X: Any) -> bool:
    """Return whether X is a data frame or records, whose columns have names."""
    if is_records(X) or needs_encoding(X):
        return True
    return is_numeric_frame(X)


def are_numbers(table: Any) -> bool:
    """Return whether an Arrow table has only numbers."""
    from aucmax.tables.cells import is_number

    return all(is_number(field.type) for field in table.schema)


def column_names(X: Any) -> list[str]:
    """Return the names of the columns of a data frame."""
    return list(map(str, X.column_names if hasattr(X, "column_names") else X.columns))


def rows_of(X: Any, start: int, stop: int | None = None) -> Any:
    """Return the rows of a table from ``start`` to ``stop``."""
    if hasattr(X, "iloc"):
        return X.iloc[start:stop]
    if isinstance(X, list):
        return X[start:stop]
    return X.slice(start, None if stop is None else stop - start)


def _numbers(X: Any) -> Float:
    return np.asarray(X.to_numpy(np.float64, na_value=np.nan))


def filled(X: Any, fill: Float) -> Any:
    """Return a numeric data frame with numbers in place of missing values."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes") or len(fill) != X.shape[1]:
        return X
    values = _numbers(X)
    missing = np.isnan(values)
    if not missing.any():
        return X
    return type(X)(np.where(missing, fill, values), X.index, X.columns)


class FirstRows(NamedTuple):
    """The first rows of a stream of tables, before the encoder is fitted to them."""

    tables: tuple[Any, ...]  # Arrow tables
    signed: Float  # signed weights, none of them zero
    seed: int = 0
    numeric: Any = None  # type of the numbers, of pandas data frames of numbers only

    @classmethod
    def of(cls, X: Any) -> Self:
        """Return no rows, of a stream that begins with X."""
        numeric = None
        if is_numeric_frame(X):
            single = all(kind == np.float32 for kind in X.dtypes)
            numeric = np.float32 if single else np.float64
        return cls((), np.zeros(0), numeric=numeric)

    @property
    def names(self) -> list[str]:
        """Names of the columns of all chunks."""
        return [
            *dict.fromkeys(name for one in self.tables for name in one.column_names)
        ]

    def added(self, table: Any, signed: Float) -> Self:
        """Return these rows and more rows."""
        import pyarrow as pa

        tables, both = [*self.tables, table], np.append(self.signed, signed)
        if len(tables) > 1 and tables[-2].schema == table.schema:
            tables[-2:] = [pa.concat_tables(tables[-2:]).combine_chunks()]
        return self._replace(tables=tuple(tables), signed=both)

    def part(self, start: int, stop: int) -> Self:
        """Return some of the rows."""
        table = self.table().slice(start, stop - start)
        return self._replace(tables=(table,), signed=self.signed[start:stop])

    def table(self) -> Any:
        """Return the rows as one Arrow table; columns of several types become text."""
        import pyarrow as pa

        from aucmax.tables.frames import list_to_arrow

        try:
            found = pa.concat_tables(self.tables, promote_options="permissive")
            return found.combine_chunks()
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            pass
        columns = {
            name: [
                value
                for one in self.tables
                for value in (
                    one.column(name).to_pylist()
                    if name in one.column_names
                    else [None] * len(one)
                )
            ]
            for name in self.names
        }
        return pa.table({name: list_to_arrow(v) for name, v in columns.items()})

    def numbers(self) -> Any:
        """Return the rows of data frames of numbers as an array, else None."""
        from aucmax.tables.cells import numbers
        from aucmax.tables.column_kinds import one_batch

        if self.numeric is None:
            return None
        table = self.table()
        values = [numbers(column).values for column in one_batch(table).columns]
        return np.column_stack(values).astype(self.numeric)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a model file stores."""
        import pyarrow as pa

        sink, table = pa.BufferOutputStream(), self.table()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        content = sink.getvalue().to_pybytes()
        content += bytes(-len(content) % 4)  # files have no bytes, but integers
        return {"rows": np.frombuffer(content, "<i4"), "signed": self.signed}

    @classmethod
    def restored(cls, about: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """Return the rows of stored arrays; raise a ValueError if they are invalid."""
        import pyarrow as pa

        signed, content = check_like(arrays, "signed", (0,)), arrays["rows"]
        seed, numeric = about["seed"], about["numeric"]
        if content.dtype != np.int32 or content.ndim != 1:
            raise ValueError("the first rows of the stream must be an int32 array.")
        if type(seed) is not int or not 0 <= seed < 2**31:
            raise ValueError(f"the random seed is {seed!r}.")
        if numeric not in (None, "float32", "float64"):
            raise ValueError(f"the numbers of the first rows have type {numeric!r}.")
        try:
            with pa.ipc.open_stream(content.tobytes()) as stream:
                table = stream.read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"the first rows of the stream: {error}") from error
        if not len(table) == len(signed) < FIRST_ROWS or not signed.all():
            raise ValueError(
                f"the stream has {len(table)} first rows and {len(signed)} weights."
            )
        if numeric is not None and not are_numbers(table):
            raise ValueError("the first rows of the stream must be numbers.")
        check_rows(table, signed != 0.0)
        numeric = None if numeric is None else np.dtype(numeric).type
        return cls((table,), signed, seed, numeric)


def check_rows(table: Any, present: NDArray[np.bool_]) -> None:
    """Raise an error if a row that is ``present`` has a value that no encoder takes."""
    from aucmax.tables.cells import (
        END_SECOND,
        FIRST_SECOND,
        is_date,
        is_number,
        numbers,
        seconds,
    )
    from aucmax.tables.column_kinds import one_batch
    from aucmax.tables.frames import check_type

    values = np.zeros((len(table), len(table.schema)))
    for k, (field, column) in enumerate(
        zip(table.schema, one_batch(table).columns, strict=True)
    ):
        check_type("data frame", field.name, field.type)
        if is_number(field.type):
            found = numbers(column).values
            values[:, k] = np.where(np.isnan(found), 0.0, found)
        elif is_date(field.type):
            found = seconds(column)
            beyond = ((found < FIRST_SECOND) | (found >= END_SECOND)) & present
            if beyond.any():
                raise ValueError(
                    f"row {int(np.argmax(beyond))}, column {field.name}: the date is "
                    "outside the years 1 to 9999: drop such rows."
                )
    check_values(values, table.column_names, present)


def fit_encoder(X: Any) -> Any:
    """Return an encoder of the columns and categories of all rows."""
    from aucmax.tables.encoder import TableEncoder
    from aucmax.tables.schema import Overrides

    return TableEncoder.fit(as_frame(X), Overrides(encode="onehot"))


def fit_to_first_rows(table: Any, numeric: bool, warn: bool) -> Any:
    """Return an encoder of the first rows of a stream, and of what may come later.

    Columns that are constant or empty so far are features as well, by their type, and
    categories that come later share hashed features.
    """
    import pyarrow as pa

    from aucmax.tables.cells import is_date, is_text
    from aucmax.tables.column_kinds import (
        CATEGORY,
        CONSTANT,
        EMPTY,
        YES_NO,
        find_role,
        one_batch,
        samples_of,
    )
    from aucmax.tables.encoder import TableEncoder
    from aucmax.tables.schema import Overrides

    kinds: dict[str, Any] = {"numeric": [], "categorical": [], "date": []}
    unknown, samples = [], samples_of(one_batch(table), True)
    for field, sample in zip(table.schema, samples, strict=True):
        column = find_role(field.name, sample)
        if column.role == EMPTY and pa.types.is_null(field.type):
            unknown.append(field.name)
        elif numeric or column.role in (CONSTANT, EMPTY):
            date = "date" if is_date(field.type) else "numeric"
            kind = "categorical" if is_text(field.type) else date
            kinds[kind].append(field.name)
    if unknown and warn:
        warn_user(
            f"Columns without a value in the first {FIRST_ROWS:,} rows are not used: "
            f"{', '.join(map(repr, unknown))}. Give them a type, as in a data frame of "
            "numbers.",
            DataWarning,
        )
    encoder = TableEncoder.fit(table, Overrides(**kinds))
    roles = [
        role | {"tail": max(role["tail"], _TAIL)}
        if role["role"] in (CATEGORY, YES_NO)
        else role
        for role in encoder.schema.roles
    ]
    tails = [max(tail, _TAIL) for tail in encoder.schema.tails]
    return TableEncoder(replace(encoder.schema, tails=tails, roles=roles))


def as_table(X: Any, columns: Sequence[str] | None = None) -> Any:
    """Return a data frame or records as an Arrow table; see :func:`as_frame`."""
    from aucmax.tables.frames import to_arrow

    return to_arrow(as_frame(X, columns))


def as_frame(X: Any, columns: Sequence[str] | None = None) -> Any:
    """Return records as an Arrow table, and anything else unchanged.

    A key that a dictionary lacks is a missing value. ``columns`` are the known keys.
    """
    if not is_records(X):
        return X
    import pyarrow as pa

    from aucmax.tables.frames import list_to_arrow

    names = list(dict.fromkeys(key for row in X for key in row))
    if columns is not None:
        names = [*columns, *(name for name in names if name not in columns)]
    return pa.table(
        {str(name): list_to_arrow([row.get(name) for row in X]) for name in names}
    )
