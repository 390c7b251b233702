"""Runs of the roll-up in the tests' session of Spark (`tests/conftest.py`)."""

import pytest

from tests.spark.runs import Runs
from tests.spark.usage_files import UsageFolder


@pytest.fixture
def folder(tmp_path):
    """A usage store whose folder's name has characters that patterns and URIs treat specially."""
    return UsageFolder(tmp_path / "usage [1] 100% +")


@pytest.fixture
def roll_up(spark, folder):
    """Runs the job over inputs."""
    return Runs(spark, folder)
