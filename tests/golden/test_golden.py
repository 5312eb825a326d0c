"""Results are those of ``references.json``; see ``references.py``."""

import subprocess
import sys
from pathlib import Path

import pytest

from golden.references import JOBS


@pytest.mark.parametrize("job", JOBS)
def test_results_are_the_references(job):
    # In a process of its own: other tests patch modules and use BLAS and threads.
    script = Path(__file__).with_name("references.py")
    command = [sys.executable, str(script), job]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
