"""Downloads: whole and checked, or not at all.

What has come goes to ``<file>.part`` and takes the name of the file when it is
complete. A download that was interrupted goes on from there, if the server can prove
that the file is still the same (a strong ETag or a date, sent back as If-Range). Only
http and https are spoken, and never http after https. What comes is stored, and never
executed.
"""

import hashlib
import json
import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from socket import gaierror
from time import sleep
from typing import Any, BinaryIO, NoReturn
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from aucmax import __version__
from aucmax.files import write_atomically

try:
    import fcntl
except ImportError:  # Windows: nobody stops a second process there
    fcntl = None  # type: ignore[assignment]

MAX_BYTES = 4 << 30
_BLOCK = 1 << 16

Progress = Callable[[int, int | None], None]


class DownloadError(OSError):
    """A download that cannot be had, and why."""


class ChecksumError(DownloadError):
    """A download that is not the file that was expected."""


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
) -> str:
    """Fetch ``url`` to ``path``, atomically, and return its SHA-256.

    Parameters
    ----------
    url : str
        Where it is: http or https.
    path : str or Path
        Where it goes; the folder is made.
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

    Returns
    -------
    str
        The checksum of what has come.
    """
    _check_scheme(url)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        _persist(url, part, max_bytes, timeout, tries, pause, progress)
    finally:
        if part.exists() and not part.stat().st_size:
            _forget(part)
    found = checksum(part)
    if sha256 is not None and found != sha256:
        _forget(part)
        raise ChecksumError(
            f"{url} is not the file that was expected: its SHA-256 is {found}, not "
            f"{sha256}. Nothing was kept."
        )
    os.replace(part, path)
    _forget(part)
    return found


def checksum(path: str | Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _HitchError(Exception):
    """What may go better next time."""


def _persist(
    url: str,
    part: Path,
    max_bytes: int,
    timeout: float,
    tries: int,
    pause: float,
    progress: Progress,
) -> None:
    """Try until ``part`` is complete."""
    for done in range(1, tries + 1):
        try:
            return _attempt(url, part, max_bytes, timeout, progress)
        except _HitchError as hitch:
            if done == tries:
                kept = part.stat().st_size
                stays = f" {kept:,} bytes are kept: the next download goes on there."
                raise DownloadError(
                    f"Cannot download {url}: {hitch} ({tries} tries)."
                    f"{stays if kept else ''}"
                ) from None
            sleep(pause * 2.0 ** (done - 1))


def _attempt(
    url: str, part: Path, max_bytes: int, timeout: float, progress: Progress
) -> None:
    """Fetch what is missing in ``part``."""
    with open(part, "ab") as file:
        _claim(file, part)
        have = file.seek(0, os.SEEK_END)
        headers = {
            "User-Agent": f"aucmax/{__version__}",
            "Accept-Encoding": "identity",
        }
        proof = _proof(part, url)
        if have and proof is not None:
            headers |= {"Range": f"bytes={have}-", "If-Range": proof}
        try:
            with _OPENER.open(
                request.Request(url, headers=headers), timeout=timeout
            ) as response:
                have, total = _where(response, have, url)
                file.truncate(have)
                _limit(url, file, max(have, total or 0), max_bytes)
                _keep_proof(part, url, response)
                while block := response.read(_BLOCK):
                    have += len(block)
                    _limit(url, file, have, max_bytes)
                    file.write(block)
                    progress(have, total)
        except HTTPError as error:
            with error:
                _judge(error, url, file)
        except URLError as error:
            if isinstance(error.reason, gaierror):
                raise DownloadError(
                    f"Cannot download {url}: {error.reason.strerror}. Is there a "
                    "network?"
                ) from None
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise DownloadError(f"Cannot download {url}: {error.reason}") from None
            raise _HitchError(error.reason) from None
        except (HTTPException, ConnectionError, TimeoutError) as error:
            raise _HitchError(str(error) or type(error).__name__) from None
        if total is not None and have != total:
            raise _HitchError(f"the connection ended after {have:,} of {total:,} bytes")
        file.flush()
        os.fsync(file.fileno())


def _where(response: Any, have: int, url: str) -> tuple[int, int | None]:
    """Return the byte at which the answer begins, and the size of the whole."""
    if response.status == 206:
        # "bytes 100-199/200"
        span, _, size = response.headers.get("Content-Range", "").partition("/")
        if span.startswith(f"bytes {have}-") and size.isdigit():
            return have, int(size)
        raise DownloadError(f"{url}: the server answers with other bytes than asked.")
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def _judge(error: HTTPError, url: str, file: BinaryIO) -> NoReturn:
    if error.code == 416:  # nothing after what is here: it is not the same file
        file.truncate(0)
        raise _HitchError("the server has no more bytes than are here")
    if error.code in (408, 429) or error.code >= 500:
        raise _HitchError(f"HTTP {error.code} {error.reason}")
    raise DownloadError(f"Cannot download {url}: HTTP {error.code} {error.reason}.")


def _limit(url: str, file: BinaryIO, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        file.truncate(0)
        raise DownloadError(f"{url} has more than {max_bytes:,} bytes: refused.")


def _claim(file: BinaryIO, part: Path) -> None:
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DownloadError(f"Another process is downloading {part}.") from None


def _side(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _keep_proof(part: Path, url: str, response: Any) -> None:
    tag = response.headers.get("ETag", "")
    # A weak tag stands for files that are only alike.
    proof = tag if tag.startswith('"') else response.headers.get("Last-Modified")
    write_atomically(_side(part), json.dumps({"url": url, "proof": proof}).encode())


def _proof(part: Path, url: str) -> str | None:
    with suppress(OSError, ValueError):
        kept = json.loads(_side(part).read_text())
        if kept["url"] == url:
            return kept["proof"]
    return None


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _side(part).unlink(missing_ok=True)


def _check_scheme(url: str, since: str = "http") -> None:
    scheme = urlsplit(url).scheme
    if scheme not in ("http", "https") or (since, scheme) == ("https", "http"):
        raise DownloadError(f"{url!r} is refused: downloads are by https, or http.")


class _Redirect(request.HTTPRedirectHandler):
    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        _check_scheme(newurl, since=urlsplit(req.full_url).scheme)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> request.OpenerDirector:
    opener = request.OpenerDirector()  # without ftp, file and data
    for handler in (
        request.ProxyHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(),
        _Redirect(),
        request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


_OPENER = _opener()
