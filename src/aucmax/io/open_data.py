"""Open data files: choose the reader by file name or content."""

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from aucmax.io.batch import Source
from aucmax.io.text import Text

_READERS = {
    "svmlight": ("svmlight", "SvmlightSource"),
    "csv": ("csv_source", "CsvSource"),
    "jsonl": ("json_lines", "JsonLinesSource"),
    "parquet": ("arrow_source", "ArrowSource"),
}
FORMATS = tuple(_READERS)

_ENDINGS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "parquet",
    ".feather": "parquet",
    ".ipc": "parquet",
}
# Options that can be set when a model fixes how features are built.
_CHANGES = {
    "svmlight": ("missing",),
    "csv": ("delimiter", "label", "missing"),
    "jsonl": ("label", "missing"),
    "parquet": ("label", "missing"),
}
OURS = {"keep_text", "extra", "labelled", "prompt"}  # internal options

_SPREADSHEETS = {".xlsx", ".xlsm", ".xls", ".ods"}
_OTHERS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # Zip, as .xlsx is one, and old Excel

_PACKED = {".gz", ".bz2", ".xz", ".zst"}

# A label, then only index:value pairs; a comment may follow.
_SVMLIGHT = re.compile(rb"\s*[^\s,;:#]+(\s+(qid|[+-]?\d+):[^\s:,;]+)*\s*(#.*)?$")
_LOOK_AT = 50  # lines
_FEW = 4096  # bytes: a pipe delivers that much at once, or all it has


def open_data(
    paths: Sequence[str], *, format: str | None = None, **options: Any
) -> Source:
    """Return a reader of files, folders, globs or standard input (``-``).

    ``options`` are those of :class:`SvmlightSource`, :class:`CsvSource` and
    :class:`ArrowSource`; the format is guessed if it is not given.
    """
    if not paths:
        raise ValueError("No input: give a file, or - for a pipe.")
    text = Text(paths)
    known = guess_format(text) if format is None else format
    if known not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {format!r}.")
    if format is None:
        _refuse_mixture(text.files, known)
    reader = _reader(known)
    options = {name: value for name, value in options.items() if value is not None}
    understood = reader.options
    if unknown := options.keys() - understood:
        if "extra" in unknown:
            raise _no_column(options["extra"][0])
        raise ValueError(
            f"{', '.join(sorted(unknown))}: unknown option for {known} data. Options: "
            f"{', '.join(sorted(understood - OURS))}."
        )
    source: Source = reader(paths if known == "parquet" else text, **options)
    return source


def reopen(
    paths: Sequence[str],
    recipe: dict[str, Any],
    *,
    keep_text: bool = False,
    extra: Sequence[str] = (),
    n_features: int | None = None,
    labelled: bool = True,
    weight: str | None = None,
    prompt: bool = False,
    changes: Mapping[str, Any] | None = None,
) -> Source:
    """Return a reader that builds the features of a model.

    Tables may have another format than the training data. With ``labelled=False``,
    labels are not read. Weights are in the column ``weight``,
    by default that of the recipe; ``"none"`` for no weights. ``prompt`` is as in
    :class:`Text`. ``changes`` are reader options for these data; see ``_CHANGES``.
    """
    changes = dict(changes or {})
    if not paths:
        raise ValueError("No input: give a file, or - for a pipe.")
    known = recipe["format"]
    columns = [*extra, *([weight] if weight not in (None, "none") else [])]
    text = Text(paths)
    for file in text.files:
        _refuse_other_kind(file, known)
    if known != "svmlight":
        guess = guess_format(text)
        known = known if guess == "svmlight" else guess
        _refuse_mixture(text.files, known)
    reader, options = _reader(known), {"keep_text": keep_text, "dtype": recipe["dtype"]}
    _refuse_changes(known, changes)
    recipe = _with_missing(recipe, changes.pop("missing", None))
    options |= changes
    if known != "parquet":
        options["prompt"] = prompt
    if known == "svmlight":
        if columns:
            raise _no_column(columns[0])
        kept = ("zero_based", "missing", "max_features")  # not all in old files
        options |= {name: recipe[name] for name in kept if name in recipe}
        options |= {"n_features": n_features, "labelled": labelled}
    else:
        if weight == "none":
            recipe, weight = recipe | {"weight": None}, None
        options |= {"recipe": recipe, "extra": extra, "labelled": labelled}
        options |= {"weight": weight}
    source: Source = reader(paths if known == "parquet" else text, **options)
    return source


def _no_column(name: str) -> ValueError:
    return ValueError(
        f"svmlight data have no column {name!r}: features have no names. Use a table, "
        "such as CSV or Parquet."
    )


def _refuse_changes(known: str, changes: Mapping[str, Any]) -> None:
    """Raise an error if an option would change how features are built."""
    if unknown := changes.keys() - _CHANGES[known]:
        raise ValueError(
            f"{', '.join(sorted(unknown))}: the model fixes how features are built. "
            f"For {known} data, only {', '.join(_CHANGES[known])} can be set."
        )


def _with_missing(recipe: dict[str, Any], missing: str | None) -> dict[str, Any]:
    """Return the recipe with another rule for missing values."""
    if missing in (None, recipe["missing"]):
        return recipe
    if missing not in ("error", "impute", "zero"):
        raise ValueError(
            f"missing must be 'error', 'impute' or 'zero', not {missing!r}."
        )
    if missing == "impute" and recipe.get("numbers"):
        raise ValueError(
            "missing=impute: the model was trained without it and "
            "has no column means. "
            "missing=zero replaces missing values by zero."
        )
    return recipe | {"missing": missing} | ({"means": []} if "means" in recipe else {})


def _refuse_mixture(files: Sequence[str], known: str) -> None:
    """Raise an error if file names indicate several formats."""
    if known == "parquet":  # its reader selects files by their endings
        return
    first: dict[str, str] = {}
    for file in files:
        if found := _by_name(file):
            first.setdefault(found, file)
    if len(first) > 1:
        said = ", ".join(f"{file} is {found}" for found, file in first.items())
        raise ValueError(
            f"The files have several formats: {said}. Give files of one format, for "
            "example FOLDER/*.csv."
        )


def _refuse_other_kind(path: str, known: str) -> None:
    """Raise an error if a model of columns gets svmlight data, or vice versa.

    Both name and content must say so: svmlight files may be called .csv.
    """
    named = _by_name(path)
    if named is None or (named == "svmlight") == (known == "svmlight"):
        return
    if not Path(path).is_file():
        return
    if (_by_look(Text(path)) == "svmlight") == (named == "svmlight"):
        raise ValueError(
            f"{path} has {named} data, but the model was trained on {known} data: "
            "feature numbers and column names cannot be matched."
        )


def _by_name(path: str) -> str | None:
    """Return the format indicated by a file name."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    if endings and endings[-1] in _PACKED:
        endings.pop()
    return _ENDINGS.get(endings[-1]) if endings else None


def guess_format(text: Text) -> str:
    """Return the format by the first file's name, else by its first lines."""
    for file in text.files:
        if Path(file).suffix.lower() in _SPREADSHEETS:
            raise _unreadable(file)
    return _by_name(text.files[0]) or _by_look(text)


def _unreadable(file: str) -> ValueError:
    return ValueError(
        f"{file} is a spreadsheet or an archive, which is not supported. Export it as "
        "CSV or Parquet; svmlight, JSON lines, Arrow and Feather files are supported "
        "too."
    )


def _by_look(text: Text) -> str:
    start = text.beginning()
    if start.startswith(_OTHERS):
        raise _unreadable(text.files[0])
    if start.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
        return "parquet"
    if len(start) >= _FEW:  # the last word may be incomplete
        start = start.rsplit(maxsplit=1)[0]
    lines = [line.strip() for line in start.split(b"\n")[:_LOOK_AT]]
    lines = [line for line in lines if line and line[:1] != b"#"]
    if lines and all(line[:1] == b"{" for line in lines):
        return "jsonl"
    pairs = any(b":" in line for line in lines)  # rows of zeros have none
    return "svmlight" if pairs and all(map(_SVMLIGHT.match, lines)) else "csv"


def _reader(format: str) -> Any:
    """Import a reader: pyarrow is not needed for svmlight files."""
    module, name = _READERS[format]
    return getattr(import_module(f"aucmax.io.{module}"), name)
