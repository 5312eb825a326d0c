"""Writing files whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write ``content`` to ``path``; a crash leaves the old file or the new one."""
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"Cannot write {path}: the folder {path.parent} does not exist."
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp makes private files
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
