"""Safe printing of text from data and model files."""


def printable(text: str) -> str:
    r"""Escape control characters, as ``\x1b``.

    A column name could otherwise move the cursor, or write to the clipboard.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text
    )
