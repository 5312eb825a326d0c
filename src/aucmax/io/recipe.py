"""Validation of the data description in a model file."""

from collections.abc import Sequence
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from aucmax.io.open_data import FORMATS
from aucmax.tables.column_kinds import Column
from aucmax.tables.labels import Task
from aucmax.tables.missing_values import check_markers
from aucmax.tables.number_formats import DATES, NUMBERS
from aucmax.tables.schema import MOST_HASHED, Overrides, Schema

_WHOLE = 2**53  # up to this, an integer is a float
_LARGE = 1e300


class Judgement(NamedTuple):
    """Evaluation on held-out rows at training time."""

    on: Literal["test", "holdout"]
    rows: int
    positives: int
    weighted: bool
    auc: dict[str, float]  # value, low and high of a 95 % interval


def check_recipe(recipe: Any) -> None:
    """Raise a ValueError if the recipe of a model file is invalid."""
    if not isinstance(recipe, dict):
        raise ValueError(f"its recipe is {_shown(recipe)}.")
    reading, training = recipe.get("input"), recipe.get("training", {})
    if not isinstance(reading, dict) or reading.get("format") not in FORMATS:
        raise ValueError("its recipe does not say which format of data it is for.")
    if not isinstance(training, dict):
        raise ValueError(f"its recipe says of its training {_shown(training)}.")
    if reading.get("dtype") not in ("float32", "float64"):
        raise _odd("dtype", reading.get("dtype"))
    Task.from_json(recipe.get("task"))
    _check_judged(recipe)
    if reading["format"] == "svmlight":
        _check_svmlight(reading)
    else:
        _check_table(reading)


def _check_judged(recipe: dict[str, Any]) -> None:
    """Raise an error if the stored evaluation is invalid."""
    judged = recipe.get("judged")
    if judged is None:
        return
    if not _fits_fields(judged, Judgement):
        raise _odd("judged", judged)
    if judged["auc"].keys() != {"value", "low", "high"}:
        raise _odd("judged", judged)


def _fits_fields(content: Any, kind: type) -> bool:
    """Return whether a dictionary has the fields of a class, with their types."""
    kinds = get_type_hints(kind)
    newer = {"low", "high", "kept"}  # not in old files
    return (
        isinstance(content, dict)
        and kinds.keys() - newer <= content.keys() <= kinds.keys()
        and all(_fits(value, kinds[key]) for key, value in content.items())
    )


def _check_svmlight(reading: dict[str, Any]) -> None:
    if not isinstance(reading.get("zero_based"), bool):
        raise _odd("zero_based", reading.get("zero_based"))
    if reading.get("missing") not in ("error", "zero"):
        raise _odd("missing", reading.get("missing"))
    most = reading.get("max_features", 1)  # not in old files
    if type(most) is not int or not 0 < most < 1 << 31:
        raise _odd("max_features", most)


def _check_table(reading: dict[str, Any]) -> None:
    """Raise an error if the description of columns is invalid."""
    schema = Schema.from_json(reading)
    # These options have few values.
    overrides = get_type_hints(Overrides)
    kinds = get_type_hints(Schema) | {
        key: overrides[key] for key in ("encode", "missing")
    }
    for name, kind in kinds.items():
        if not _fits(getattr(schema, name), kind):
            raise _odd(name, getattr(schema, name))
    delimiter = reading.get("delimiter")
    one = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if delimiter is not None and not one:
        raise _odd("delimiter", delimiter)
    try:
        check_markers(schema.na)
    except ValueError as error:
        raise _odd("na", schema.na) from error
    if not 0 < schema.hash_size < 1 << 31:
        raise _odd("hash_size", schema.hash_size)
    used = [*schema.needed(), *filter(None, (schema.label, schema.weight))]
    if len({*used}) < len(used):
        raise ValueError("its recipe has two uses of one column.")
    if len(schema.means) not in (0, len(schema.numbers)):
        raise _odd("means", schema.means)
    known = len(schema.values)
    if known not in (0, len(schema.categories)) or (
        schema.encode in ("onehot", "codes") and known != len(schema.categories)
    ):
        raise _odd("values", schema.values)
    _check_found(schema)


def _check_found(schema: Schema) -> None:
    """Raise an error if the entries about columns contradict each other."""
    auto, many = schema.encode == "auto", len(schema.categories)
    if len(schema.tails) != (many if auto else 0):
        raise _odd("tails", schema.tails)
    if auto and len(schema.values) != many:
        raise _odd("values", schema.values)
    if not all(0 <= tail <= MOST_HASHED for tail in schema.tails):
        raise _odd("tails", schema.tails)
    for names, known in ((schema.notated, NUMBERS), (schema.dates, DATES)):
        for name in names:
            if schema.notation.get(name) not in known:
                raise _odd("notation", schema.notation)
    if not {*schema.flagged} <= {*schema.numbers, *schema.notated}:
        raise _odd("flagged", schema.flagged)
    if not {*schema.spelt} <= {*schema.categories}:
        raise _odd("spelt", schema.spelt)
    for role in schema.roles:
        if not _fits_fields(role, Column):
            raise _odd("roles", role)


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a JSON value has a Python type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin in (list, Sequence):
        return isinstance(value, list) and all(_fits(one, inner[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            _fits(one, inner[1]) for one in value.values()
        )
    if kind is float:
        small = type(value) is int and abs(value) < _WHOLE
        return small or (type(value) is float and abs(value) < _LARGE)
    return kind is Any or type(value) is kind


def _odd(name: str, value: Any) -> ValueError:
    return ValueError(f"its recipe has {name} = {_shown(value)}.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
