"""The whole service, in its short form. See scenarios.py for what each one shows."""

import tempfile
from pathlib import Path

import pytest

from tests.supervisor.run import Run

from . import scenarios
from .hostile import a_hostile_client_harms_nobody

# Several starts, wakes and kills each, on a machine that may be slow.
pytestmark = pytest.mark.timeout(600)
SECONDS = 4


@pytest.fixture(scope="module")
def run():
    """The service, up. Stopped in order at the end, with nothing left behind."""
    # Not below pytest's own folder: see tests/supervisor/conftest.py.
    with tempfile.TemporaryDirectory(prefix="freshet-test-") as folder:
        run = Run(Path(folder) / "home")
        try:
            run.up()
            yield run
            scenarios.everybody_is_gone(run)
        finally:
            run.kill_everything()


def test_two_clients_get_each_record_once_though_the_broker_is_killed(run):
    scenarios.records_once_through_a_kill(run, SECONDS)


def test_all_is_there_after_everything_was_killed(run):
    scenarios.all_is_there_after_kill_9(run)


def test_an_idle_cluster_sleeps_and_a_client_wakes_it(run):
    scenarios.sleeps_and_wakes(run)


def test_clients_see_nothing_of_a_control_plane_that_is_away(run):
    scenarios.clients_outlive_the_control_plane(run, SECONDS)


def test_one_request_is_followed_through_all_processes(run):
    scenarios.one_request_is_followed(run)


def test_groups_of_any_name_are_served(run):
    scenarios.groups_of_any_name_are_served(run)


def test_strangers_get_nothing(run):
    scenarios.strangers_get_nothing(run)


def test_a_hostile_client_harms_nobody(run):
    a_hostile_client_harms_nobody(run, SECONDS)


def test_a_budget_stops_producers_and_lets_them_go_on(run):
    scenarios.a_budget_stops_producers(run)
