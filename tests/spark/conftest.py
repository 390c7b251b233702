"""One Spark session for all tests, and runs of the roll-up in it."""

import logging

import pytest

from spark_usage.session import open_session
from tests.spark.runs import JAVA_OPTIONS, Runs
from tests.spark.usage_files import UsageFolder


@pytest.fixture(scope="session")
def spark():
    """Two cores, and with them two shuffle partitions."""
    # It logs its connections' end from finalisers, also when nobody can be logged to any more.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    session = open_session(
        "tests", master="local[2]", driver_memory="1g", java_options=JAVA_OPTIONS
    )
    yield session
    session.stop()


@pytest.fixture
def folder(tmp_path):
    """A usage store whose name means something to a pattern and to a URI."""
    return UsageFolder(tmp_path / "usage [1] 100% +")


@pytest.fixture
def roll_up(spark, folder):
    """Runs the job over inputs."""
    return Runs(spark, folder)
