"""Slow reference reader of CSV in plain Python."""

import re
from typing import NamedTuple

MISSING = {b"", b"?", b"NA", b"N/A", b"n/a", b"NaN", b"nan", b"-nan", b"null"}
MISSING |= {b"NULL", b"None"}
NUMBER = re.compile(
    rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.I
)


class Row(NamedTuple):
    line: int
    text: bytes
    fields: list | None  # None: malformed quoting
    column: object = None  # of an invalid value


def records(text, delimiter=b","):
    """Yield the rows of a text with their line numbers."""
    if text and not text.endswith(b"\n"):
        text += b"\n"
    sign = re.escape(delimiter)
    quoted = re.compile(rb'"((?:[^"]|"")*)"(%s|\r?\n)' % sign)
    plain = re.compile(rb"([^%s\n]*)(%s|\n)" % (sign, sign))
    at, line = 0, 1
    while at < len(text):
        first = text.index(b"\n", at) + 1
        if text[at:first] in (b"\n", b"\r\n"):
            at, line = first, line + 1
            continue
        fields, end = [], at
        while True:
            if text[end : end + 1] == b'"':
                match = quoted.match(text, end)
                if match is None:
                    fields, end = None, first
                    break
                field = re.sub(rb"\r(?!\n)", b" ", match[1])
                field = field.strip(b" \t\r").replace(b'""', b'"')
            else:
                match = plain.match(text, end)
                field = match[1]
                if match[2] == b"\n":
                    field = field.removesuffix(b"\r")
                field = field.replace(b"\r", b" ").strip(b" \t")
            fields.append(field)
            end = match.end()
            if match[2].endswith(b"\n"):
                break
        yield Row(line, text[at:end].removesuffix(b"\n").removesuffix(b"\r"), fields)
        line += text.count(b"\n", at, end)
        at = end


def judged(rows, kinds, missing="error", largest=float("inf")):
    """Yield rows with parsed numbers; malformed rows have no fields but a column.

    Rows without a label are left out.
    """
    for row in rows:
        fields, column = [], None
        if row.fields is None or len(row.fields) != len(kinds):
            yield row._replace(fields=None)
            continue
        if any(
            kind in ("label", "class") and field in (MISSING - {b"None"})
            for kind, field in zip(kinds.values(), row.fields, strict=True)
        ):
            continue
        for (name, kind), field in zip(kinds.items(), row.fields, strict=True):
            value = field
            if kind == "category" and field in MISSING:
                good = missing != "error"
            elif kind == "number" and (field in MISSING or b"nan" in field.lower()):
                value, good = 0.0, missing != "error"
                good &= field in MISSING or NUMBER.fullmatch(field) is not None
            elif kind in ("number", "label", "weight"):
                good = NUMBER.fullmatch(field) is not None
                value = float(field) if good else 0.0
                good = good and abs(value) < float("inf")
                good = good and (kind != "number" or abs(value) <= largest)
                good = good and (kind != "weight" or value >= 0)
            else:
                good = kind != "class" or field != b""
            fields.append(value)
            if not good and column is None:
                column = name
        yield row._replace(fields=None if column else fields, column=column)
