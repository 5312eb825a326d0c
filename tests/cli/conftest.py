"""Fixtures for tests of the command line."""

import pytest

from helpers.commands import train_model


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return train_model(tmp_path_factory.mktemp("model"))
