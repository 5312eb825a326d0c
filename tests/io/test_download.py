"""Downloads from a server that has bad days."""

import hashlib
import socket
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from aucmax.io.download import (
    ChecksumError,
    DownloadError,
    _check_scheme,
    checksum,
    download,
)

CONTENT = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


SEEN = Counter()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT; the path says what goes wrong."""

    def do_GET(self):
        what = self.path.strip("/")
        SEEN[what] += 1
        time = SEEN[what]
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
        self.send_response(200)
        if what != "endless":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        stop = 100_000 if what == "broken" and time < 3 else len(CONTENT)
        self.wfile.write(CONTENT[:stop])
        return None

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


def get(server, what, tmp_path, **options):
    options = {"pause": 0.0, "timeout": 5.0} | options
    return download(f"{server}/{what}", tmp_path / "new" / "file", **options)


def kept(tmp_path):
    return {path.name for path in (tmp_path / "new").iterdir()}


def test_a_file_comes_whole_and_nothing_else(server, tmp_path):
    told = []
    get(server, "file", tmp_path, progress=lambda *step: told.append(step))
    assert (tmp_path / "new" / "file").read_bytes() == CONTENT
    assert checksum(tmp_path / "new" / "file") == SHA256
    assert kept(tmp_path) == {"file"}
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize("what", ["broken", "moody", "endless"])
@pytest.mark.parametrize("sha256", [None, SHA256])
def test_what_breaks_off_is_tried_again(server, tmp_path, what, sha256):
    get(server, what, tmp_path, sha256=sha256)
    assert SEEN[what] == (1 if what == "endless" else 3)
    assert (tmp_path / "new" / "file").read_bytes() == CONTENT
    assert kept(tmp_path) == {"file"}


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        ("missing", {}, "HTTP 404 Not Found"),
        ("moody", {"tries": 2}, r"503 .* \(2 tries\)\.$"),
        ("broken", {"tries": 2}, r"100000 bytes read.* \(2 tries\)\.$"),
        ("file", {"max_bytes": 1000}, "more than 1,000 bytes"),
        ("endless", {"max_bytes": 1000}, "more than 1,000 bytes"),
        ("file", {"sha256": "0" * 64}, f"expected 0000.* but got {SHA256}"),
        ("silent", {"tries": 1, "timeout": 0.2}, "timed out"),
        ("to:ftp://localhost/file", {}, "'ftp://localhost/file': only https"),
        ("to:file:///etc/passwd", {}, "'file:///etc/passwd': only https"),
    ],
)
def test_what_cannot_be_had_is_said_and_leaves_nothing(
    server, tmp_path, what, options, message
):
    with pytest.raises(DownloadError, match=message):
        get(server, what, tmp_path, **options)
    assert kept(tmp_path) == set()


def test_a_wrong_checksum_does_not_touch_the_file_that_is_there(server, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "file").write_bytes(b"old")
    with pytest.raises(ChecksumError):
        get(server, "file", tmp_path, sha256="0" * 64)
    assert (tmp_path / "new" / "file").read_bytes() == b"old"


def test_redirects_are_followed(server, tmp_path):
    get(server, f"to:{server}/file", tmp_path, sha256=SHA256)
    assert (tmp_path / "new" / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://localhost/x", "/etc/passwd", "data:,x"]
)
def test_only_http_is_spoken(url, tmp_path):
    with pytest.raises(DownloadError, match="only https and http"):
        download(url, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_no_way_back_from_https():
    _check_scheme("https://localhost", since="http")
    with pytest.raises(DownloadError, match="only https and http"):
        _check_scheme("http://localhost", since="https")


def test_nobody_there_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match=r"refused \(2 tries\)"):
            download(url, tmp_path / "file", tries=2, pause=0.0)
    assert not list(tmp_path.iterdir())
