"""Downloads of data sets from a server that has bad days."""

import hashlib
import socket
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from requests import Response

from aucmax_reproduction import datasets as sets
from helpers.data import registry_line

pytestmark = pytest.mark.filterwarnings("ignore:No checksum is known")

ROWS = 20_000
CONTENT = b"1 1:0.5\n-1 2:1.5\n" * (ROWS // 2)
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
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("AUCMAX_DATA", raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(sets, "_cache", lambda: tmp_path / "cache")
    SEEN.clear()
    return tmp_path / "cache"


@pytest.fixture
def get(monkeypatch):
    """Return a function that downloads a set with this address."""

    def fetch(url, **options):
        classes = f"-1:{ROWS // 2} 1:{ROWS // 2}"
        line = registry_line(
            "toy", features=2, rows=ROWS, classes=classes, sha256="0" * 64, url=url
        )
        monkeypatch.setattr(sets, "_registry", lambda: {"toy": sets._entry([line])})
        return sets.fetch("toy", **options)[0]

    return fetch


def pin(cache, sha256):
    cache.mkdir()
    lock = cache / "toy.upstream.svm.lock"
    lock.write_text(f'{{"sha256": "{sha256}"}}')
    return lock


def kept(cache):
    return {path.name for path in cache.iterdir()}


BOTH = {"toy.upstream.svm", "toy.upstream.svm.lock"}


def test_a_file_comes_whole_and_nothing_else(server, get, cache):
    reported = []
    path = get(f"{server}/file", progress=lambda *step: reported.append(step))
    assert path.read_bytes() == CONTENT
    assert kept(cache) == BOTH
    assert reported[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)


@pytest.mark.parametrize("what", ["broken", "moody", "endless"])
@pytest.mark.parametrize("pinned", [False, True])
def test_failed_downloads_are_repeated(server, get, cache, what, pinned):
    if pinned:
        pin(cache, hashlib.sha256(CONTENT).hexdigest())
    assert get(f"{server}/{what}").read_bytes() == CONTENT
    assert SEEN[what] == (1 if what == "endless" else 3)
    assert kept(cache) == BOTH


@pytest.mark.parametrize(
    ("what", "retries", "message"),
    [
        ("missing", 0, "404 .*Not Found.* set AUCMAX_DATA"),
        ("moody", 1, "503"),
        ("broken", 1, "100000 bytes read"),
        ("silent", 0, "timed out"),
        ("to:ftp://localhost/file", 0, "ftp://localhost/file"),
        ("to:file:///etc/passwd", 0, "file:///etc/passwd"),
    ],
)
def test_errors_name_the_address_and_leave_nothing(
    server, get, cache, what, retries, message, monkeypatch
):
    monkeypatch.setattr(sets, "_RETRIES", retries)
    monkeypatch.setattr("pooch.downloaders.DEFAULT_TIMEOUT", 0.2)
    with pytest.raises(OSError, match=rf"Cannot download {server}/.*{message}"):
        get(f"{server}/{what}")
    assert kept(cache) == set()


def test_a_wrong_checksum_is_an_error_and_leaves_nothing(server, get, cache):
    lock = pin(cache, "0" * 64)
    found = hashlib.sha256(CONTENT).hexdigest()
    with pytest.raises(OSError, match=f"expected 0000.* but got {found}"):
        get(f"{server}/file")
    assert kept(cache) == {lock.name}


def test_redirects_are_followed(server, get):
    assert get(f"{server}/to:{server}/file").read_bytes() == CONTENT


@pytest.mark.parametrize("url", ["file:///etc/passwd", "/etc/passwd", "data:,x"])
def test_only_http_is_supported(url, get, cache):
    with pytest.raises(OSError, match="Cannot download"):
        get(url)
    assert kept(cache) == set()


def test_https_is_not_redirected_to_http():
    response = Response()
    response.url, response.status_code = "https://localhost/a", 302
    response.headers["location"] = "https://localhost/b"
    sets._refuse_downgrade(response)
    response.headers["location"] = "http://localhost/b"
    with pytest.raises(OSError, match="Refusing the redirect"):
        sets._refuse_downgrade(response)


def test_no_server(get, cache):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but does not listen
        with pytest.raises(OSError, match="refused"):
            get(f"http://127.0.0.1:{taken.getsockname()[1]}/file")
    assert kept(cache) == set()
