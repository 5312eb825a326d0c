"""Policies for malformed lines: fail or skip."""

from collections.abc import Sequence

from aucmax.io.batch import BadLine

POLICIES = ("fail", "skip")


class BadLines:
    """Handler that counts malformed lines and applies a policy.

    Parameters
    ----------
    policy : {"fail", "skip"}
        Raise an error, or leave the lines out.
    """

    def __init__(self, policy: str) -> None:
        if policy not in POLICIES:
            raise ValueError(
                f"on_bad_line must be one of {', '.join(POLICIES)}, not {policy}."
            )
        self._policy = policy
        self.count = 0
        self.unlabelled = 0  # rows without a label, which are not malformed
        self.first: BadLine | None = None

    def take(self, bad: Sequence[BadLine]) -> None:
        """Fail or skip."""
        if not bad:
            return
        if self._policy == "fail":
            more = f" {len(bad) - 1:,} more such lines nearby." if len(bad) > 1 else ""
            raise ValueError(
                f"{str(bad[0]).rstrip('.')}.{more} Use --on-bad-line skip to skip such "
                "lines."
            )
        self.count += len(bad)
        self.first = self.first or bad[0]

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
