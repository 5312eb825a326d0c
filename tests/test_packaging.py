"""Version, metadata and type information of the package."""

import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import aucmax

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]


def test_version_is_the_same_everywhere():
    version = aucmax.__version__
    assert PROJECT["version"] == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'\nversion: "{version}"\n' in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{version}]" in changelog


@pytest.mark.skipif(find_spec("mypy") is None, reason="needs mypy")
def test_a_user_program_passes_mypy_strict(tmp_path):
    program = tmp_path / "program.py"
    program.write_text((ROOT / "tests/typed_user.py").read_text(encoding="utf-8"))
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = true\nfollow_imports = silent\nmypy_path = "
        f"{Path(aucmax.__file__).parent.parent}\n"
        f"cache_dir = {tmp_path / 'cache'}\n"
    )
    command = [sys.executable, "-m", "mypy", "program.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
