"""An ONNX graph that is put together node by node."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

DOUBLE, INT64 = 11, 7  # ONNX's numbers of these types


class Graph:
    """Nodes and constants of a graph, with generated names."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, tuple[list[str], list[str]], dict[str, Any]]] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self.has_trees = False

    def add(self, op: str, *inputs: Any, output: str = "", **options: Any) -> str:
        """Add a node and return the name of its output; arrays become constants."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        output = output or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append((op, (names, [output]), options))
        return output

    def constant(self, values: Any) -> str:
        """Add an array and return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(values)
        return name


def tensor(name: str, values: NDArray[Any]) -> Any:
    """Return an array as ONNX stores it."""
    from onnx import helper

    values = np.ascontiguousarray(values)
    kind = helper.np_dtype_to_tensor_dtype(values.dtype)
    return helper.make_tensor(name, kind, values.shape, values.tobytes(), raw=True)
