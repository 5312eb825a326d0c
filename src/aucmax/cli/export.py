"""``aucmax export``: a model for other programs."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.cli.screen import Screen, some
from aucmax.core.formula import GAUSSIAN, Formula
from aucmax.files import refuse_overwriting, write_atomically
from aucmax.scoring import Model

FORMATS = ("json", "onnx")

_MOST_NAMES = 10_000  # in ONNX: those of hashed features say nothing


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
        content = to_onnx(found)
    if output is None or to_stdout:
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
    """Return the score as a formula, see ``aucmax.core.formula``.

    Weights of zero are left out; "units" is there if the model is not linear.
    """
    estimator, names = model.estimator, model.names()
    formula = estimator._formula()
    found = {
        "format": "aucmax weights",
        "version": 1,
        "class": type(estimator).__name__,
        "classes": estimator.classes_.tolist(),
        "positive": str(model.task()),
        "features": model.width,
        "intercept": formula.intercept,
        "weights": [
            {"feature": names[index], "index": index, "weight": weight}
            for index, weight in zip(
                formula.indices().tolist(), formula.weights.tolist(), strict=True
            )
            if weight
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


def to_onnx(model: Model) -> bytes:
    """Return a graph: X, double (n, features), to score, double (n,)."""
    try:
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise ImportError("ONNX needs a package: pip install 'aucmax[onnx]'") from None
    formula = model.estimator._formula()
    nodes, constants = _graph(formula)
    graph = helper.make_graph(
        [helper.make_node(*node[:3], **node[3]) for node in nodes],
        "aucmax",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", model.width])],
        [helper.make_tensor_value_info("score", TensorProto.DOUBLE, ["n"])],
        [
            helper.make_tensor(
                name,
                helper.np_dtype_to_tensor_dtype(values.dtype),
                values.shape,
                values.tobytes(),
                raw=True,
            )
            for name, values in constants.items()
        ],
    )
    # Old versions, which every runtime reads.
    proto = helper.make_model(
        graph,
        producer_name="aucmax",
        ir_version=8,
        opset_imports=[helper.make_opsetid("", 13)],
    )
    about = {
        "class": type(model.estimator).__name__,
        "positive": str(model.task()),
        "recipe": json.dumps(model.recipe),
    }
    if model.width <= _MOST_NAMES:
        about["features"] = json.dumps(model.names())
    helper.set_model_props(proto, about)
    checker.check_model(proto)
    return bytes(proto.SerializeToString())


def _graph(formula: Formula) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """Return the nodes (operation, inputs, outputs, attributes) and the constants."""
    constants = {
        "weights": formula.weights,
        "intercept": np.array([formula.intercept]),
    }
    units = formula.units
    nodes: list[Any] = [
        ("MatMul", ["X", "weights"], ["linear"], {}),
        ("Add", ["linear", "intercept"], ["score"], {}),
    ]
    if units is None:
        return nodes, constants
    _, *arrays = units
    constants |= dict(zip(units._fields[1:], arrays, strict=True))
    constants |= formula.scaling._asdict()
    constants["half"] = np.array([-0.5])
    wave: list[Any] = [
        ("ReduceSumSquare", ["z"], ["squares"], {"axes": [1]}),
        ("Mul", ["squares", "half"], ["halves"], {}),
        ("Add", ["angles", "halves"], ["exponents"], {}),
        ("Exp", ["exponents"], ["waves"], {}),
    ]
    if units.kind != GAUSSIAN:
        wave = [("Cos", ["angles"], ["waves"], {})]
    nodes = [
        ("Gather", ["X", "columns"], ["chosen"], {"axis": 1}),
        ("Sub", ["chosen", "centre"], ["centred"], {}),
        ("Mul", ["centred", "unit"], ["scaled"], {}),
        ("Max", ["scaled", "low"], ["not_low"], {}),
        ("Min", ["not_low", "high"], ["z"], {}),
        ("MatMul", ["z", "weights"], ["linear"], {}),
        ("MatMul", ["z", "directions"], ["products"], {}),
        ("Add", ["products", "phases"], ["angles"], {}),
        *wave,
        ("MatMul", ["waves", "amplitudes"], ["sum"], {}),
        ("Add", ["linear", "sum"], ["both"], {}),
        ("Add", ["both", "intercept"], ["score"], {}),
    ]
    return nodes, {name: np.ascontiguousarray(a) for name, a in constants.items()}
