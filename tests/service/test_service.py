"""The whole service, in its short form. See scenarios.py for what each one shows."""

import pytest

from . import scenarios
from .hostile import a_hostile_client_harms_nobody
from .running import up_again

# Several starts, wakes and kills each, on a machine that may be slow.
pytestmark = pytest.mark.timeout(600)
SECONDS = 2


def test_two_clients_get_each_record_once_though_the_broker_is_killed(service):
    scenarios.records_once_through_a_kill(service, SECONDS)


def test_all_is_there_after_everything_was_killed(service):
    with up_again(service):
        scenarios.all_is_there_after_kill_9(service)


def test_an_idle_cluster_sleeps_and_a_client_wakes_it(service):
    scenarios.sleeps_and_wakes(service)


def test_clients_see_nothing_of_a_control_plane_that_is_away(service):
    scenarios.clients_outlive_the_control_plane(service, SECONDS)


def test_one_request_is_followed_through_all_processes(service):
    scenarios.one_request_is_followed(service)


def test_groups_of_any_name_are_served(service):
    scenarios.groups_of_any_name_are_served(service)


def test_other_organizations_get_nothing(service):
    scenarios.other_organizations_get_nothing(service)


def test_a_hostile_client_harms_nobody(service):
    a_hostile_client_harms_nobody(service, SECONDS, rounds_min=1)


def test_a_budget_stops_producers_and_lets_them_go_on(service):
    scenarios.a_budget_stops_producers(service)
