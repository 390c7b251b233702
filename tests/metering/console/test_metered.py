"""Whether a cluster's usage is recorded, as whoever removes its data asks."""

from datetime import timedelta

import pytest

from console.base.common import metered
from console.base.common.tenancy import organization_scope
from metering.models import JudgedHour
from metering.periods import HOUR
from tests.metering.console.conftest import NOON
from tests.metering.console.world import make_hours_complete

CLUSTER = "cl_aaaaaaaaaaaaaaaaaaaa"


@pytest.fixture
def is_metered(tenant):
    """Asks as provisioning does."""

    def ask(until):
        with organization_scope(tenant.id):
            return metered.is_metered(cluster_id=CLUSTER, until=until)

    return ask


def test_a_cluster_without_usage_files_is_not(is_metered):
    assert not is_metered(NOON)


def test_complete_hours_are(is_metered, tenant):
    make_hours_complete(tenant.id, CLUSTER, NOON - 3 * HOUR, NOON)
    assert is_metered(NOON)
    assert not is_metered(NOON + timedelta(milliseconds=1))


def test_nothing_is_behind_an_hour_that_is_not_complete(is_metered, tenant):
    make_hours_complete(tenant.id, CLUSTER, NOON - 3 * HOUR, NOON)
    with organization_scope(tenant.id):
        JudgedHour.objects.filter(hour=NOON - 2 * HOUR).update(complete=False)
    assert is_metered(NOON - 2 * HOUR)
    assert not is_metered(NOON - HOUR)
