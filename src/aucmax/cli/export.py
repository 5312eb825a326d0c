"""``aucmax export``: export a model as JSON or ONNX."""

import json
import sys
from pathlib import Path

from aucmax.cli.terminal import Screen, plural
from aucmax.storage.atomic import refuse_overwriting, write_atomically
from aucmax.workflows.export_onnx import to_json, to_onnx
from aucmax.workflows.score import Model

_FORMATS = {"json": "JSON", "onnx": "ONNX"}


def run(model: Path, output: Path | None, form: str | None, as_json: bool) -> None:
    """Write the model to a file or to standard output."""
    if output == Path("-"):
        output = None
    if form is None:
        suffix = "" if output is None else output.suffix[1:]
        form = suffix if suffix in _FORMATS else "json"
    if form not in _FORMATS:
        raise ValueError(f"--format must be json or onnx, not {form}.")
    if as_json and output is None and form == "onnx":
        raise ValueError("--json prints a summary: write the model with -o FILE.")
    ranker = Model.load(model)
    if form == "json":
        content = (json.dumps(to_json(ranker), indent=2) + "\n").encode()
    else:
        content = to_onnx(ranker)
    if output is None:
        if sys.stdout is None:
            raise OSError("Standard output is closed: name a file with -o.")
        if form == "onnx" and sys.stdout.isatty():
            raise ValueError("ONNX is a binary format: name a file with -o.")
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    refuse_overwriting(output, [model])
    write_atomically(output, content)
    if as_json:
        about = {"model": str(model), "output": str(output), "format": form}
        print(json.dumps({**about, "bytes": len(content)}, indent=2))
    else:
        size = plural(len(content), "byte")
        Screen().print(f"{model} as {_FORMATS[form]}, {size}: {output}", wrap=False)
