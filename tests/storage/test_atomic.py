"""Files are written whole or not at all, and only where they should be."""

import errno
import os
import stat
import subprocess
import sys
import threading

import pytest

from aucmax.storage.atomic import (
    check_writable,
    refuse_overwriting,
    replacing,
    write_atomically,
)


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


def test_an_input_is_refused_as_output_by_any_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "d.csv"
    path.touch()
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "hard").hardlink_to(path)
    (tmp_path / "other").touch()
    for name in (path, "d.csv", "./d.csv", "missing/../d.csv", "link", "hard"):
        for given in (path, "link", "d.csv"):
            with pytest.raises(FileExistsError, match="Refusing to overwrite"):
                refuse_overwriting(type(path)(name), ["other", given])
    refuse_overwriting(path, ["other", "missing", "-"])


def test_the_file_behind_standard_input_is_refused_as_output(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("1")
    code = (
        "import sys; from pathlib import Path\n"
        "from aucmax.storage.atomic import refuse_overwriting\n"
        "refuse_overwriting(Path(sys.argv[1]), ['-'])"
    )
    (tmp_path / "other").touch()
    for name, fine in (("d.csv", False), ("x/../d.csv", False), ("other", True)):
        with path.open() as file:
            found = subprocess.run(
                [sys.executable, "-c", code, name],
                stdin=file, cwd=tmp_path, capture_output=True, text=True, check=False,
            )  # fmt: skip
        assert ("Refusing to overwrite" not in found.stderr) == fine, found.stderr
        assert (found.returncode == 0) == fine


def test_a_name_is_as_long_as_the_file_system_allows(tmp_path):
    path = tmp_path / ("n" * 255)
    check_writable(path)
    for content in (b"1", b"2"):
        write_atomically(path, content)
    assert path.read_bytes() == b"2"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_and_a_loop_of_links_are_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for write in (lambda name: write_atomically(name, b"1"), check_writable):
        with pytest.raises(IsADirectoryError, match="it is a folder"):
            write(".")
        with pytest.raises(OSError, match="symbolic links") as found:
            write("a")
        assert found.value.filename == "a"
    assert (tmp_path / "a").is_symlink()


def test_an_error_of_a_full_disk_names_the_file(tmp_path):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(OSError, match="No space") as found, replacing(tmp_path / "a"):
        raise full
    assert found.value.filename == str(tmp_path / "a")
    assert not list(tmp_path.iterdir())
