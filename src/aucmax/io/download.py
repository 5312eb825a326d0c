"""Atomic, verified downloads with pooch.

A file takes its name when it is complete and its checksum is right. What breaks off is
tried again from its beginning. Only http and https are spoken, and never http after
https. What comes is stored, and never executed.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from socket import gaierror
from time import sleep
from typing import Any
from urllib.parse import urljoin, urlsplit

from aucmax import __version__

MAX_BYTES = 4 << 30
_BLOCK = 1 << 16

Progress = Callable[[int, int | None], None]


class DownloadError(OSError):
    """Raised when a download fails."""


class ChecksumError(DownloadError):
    """Raised when a downloaded file has another checksum."""


def download(
    url: str,
    path: str | Path,
    *,
    sha256: str | None = None,
    max_bytes: int = MAX_BYTES,
    timeout: float = 30.0,
    tries: int = 4,
    pause: float = 1.0,
    progress: Progress = lambda done, total: None,
) -> None:
    """Fetch ``url`` to ``path``, atomically.

    Parameters
    ----------
    url : str
        Where it is: http or https.
    path : str or Path
        Where it goes; the folder is made. A file that is there is replaced if its
        checksum is another than ``sha256``, and else stays.
    sha256 : str, default=None
        What the checksum has to be, if that is known.
    max_bytes : int, default=4 GiB
        More than this is refused.
    timeout : float, default=30.0
        Seconds without a byte after which a try is given up.
    tries : int, default=4
        How often to try, with pauses of ``pause`` seconds, twice that, and so on.
    pause : float, default=1.0
        See ``tries``.
    progress : callable, default=does nothing
        Is told the bytes that are here, and of how many if the server says.
    """
    import pooch
    from requests import RequestException

    _check_scheme(url)
    path = Path(path)
    pooch.get_logger().setLevel("ERROR")  # what it does is ours to tell
    for done in range(1, tries + 1):
        fetch = pooch.HTTPDownloader(
            progressbar=_Meter(url, max_bytes, progress),
            chunk_size=_BLOCK,
            timeout=timeout,
            headers={
                "User-Agent": f"aucmax/{__version__}",
                "Accept-Encoding": "identity",
            },
            hooks={"response": _check_response},
        )
        try:
            pooch.retrieve(url, sha256, path.name, path.parent, downloader=fetch)
            return
        except RequestException as error:
            cause = _cause(error)
            if isinstance(cause, gaierror):
                raise DownloadError(
                    f"Cannot download {url}: {cause.strerror}. Is there a network?"
                ) from None
            if done == tries:
                reason = getattr(cause, "strerror", None) or cause
                raise DownloadError(
                    f"Cannot download {url}: {reason} ({tries} tries)."
                ) from None
            sleep(pause * 2.0 ** (done - 1))
        except ValueError as error:
            raise ChecksumError(f"{url} is not the expected file: {error}") from None


def checksum(path: str | Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Meter:
    """What pooch takes for a progress bar: tells bytes, and refuses too many."""

    def __init__(self, url: str, most: int, progress: Progress) -> None:
        self._url, self._most, self._progress = url, most, progress
        self._done = 0
        self.total = 0  # set by pooch; 0 if the server does not say

    def update(self, size: int) -> None:
        """Count bytes; of the last block, pooch counts too many."""
        self._done += size
        if max(self._done - _BLOCK, self.total) > self._most:
            raise DownloadError(f"{self._url} has more than {self._most:,} bytes.")
        known = self.total or None
        self._progress(self._done if known is None else min(self._done, known), known)

    def reset(self) -> None:
        """Begin anew: pooch then counts the whole, if it is known."""
        self._done = self._done if not self.total else 0

    def close(self) -> None:
        """Do nothing."""


def _check_response(response: Any, **_: Any) -> None:
    """Raise an error for an answer that another try would not change."""
    if response.is_redirect:
        target = urljoin(response.url, response.headers["location"])
        _check_scheme(target, since=urlsplit(response.url).scheme)
    code = response.status_code
    if 400 <= code < 500 and code not in (408, 429):
        raise DownloadError(
            f"Cannot download {response.url}: HTTP {code} {response.reason}."
        )


def _check_scheme(url: str, since: str = "http") -> None:
    scheme = urlsplit(url).scheme
    if scheme not in ("http", "https") or (since, scheme) == ("https", "http"):
        raise DownloadError(f"{url!r}: only https and http downloads are supported.")


def _cause(error: BaseException) -> BaseException:
    """Return what an error of requests began with: mostly one of the system's."""
    while error.__context__ is not None:
        error = error.__context__
    return error
