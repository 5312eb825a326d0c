"""Results are those of ``references.json``; see ``references.py``."""

import json

import pytest

from golden.references import FILE, JOBS, differs


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.filterwarnings("ignore")
def test_results_are_the_references(job):
    known = json.loads(FILE.read_text())
    found = JOBS[job]()
    assert found.keys() == {key for key in known if key.startswith(f"{job}/")}
    assert [key for key in found if differs(known[key], found[key])] == []
