"""``aucmax export``: a model for other programs."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from aucmax.cli.screen import Screen, some
from aucmax.storage.atomic import refuse_overwriting, write_atomically
from aucmax.workflows.score import Model

FORMATS = ("json", "onnx")


def run(model: Path, output: Path | None, form: str | None, as_json: bool) -> None:
    """Write the model as JSON or ONNX; ``as_json`` says what was written where."""
    if form is None:
        suffix = "" if output is None else output.suffix[1:]
        form = suffix if suffix in FORMATS else "json"
    if form not in FORMATS:
        raise ValueError(f"--format is json or onnx, not {form}.")
    to_stdout = output is None or output == Path("-")
    if as_json and to_stdout and form == "onnx":
        raise ValueError("--json and ONNX cannot share standard output: -o FILE.")
    found = Model.load(model)
    if form == "json":
        content = (json.dumps(to_json(found), indent=2) + "\n").encode()
    else:
        from aucmax.workflows.onnx_graph import to_onnx

        content = to_onnx(found)
    if output is None or to_stdout:
        if sys.stdout is None:
            raise OSError("Standard output is closed: name a file with -o.")
        if form == "onnx" and sys.stdout.isatty():
            raise ValueError("ONNX is not for terminals: name a file with -o.")
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        refuse_overwriting(output, [model])
        write_atomically(output, content)
        if as_json:
            about = {"model": str(model), "output": str(output), "format": form}
            print(json.dumps({**about, "bytes": len(content)}, indent=2))
        else:
            names = {"json": "JSON", "onnx": "ONNX"}
            said = f"{model} as {names[form]}, {some(len(content), 'byte')}: {output}"
            Screen().print(said, wrap=False)


def to_json(model: Model) -> dict[str, Any]:
    """Return the score as a formula, see ``aucmax.base.expression``.

    Weights of zero are left out; "units" is there if the model is not linear.
    """
    estimator = model.estimator
    formula = estimator.expression()
    if formula is None:
        raise ValueError(
            f"{type(estimator).__name__} cannot be written as JSON: its score is not "
            "a single linear or kernel expression. Export it to ONNX, or train a "
            "single model with --fast."
        )
    used = np.flatnonzero(formula.weights)
    indices, weights = formula.indices()[used].tolist(), formula.weights[used].tolist()
    found = {
        "format": "aucmax weights",
        "version": 1,
        "class": type(estimator).__name__,
        "classes": estimator.classes_.tolist(),
        "positive": str(model.task()),
        "features": model.width,
        "intercept": formula.intercept,
        "weights": [
            {"feature": name, "index": index, "weight": weight}
            for name, index, weight in zip(
                model.names(indices), indices, weights, strict=True
            )
        ],
    }
    if formula.units is not None:
        scaling, (kind, *arrays) = formula.scaling, formula.units
        names_of = formula.units._fields[1:]
        found["scaling"] = {
            name: array.tolist() for name, array in scaling._asdict().items()
        }
        found["units"] = {"kind": kind} | {
            name: array.tolist() for name, array in zip(names_of, arrays, strict=True)
        }
    return {**found, "recipe": model.recipe}
