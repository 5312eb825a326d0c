"""Files are written whole or not at all, and only where they should be."""

import os
import stat
import threading

import pytest

from aucmax.storage.atomic import check_writable, replacing, write_atomically


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_that_the_umask_allows(umask, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("umask was changed"))
    write_atomically(tmp_path / "a", b"1")
    assert mode(tmp_path / "a") == 0o640


@pytest.mark.parametrize("given", [0o600, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(given, umask, tmp_path):
    path = tmp_path / "a"
    path.touch()
    path.chmod(given)
    with replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == given
        file.write(b"1")
    assert mode(path) == given
    assert path.read_bytes() == b"1"


def test_what_a_killed_process_has_left_is_swept_and_what_is_written_is_not(
    tmp_path, monkeypatch
):
    def unknown(*_):
        raise ProcessLookupError  # as of a process in another container

    monkeypatch.setattr(os, "kill", unknown)
    path = tmp_path / "a[1]"
    child = os.fork()
    if not child:
        with replacing(path) as file:
            file.write(b"half")
            os._exit(0)
    os.waitpid(child, 0)
    assert len(list(tmp_path.iterdir())) == 1
    with replacing(path) as first:
        (live,) = tmp_path.iterdir()  # the other one has been swept
        first.write(b"first")
        write_atomically(path, b"second")  # as another process, or another host
        assert live.exists()
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_many_threads_write_one_file(tmp_path):
    path, failed = tmp_path / "a", []

    def work(content):
        try:
            for _ in range(50):
                write_atomically(path, content)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=[b"%d" % k * 99]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(path.read_bytes()) == 99
    assert list(tmp_path.iterdir()) == [path]


def test_trying_whether_a_file_can_be_written_leaves_nothing(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"1")
    check_writable(path)
    check_writable(tmp_path / "b")
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"1"
