"""What becomes of lines that are no rows: an error, nothing, or a file of their own."""

import os
from collections.abc import Sequence
from pathlib import Path

from aucmax.io.chunk import BadLine

POLICIES = ("fail", "skip", "quarantine")


class BadLines:
    """Takes lines that are no rows, and counts them.

    Parameters
    ----------
    policy : {"fail", "skip", "quarantine"}
        Whether the first one is an error, or they are left out, or kept in a file.
    quarantine : Path, default=None
        That file.
    kept : int, default=0
        How many bytes of it are from the part of a run that is being resumed; what
        follows them was written after the last checkpoint, and is dropped.
    """

    def __init__(
        self, policy: str, quarantine: Path | None = None, kept: int = 0
    ) -> None:
        if policy not in POLICIES:
            raise ValueError(f"on_bad_line is {', '.join(POLICIES)}, not {policy}.")
        self._policy = policy
        self.count = 0
        self.first: BadLine | None = None
        self._file = None
        if policy == "quarantine":
            if quarantine is None:
                raise ValueError("Quarantine where? Name a file.")
            mode = "r+b" if kept else "wb"
            self._file = open(quarantine, mode)  # noqa: SIM115
            size = self._file.seek(0, os.SEEK_END)
            if size < kept:
                self._file.close()
                raise ValueError(
                    f"{quarantine} has {size:,} bytes, but the run that is resumed "
                    f"has written {kept:,} to it: restore the file, or delete the "
                    "checkpoint to begin anew."
                )
            self._file.truncate(kept)
            self._file.seek(kept)

    def take(self, bad: Sequence[BadLine]) -> int:
        """Complain, skip or keep; return the bytes written."""
        if not bad:
            return 0
        if self._policy == "fail":
            more = f" {len(bad) - 1:,} more such lines nearby." if len(bad) > 1 else ""
            raise ValueError(
                f"{str(bad[0]).rstrip('.')}.{more} To leave such lines out: "
                "--on-bad-line skip; to keep them in a file: --quarantine FILE."
            )
        self.count += len(bad)
        self.first = self.first or bad[0]
        if self._file is None:
            return 0
        return sum(self._file.write(line.text + b"\n") for line in bad)

    @property
    def in_place(self) -> bool:
        """Whether whoever writes the rows again leaves the place of a bad line empty.

        A line in a file of its own has gone.
        """
        return self._policy == "skip"

    def remark(self, fate: str = "left out") -> str | None:
        """Return what to tell the user, if there is anything."""
        if self.first is None:
            return None
        lines = (
            "1 bad line was" if self.count == 1 else f"{self.count:,} bad lines were"
        )
        return f"{lines} {fate}; the first: {self.first}"

    def flush(self) -> None:
        """See to it that what was written is on disk."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write what is left and close the file."""
        if self._file is not None:
            self.flush()
            self._file.close()
