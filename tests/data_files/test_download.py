"""Downloads from a server that has bad days."""

import hashlib
import socket
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from aucmax.data.download import (
    ChecksumError,
    DownloadError,
    _check_scheme,
    download,
)

CONTENT = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


SEEN = Counter()
ASKED = []  # the Range header of each request


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT; the path says what goes wrong."""

    def do_GET(self):
        what = self.path.strip("/")
        SEEN[what] += 1
        time = SEEN[what]
        ASKED.append(self.headers["Range"])
        if what == "missing":
            return self.send_error(404)
        if what == "moody" and time < 3:
            return self.send_error(503)
        if what.startswith("to:"):
            self.send_response(302)
            self.send_header("Location", what[3:])
            self.end_headers()
            return None
        if what == "silent":
            self.rfile.read(1)  # nothing comes: the client gives up
            return None
        start = 0
        if self.headers["Range"] and self.headers["If-Range"] == self.tag(what, time):
            start = int(self.headers["Range"][len("bytes=") : -1])
        if start > len(CONTENT) or (what == "shrunk" and start):
            return self.send_error(416)
        if what == "elsewhere" and start:
            start -= 1
        self.send_response(206 if start else 200)
        if start:
            span = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
            self.send_header("Content-Range", span)
        if what != "endless":
            self.send_header("Content-Length", str(len(CONTENT) - start))
        if self.tag(what, time):
            self.send_header("ETag", self.tag(what, time))
        self.end_headers()
        breaks = what in ("broken", "other", "bare", "weak", "shrunk", "elsewhere")
        stop = start + 100_000 if breaks and time < 3 else len(CONTENT)
        self.wfile.write(CONTENT[start:stop])
        return None

    def tag(self, what, time):
        tags = {"other": f'"{time}"', "bare": None, "weak": 'W/"1"', "endless": None}
        return tags.get(what, '"1"')

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    SEEN.clear()
    ASKED.clear()


def get(server, what, tmp_path, **options):
    options = {"pause": 0.0, "timeout": 5.0} | options
    return download(f"{server}/{what}", tmp_path / "new" / "file", **options)


def kept(tmp_path):
    return {path.name for path in (tmp_path / "new").iterdir()}


def test_a_file_comes_whole_with_its_checksum_and_nothing_else(server, tmp_path):
    told = []
    found = get(server, "file", tmp_path, progress=lambda *step: told.append(step))
    assert found == SHA256
    assert (tmp_path / "new" / "file").read_bytes() == CONTENT
    assert kept(tmp_path) == {"file"}
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize(
    ("what", "ranges"),
    [
        ("broken", [None, "bytes=100000-", "bytes=200000-"]),
        ("moody", [None, None, None]),
        # Nobody can tell whether the rest belongs to the beginning.
        ("bare", [None, None, None]),
        ("weak", [None, None, None]),
        ("other", [None, "bytes=100000-", "bytes=100000-"]),
        ("shrunk", [None, "bytes=100000-", None]),
        ("endless", [None]),
    ],
)
def test_what_breaks_off_is_tried_again(server, tmp_path, what, ranges):
    assert get(server, what, tmp_path) == SHA256
    assert ranges == ASKED
    assert (tmp_path / "new" / "file").read_bytes() == CONTENT
    assert kept(tmp_path) == {"file"}


def test_the_next_download_goes_on_where_the_last_one_stopped(server, tmp_path):
    with pytest.raises(
        DownloadError, match=r"100,000 of 256,000 .*100,000 bytes are k"
    ):
        get(server, "broken", tmp_path, tries=1)
    assert kept(tmp_path) == {"file.part", "file.part.json"}
    assert get(server, "broken", tmp_path, tries=2) == SHA256
    assert ASKED == [None, "bytes=100000-", "bytes=200000-"]
    assert kept(tmp_path) == {"file"}


def test_a_part_of_another_address_is_not_gone_on_with(server, tmp_path):
    with pytest.raises(DownloadError):
        get(server, "broken", tmp_path, tries=1)
    assert get(server, "file", tmp_path) == SHA256
    assert ASKED == [None, None]


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        ("missing", {}, "HTTP 404 Not Found"),
        ("moody", {"tries": 2}, r"HTTP 503 .* \(2 tries\)\.$"),
        ("file", {"max_bytes": 1000}, "more than 1,000 bytes"),
        ("endless", {"max_bytes": 1000}, "more than 1,000 bytes"),
        ("file", {"sha256": "0" * 64}, f"SHA-256 is {SHA256}, not 0000"),
        ("silent", {"tries": 1, "timeout": 0.2}, "timed out"),
        ("to:ftp://localhost/file", {}, "'ftp://localhost/file' is refused"),
        ("to:file:///etc/passwd", {}, "is not allowed"),
    ],
)
def test_what_cannot_be_had_is_said_and_leaves_nothing(
    server, tmp_path, what, options, message
):
    with pytest.raises(DownloadError, match=message):
        get(server, what, tmp_path, **options)
    assert kept(tmp_path) == set()


def test_other_bytes_than_asked_for_are_refused(server, tmp_path):
    with pytest.raises(DownloadError, match="other bytes than asked"):
        get(server, "elsewhere", tmp_path)
    assert not (tmp_path / "new" / "file").exists()


def test_a_wrong_checksum_does_not_touch_the_file_that_is_there(server, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "file").write_bytes(b"old")
    with pytest.raises(ChecksumError):
        get(server, "file", tmp_path, sha256="0" * 64)
    assert (tmp_path / "new" / "file").read_bytes() == b"old"


def test_redirects_are_followed(server, tmp_path):
    assert get(server, f"to:{server}/file", tmp_path) == SHA256


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://localhost/x", "/etc/passwd", "data:,x"]
)
def test_only_http_is_spoken(url, tmp_path):
    with pytest.raises(DownloadError, match="refused"):
        download(url, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_no_way_back_from_https():
    _check_scheme("https://localhost", since="http")
    with pytest.raises(DownloadError, match="refused"):
        _check_scheme("http://localhost", since="https")


def test_nobody_there_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match=r"refused \(2 tries\)"):
            download(url, tmp_path / "file", tries=2, pause=0.0)
    assert not list(tmp_path.iterdir())


def test_two_downloads_of_one_file_do_not_mix(server, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / "new").mkdir()
    with open(tmp_path / "new" / "file.part", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b"from somebody else")
        file.flush()
        with pytest.raises(DownloadError, match="Another process"):
            get(server, "file", tmp_path)
        assert kept(tmp_path) == {"file.part"}
