"""Policies for malformed lines: fail, skip, quarantine."""

import os
from collections.abc import Sequence
from pathlib import Path

from aucmax.io.batch import BadLine

POLICIES = ("fail", "skip", "quarantine")


class BadLines:
    """Handler that counts malformed lines and applies a policy.

    Parameters
    ----------
    policy : {"fail", "skip", "quarantine"}
        Raise an error, leave the lines out, or also write them to a file.
    quarantine : Path, default=None
        The file.
    kept : int, default=0
        Bytes of the file up to the checkpoint of a resumed run; the rest is dropped.
    """

    def __init__(
        self, policy: str, quarantine: Path | None = None, kept: int = 0
    ) -> None:
        if policy not in POLICIES:
            raise ValueError(
                f"on_bad_line must be one of {', '.join(POLICIES)}, not {policy}."
            )
        self._policy = policy
        self.count = 0
        self.unlabelled = 0  # rows without a label, which are not malformed
        self.first: BadLine | None = None
        self._file = None
        if policy == "quarantine":
            if quarantine is None:
                raise ValueError(
                    "on_bad_line='quarantine' needs a file: set quarantine."
                )
            mode = "r+b" if kept else "wb"
            self._file = open(quarantine, mode)  # noqa: SIM115
            size = self._file.seek(0, os.SEEK_END)
            if size < kept:
                self._file.close()
                raise ValueError(
                    f"{quarantine} has {size:,} bytes, but the resumed run wrote "
                    f"{kept:,} to it. Restore the file, or delete the checkpoint to "
                    "start again."
                )
            self._file.truncate(kept)
            self._file.seek(kept)

    def take(self, bad: Sequence[BadLine]) -> int:
        """Fail, skip or quarantine; return the bytes written."""
        if not bad:
            return 0
        if self._policy == "fail":
            more = f" {len(bad) - 1:,} more such lines nearby." if len(bad) > 1 else ""
            raise ValueError(
                f"{str(bad[0]).rstrip('.')}.{more} Use --on-bad-line skip "
                "to skip such lines, or --quarantine FILE to write them to a file."
            )
        self.count += len(bad)
        self.first = self.first or bad[0]
        if self._file is None:
            return 0
        return sum(self._file.write(line.text + b"\n") for line in bad)

    @property
    def in_place(self) -> bool:
        """Whether outputs keep malformed lines, without a score."""
        return self._policy == "skip"

    def remark(self, fate: str = "skipped") -> str | None:
        """Return a summary for the user, or None."""
        unlabelled = ""
        if self.unlabelled:
            rows = "row was" if self.unlabelled == 1 else "rows were"
            unlabelled = f"{self.unlabelled:,} {rows} left out for want of a label"
        if self.first is None:
            return unlabelled or None
        unlabelled = unlabelled and f"{unlabelled}; "
        lines = (
            "1 malformed line was"
            if self.count == 1
            else f"{self.count:,} malformed lines were"
        )
        return f"{unlabelled}{lines} {fate}; the first: {self.first}"

    def flush(self) -> None:
        """Flush the quarantine file to disk."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Flush and close the quarantine file."""
        if self._file is not None:
            self.flush()
            self._file.close()
