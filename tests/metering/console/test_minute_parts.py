"""Minutes lie in a part of their table for each day, and a published day's part goes as a whole."""

from datetime import date, timedelta
from importlib import import_module
from types import SimpleNamespace

import psycopg
import pytest
from django.db import DatabaseError, DataError, connection, connections, transaction

from console.base.common.tenancy import organization_scope, system_scope
from metering.models import ProvisionalMinute
from metering.periods import DAY, to_ms
from metering.services.ingest import ingest_usage, remove_old_minutes
from metering.services.minute_parts import drop_parts, make_parts
from metering.services.month_usage import month_totals
from tests.metering.console.conftest import NOON
from tests.metering.console.test_ingest import emit, minutes
from tests.metering.console.world import Used, publish_day, use_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
MINUTE = timedelta(minutes=1)
TODAY = NOON.date()


def parts():
    """The names of the table's parts."""
    query = """SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
               WHERE inhparent = 'metering_provisionalminute'::regclass ORDER BY relname"""
    with connection.cursor() as cursor:
        cursor.execute(query)
        return [name for (name,) in cursor.fetchall()]


def name_of(day):
    return f"day_{day:%Y%m%d}"


def used(quantity, organization_id="org_a", cluster_id="cl_a"):
    return Used(organization_id, cluster_id, "ingress_bytes", quantity)


def test_a_day_has_its_part_from_its_first_minute_on(agent, store):
    assert parts() == []
    emit(agent, 0, 3)
    ingest_usage(store=store)
    assert parts() == [name_of(TODAY)]
    midnight = NOON.replace(hour=0) + DAY
    use_minute(used(7), midnight - MINUTE, minutes=2)
    assert parts() == [name_of(TODAY), name_of(TODAY + DAY)]
    assert minutes()["ingress_bytes", 12 * 60] == 4
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM ONLY metering_provisionalminute")
        assert cursor.fetchone() == (0,)


def test_minutes_that_are_not_added_need_no_part():
    start = to_ms(NOON - 5 * DAY)
    assert make_parts([start], [1], keep_from=NOON) == 0
    assert make_parts([start], [5 * 24 * 60 + 1], keep_from=NOON) == 1
    assert parts() == [name_of(TODAY)]


@pytest.mark.parametrize(
    ("start_ms", "count"), [(to_ms(NOON), 401 * 24 * 60), (2**62, 1), (to_ms(NOON), 2**60)]
)
def test_windows_of_too_many_days_are_refused(start_ms, count):
    with pytest.raises(DataError), transaction.atomic():
        make_parts([start_ms], [count], keep_from=NOON)
    many = [to_ms(NOON + number * DAY) for number in range(401)]
    with pytest.raises(DataError, match="more than 400 new days"), transaction.atomic():
        make_parts(many, [1] * len(many), keep_from=NOON)
    assert parts() == []


def test_a_part_goes_once_its_day_is_published_and_old(clock):
    for number in range(3):
        use_minute(used(1), NOON + number * DAY)
    publish_day(TODAY, [])
    publish_day(TODAY + 2 * DAY, [])
    publish_day(TODAY + DAY, [], early=True)
    clock.now = NOON + 8 * DAY
    assert drop_parts() == 0
    clock.now = NOON + 30 * DAY
    assert remove_old_minutes() == 2
    assert parts() == [name_of(TODAY + DAY)]
    # It counts from its minutes, which are still there.
    with system_scope():
        assert month_totals(TODAY, ["org_a"]) == {"org_a": {("cl_a", "ingress_bytes"): 1}}
    publish_day(TODAY + DAY, [])
    assert remove_old_minutes() == 1
    assert parts() == []


def test_parts_show_nothing_to_the_serving_role(tenant, other_tenant):
    for one in (tenant, other_tenant):
        use_minute(used(1, organization_id=one.id, cluster_id=f"cl_{one.id[-4:]}"), NOON)
    with organization_scope(tenant.id):
        assert {row.organization_id for row in ProvisionalMinute.objects.all()} == {tenant.id}
        for statement in (
            f"TABLE minutes.{name_of(TODAY)}",
            f"DROP TABLE minutes.{name_of(TODAY)}",
            "CREATE TABLE minutes.mine (id int)",
            "ALTER TABLE metering_provisionalminute DISABLE ROW LEVEL SECURITY",
        ):
            with pytest.raises(DatabaseError, match=r"permission denied|must be owner"):
                _execute(statement)
    assert minutes() == {("ingress_bytes", 0): 2}


def _execute(statement):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.django_db(transaction=True)
def test_a_reader_that_takes_long_holds_up_no_ingest(agent, store, clock):
    emit(agent, 0, 3)
    ingest_usage(store=store)
    publish_day(TODAY, [])
    clock.now = NOON + 9 * DAY
    settings = connection.settings_dict
    with psycopg.connect(
        host=settings["HOST"], dbname=settings["NAME"], user=settings["USER"]
    ) as reader:
        reader.execute("SELECT count(*) FROM metering_provisionalminute")
        emit(agent, 4, 5, at=clock.now)
        assert ingest_usage(store=store).files == 1
        assert parts() == [name_of(TODAY)]
    assert remove_old_minutes() == 1
    assert parts() == []


@pytest.mark.django_db(databases=["default", "owner"], transaction=True)
def test_minutes_of_the_release_before_stay_and_become_a_part(clock):
    """The migration's steps, on a table as the release before left it."""
    migration = import_module("metering.migrations.0008_minutes_by_day")
    editor = SimpleNamespace(connection=connections["owner"])
    migration.unite_table(None, editor)
    with system_scope():
        for number in range(3):
            ProvisionalMinute.objects.create(
                organization_id="org_a",
                cluster_id="cl_a",
                meter="ingress_bytes",
                minute=NOON + number * DAY,
                quantity=number + 1,
                billed=True,
            )
    # An attempt that ends in the middle leaves nothing in the way of the next.
    migration._bound_rows(editor.connection)
    migration.divide_table(None, editor)
    # Nothing is left to do where it is done again.
    migration.divide_table(None, editor)
    (part,) = parts()
    bound = date.fromisoformat(part.removeprefix("before_"))
    assert bound > TODAY + 2 * DAY
    assert [quantity for _, quantity in sorted(minutes().items())] == [1, 2, 3]
    # Its indexes are those that it had: none is made anew.
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_indexes WHERE tablename = %s", [part])
        assert cursor.fetchone() == (3,)
    # Minutes of its days are added to it, those of later days to parts of their own.
    use_minute(used(10), NOON)
    use_minute(used(20), NOON.replace(hour=0) + (bound - TODAY))
    assert parts() == [part, name_of(bound)]
    assert sum(minutes().values()) == 36
    with organization_scope("org_b"):
        assert not ProvisionalMinute.objects.exists()
    # It goes as a whole, once all days that it has minutes of are published.
    clock.now = NOON + 60 * DAY
    for number in range(3):
        assert drop_parts() == 0
        publish_day(TODAY + number * DAY, [])
    assert drop_parts() == 1
    assert parts() == [name_of(bound)]
    publish_day(bound, [])
    assert drop_parts() == 1
