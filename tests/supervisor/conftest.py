"""Fixtures: folders for homes."""

import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def folder():
    """A folder for a home, outside of pytest's own folders.

    Under root PostgreSQL runs as another account, which must pass through the folders above its
    data. Each session of pytest closes the folders of all sessions to other accounts again.
    """
    with tempfile.TemporaryDirectory(prefix="freshet-test-", ignore_cleanup_errors=True) as name:
        yield Path(name)
