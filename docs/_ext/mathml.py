"""Render formulas as MathML while the site is built: no JavaScript, no network."""

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def inline(self: Any, node: Any) -> None:
    """Write a formula within a line."""
    self.body.append(convert(node.astext()))
    raise SkipNode


def block(self: Any, node: Any) -> None:
    """Write a formula of its own; numbers of formulas are not used here."""
    formula = convert(node.astext(), display="block")
    self.body.append(f'<div class="formula">{formula}</div>\n')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
