import pytest

from aucmax.tables.options import tell_command_line


@pytest.fixture(autouse=True)
def _as_the_command_line_writes_them():
    """Have messages name options as ``aucmax train`` would; see test_messy."""
    before = tell_command_line(True)
    yield
    tell_command_line(before)
