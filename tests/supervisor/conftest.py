"""Folders for homes."""

import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def folder():
    """A folder for a home, outside of pytest's own.

    As root PostgreSQL runs as another account, which must pass through the folders above its data;
    each session of pytest closes its folders to others again, also those of a session beside it.
    """
    with tempfile.TemporaryDirectory(prefix="freshet-test-", ignore_cleanup_errors=True) as name:
        yield Path(name)
