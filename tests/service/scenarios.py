"""What must hold of the whole service: the acceptance of it, as functions.

Each takes a service that runs and makes an organization of its own. `seconds`: how long load goes
on; the checks are the same for seconds and for minutes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import quote

import confluent_kafka
import confluent_kafka.admin
import httpx
import psycopg

from console.programs.supervisor import postgres
from console.programs.supervisor.processes import Identity, members_of
from tests.supervisor.run import Run, wait_until

from .api import Api, Connection
from .running import wait_with_tasks
from .traffic import (
    Complaints,
    KafkaPythonConsumer,
    LibrdkafkaConsumer,
    Producer,
    Reader,
    librdkafka_settings,
)

CONTROL_PLANE = ("beat", "outbound", "nightly", "worker", "web", "redis", "postgres")
# The least that may be set, and more than a test takes.
SHORT_IDLE_S, LONG_IDLE_S = 5, 3600
# From usage to what a budget does about it.
BUDGET_LIMIT_S = 300
DEAR = "prv_dear"
TOPIC = "orders"
# Longer than a client ever waits when nothing is wrong.
TIMEOUT_S = 60


def let_run(seconds: float) -> None:
    """Lets the load run on for so long. Nothing else here waits by the clock."""
    threading.Event().wait(seconds)


def readers(connection: Connection, suffix: str = "") -> list[Reader]:
    """One reader of each library, each in a group of its own."""
    return [
        Reader(lambda: LibrdkafkaConsumer(connection, TOPIC, f"librdkafka{suffix}")).start(),
        Reader(lambda: KafkaPythonConsumer(connection, TOPIC, f"kafka-python{suffix}")).start(),
    ]


def kill_broker(run: Run, cluster_id: str) -> None:
    """Kills the one broker of a cluster by SIGKILL; returns when another serves in its place."""
    killed = broker_of(run, cluster_id)
    os.kill(killed.pid, signal.SIGKILL)
    wait_until(
        lambda: any(b != killed for b in brokers_of(run, cluster_id)), "the broker is replaced"
    )


def brokers_of(run: Run, cluster_id: str) -> list[Identity]:
    """The cluster's broker processes."""
    brokers = []
    for identity in run.brokers():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{identity.pid}/cmdline").read_bytes()
            if cluster_id.encode() in words:
                brokers.append(identity)
    return brokers


def broker_of(run: Run, cluster_id: str) -> Identity:
    """The cluster's only broker process."""
    wait_until(lambda: len(brokers_of(run, cluster_id)) == 1, "one broker runs")
    return brokers_of(run, cluster_id)[0]


def wait_for_phase(api: Api, cluster_id: str, phase: str) -> None:
    """Waits until REST shows the cluster in a phase."""
    wait_until(lambda: api.phase(cluster_id) == phase, f"the cluster is {phase}")


def put_to_sleep(api: Api, cluster_id: str) -> None:
    """Stops the cluster's brokers, and so ends their lanes; whoever connects next wakes it."""
    api.finish(api.call("POST", f"/clusters/{cluster_id}:sleep", status=202))
    wait_for_phase(api, cluster_id, "asleep")


def new_cluster(api: Api) -> tuple[str, Connection]:
    """A cluster with a topic and a credential."""
    cluster_id = api.create_cluster("first")
    api.create_topic(cluster_id, TOPIC)
    return cluster_id, api.connect(cluster_id)


def lag_is_zero(api: Api, cluster_id: str, group: str) -> bool:
    """Tells whether REST shows the group at the end of every partition that has records."""
    lag = api.lag(cluster_id, group)
    return bool(lag) and set(lag.values()) == {0}


def records_once_through_a_kill(run: Run, seconds: float) -> None:
    """Two clients read each record once though the broker is killed; at the end their lag is 0."""
    api = Api.sign_up(run.address)
    cluster_id, connection = new_cluster(api)
    producer = Producer(connection, TOPIC, "a").start()
    reading = readers(connection)
    wait_until(lambda: all(reader.seen for reader in reading), "both read")
    let_run(seconds / 2)
    kill_broker(run, cluster_id)
    let_run(seconds / 2)
    sent = producer.finish()
    for reader in reading:
        reader.finish(sent)
    for group in ("librdkafka", "kafka-python"):
        wait_until(partial(lag_is_zero, api, cluster_id, group), f"lag of {group} is 0")
    api.leave()


def all_is_there_after_kill_9(run: Run) -> None:
    """After SIGKILL of everything, `up` finds users, clusters, topics, records and offsets."""
    email = f"kill-{os.urandom(4).hex()}@example.org"
    api = Api.sign_up(run.address, email)
    cluster_id, connection = new_cluster(api)
    producer = Producer(connection, TOPIC, "before").start()
    before = readers(connection)
    wait_until(lambda: all(reader.seen for reader in before), "both read")
    sent = producer.finish()
    for reader in before:
        reader.finish(sent)

    run.kill_everything()
    run.up()

    assert [item["id"] for item in api.call("GET", "/clusters")["items"]] == [cluster_id]
    assert api.topics(cluster_id) == [TOPIC]
    assert api.cluster(cluster_id)["bootstrap_servers"] == connection.bootstrap_servers
    again = {"email": email, "password": "not the same one", "organization_name": "Example"}
    refused = api.http.post("/signup", json=again)
    assert refused.status_code in {httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY}
    fresh = Reader(lambda: LibrdkafkaConsumer(connection, TOPIC, "fresh")).start()
    # The groups go on after what they had committed: only what is new reaches them.
    producer = Producer(connection, TOPIC, "after").start()
    after = readers(connection)
    wait_until(lambda: all(reader.seen for reader in after), "both read on")
    new = producer.finish()
    for reader in after:
        reader.finish(new)
        assert set(reader.seen) == new
    fresh.finish(sent | new)
    api.leave()


def sleeps_and_wakes(run: Run) -> None:
    """An idle cluster has no process; its topics can be listed and made; a client wakes it."""
    api = Api.sign_up(run.address)
    cluster_id, connection = new_cluster(api)
    api.set_idle_timeout(cluster_id, SHORT_IDLE_S)
    Producer(connection, TOPIC, "a").start().finish()
    wait_for_phase(api, cluster_id, "asleep")
    wait_until(lambda: not brokers_of(run, cluster_id), "no process is left")

    # Otherwise it could sleep again before anybody has looked at it.
    api.set_idle_timeout(cluster_id, LONG_IDLE_S)
    assert api.topics(cluster_id) == [TOPIC]
    api.create_topic(cluster_id, "made-asleep")
    assert sorted(api.topics(cluster_id)) == ["made-asleep", TOPIC]
    assert api.phase(cluster_id) == "asleep"
    assert not brokers_of(run, cluster_id)

    complaints = Complaints(logging.WARNING)
    with complaints.attached("waker") as logger:
        produce_one(connection, "made-asleep", logger)
    assert complaints.lines == []
    wait_for_phase(api, cluster_id, "running")
    one_connection_is_followed(run, cluster_id)
    api.leave()


def produce_one(connection: Connection, topic: str, logger: logging.Logger) -> None:
    """Sends one record with a fresh client and fails if anything at all goes wrong."""
    errors: list[str] = []
    settings = librdkafka_settings(
        connection,
        **{
            "message.timeout.ms": TIMEOUT_S * 1000,
            "error_cb": lambda error: errors.append(str(error)),
        },
    )
    producer = confluent_kafka.Producer(settings, logger=logger)
    producer.produce(
        topic,
        b"good morning",
        callback=lambda error, _: errors.extend([str(error)] if error else []),
    )
    left = producer.flush(2 * TIMEOUT_S)
    assert not errors, errors
    assert left == 0


@contextlib.contextmanager
def control_plane_away(run: Run) -> Iterator[None]:
    """Stops all processes of PostgreSQL, Redis, web, worker and beat by SIGSTOP meanwhile."""
    still: list[int] = []
    children = run.children()
    mark = f"FRESHET_RUN={run.mark()}"
    for name in CONTROL_PLANE:
        leader = children[name]
        family = {leader.pid, *(member.pid for member in members_of(leader.pid, mark))}
        still += sorted(family)
    for pid in still:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(still):
            os.kill(pid, signal.SIGCONT)


def clients_outlive_the_control_plane(run: Run, seconds: float) -> None:
    """Clients go on while PostgreSQL, web and Celery are stopped, through a kill and a wake too."""
    api = Api.sign_up(run.address)
    cluster_id, connection = new_cluster(api)
    sleeper = api.create_cluster("sleeper")
    api.create_topic(sleeper, TOPIC)
    to_wake = api.connect(sleeper)
    put_to_sleep(api, sleeper)
    producer = Producer(connection, TOPIC, "a").start()
    reading = readers(connection)
    wait_until(lambda: all(reader.seen for reader in reading), "both read")
    complaints = Complaints(logging.WARNING)
    with control_plane_away(run):
        assert is_away(run)
        let_run(seconds / 2)
        kill_broker(run, cluster_id)
        with complaints.attached("waker") as logger:
            produce_one(to_wake, TOPIC, logger)
        assert brokers_of(run, sleeper)
        let_run(seconds / 2)
        sent = producer.finish()
        for reader in reading:
            reader.finish(sent)
        assert is_away(run)
    assert complaints.lines == []
    wait_until(lambda: lag_is_zero(api, cluster_id, "librdkafka"), "REST is back, lag is 0")
    api.leave()


def is_away(run: Run) -> bool:
    """Tells whether the web answers nobody."""
    try:
        httpx.get(f"{run.address}/healthz", timeout=2)
    except httpx.TransportError:
        return True
    return False


def groups_of_any_name_are_served(run: Run) -> None:
    """REST finds groups with a `/` in their name, and answers 404 at addresses of nothing."""
    api = Api.sign_up(run.address)
    cluster_id, connection = new_cluster(api)
    groups = f"/clusters/{cluster_id}/groups"
    committed = {"a/b": 1, "a": 2, "a/reset-offsets": 3, "a%2Fb": 4, "..": 5, "//": 6}
    for name, offset in committed.items():
        settings = librdkafka_settings(connection, **{"group.id": name})
        consumer = confluent_kafka.Consumer(settings, logger=logging.getLogger("group"))
        partition = confluent_kafka.TopicPartition(TOPIC, 0, offset)
        consumer.commit(offsets=[partition], asynchronous=False)
        consumer.close()
    assert {item["group"] for item in api.call("GET", groups)["items"]} == set(committed)
    for name, offset in committed.items():
        group = f"{groups}/{quote(name, safe='') if name != '..' else '~..'}"
        [partition] = api.call("GET", group)["partitions"]
        assert partition["committed"] == str(offset)
        [moved] = api.call("POST", f"{group}/reset-offsets", {"to": "earliest"})["items"]
        assert (moved["current"], moved["target"]) == (str(offset), "0")
        assert "text/html" in httpx.get(f"{run.address}{group}").headers["Content-Type"]
        api.call("DELETE", group, status=204)
        api.call("GET", group, status=404)
    assert api.call("GET", groups)["items"] == []
    for client in (api, Api(run.address)):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            for path in ("/nothing", f"{groups}/a/b"):
                assert client.call(method, path, {}, status=404)["code"] == "not_found"
    api.leave()


def other_organizations_get_nothing(run: Run) -> None:
    """Another organization's key gets 404, its Kafka credentials an authentication error."""
    owner, other = Api.sign_up(run.address), Api.sign_up(run.address)
    cluster_id, connection = new_cluster(owner)
    _, foreign = new_cluster(other)
    made = owner.call("GET", f"/clusters/{cluster_id}/credentials")["items"]
    below = f"/clusters/{cluster_id}"
    paths = [below, *(f"{below}/{part}" for part in ("topics", "credentials", "acls", "groups"))]
    paths += [f"{below}/topics/{TOPIC}", f"{below}/topics/{TOPIC}/messages"]
    for path in paths:
        owner.call("GET", path)
        other.call("GET", path, status=404)
        other.call("GET", path.replace(cluster_id, "cl_" + "a" * 20), status=404)
    other.call("POST", f"{below}/topics", {"name": "x", "partitions": 1}, status=404)
    other.call("POST", f"{below}/credentials", {"name": "x", "role": "full"}, status=404)
    other.call("DELETE", f"{below}/credentials/{made[0]['id']}", status=404)
    other.call("PATCH", below, {"name": "taken"}, status=404)
    other.call("DELETE", below, {"name": "first"}, status=404)
    assert other.call("GET", "/clusters")["items"][0]["id"] != cluster_id
    intruder = Connection(connection.bootstrap_servers, foreign.credential)
    assert authentication_error(intruder)
    assert not authentication_error(connection)
    owner.leave()
    other.leave()


def authentication_error(connection: Connection) -> bool:
    """Tells whether the gateway refuses a client's credential."""
    errors: list[confluent_kafka.KafkaError] = []
    # Once a second is often enough to be refused.
    settings = librdkafka_settings(
        connection, **{"error_cb": errors.append, "reconnect.backoff.ms": 1000}
    )
    client = confluent_kafka.admin.AdminClient(settings, logger=logging.getLogger("intruder"))
    refused: list[bool] = []

    def is_answered() -> bool:
        with contextlib.suppress(confluent_kafka.KafkaException):
            client.list_topics(timeout=1)
            refused.append(False)
        client.poll(0)
        if any(e.code() == confluent_kafka.KafkaError._AUTHENTICATION for e in errors):
            refused.append(True)
        return bool(refused)

    wait_until(is_answered, "the gateway lets it in or refuses it")
    return refused[-1]


def _has_mail(run: Run, *words: str) -> bool:
    mails = [file.read_text() for file in (run.home / "mail").glob("*.eml")]
    return any(all(word in mail for word in words) for mail in mails)


def a_budget_stops_producers(run: Run) -> None:
    """A one-cent budget: produce and fetch are refused within minutes, and go on once it is lifted.

    From the first record to the refusal all is real: lane, agent, usage files, minutes, prices.
    """
    api = Api.sign_up(run.address)
    cluster_id, connection = new_cluster(api)
    asked = {"name": "One cent", "amount_minor": 1, "action": "suspend"}
    budget = f"/budgets/{api.call('POST', '/budgets', asked, status=201)['id']}"
    assert produce_error(connection) is None
    put_to_sleep(api, cluster_id)
    with every_byte_is_dear(run):
        wait_with_tasks(
            run,
            ("metering.ingest_usage", "billing.evaluate_budgets"),
            lambda: api.call("GET", budget)["state"] == "exceeded",
            "the budget is used up",
            BUDGET_LIMIT_S,
        )
        wait_until(lambda: produce_error(connection) is not None, "producers are refused")
        error = produce_error(connection)
        assert error is not None
        assert error.code() == confluent_kafka.KafkaError.POLICY_VIOLATION
        shown = api.cluster(cluster_id)["status"]["conditions"]
        conditions = {condition["type"]: condition for condition in shown}
        assert '"One cent" of $0.01' in conditions["ProduceSuspended"]["message"]
        words = "One cent", "refuse to take records"
        wait_until(lambda: _has_mail(run, *words), "a mail says so")
        assert '"One cent" of $0.01' in conditions["FetchSuspended"]["message"]
        reader = Reader(lambda: KafkaPythonConsumer(connection, TOPIC, "goes-on")).start()
        assert fetch_error(connection).code() == confluent_kafka.KafkaError.POLICY_VIOLATION
        assert not reader.seen

        api.call("PATCH", budget, {"amount_minor": 10**15})
        wait_until(lambda: produce_error(connection) is None, "producers are served again")
        wait_until(lambda: bool(reader.seen), "the consumer goes on by itself")
        reader.finish(set(reader.seen))
        assert api.call("GET", budget)["suspended_at"] is None
    api.leave()


@contextlib.contextmanager
def every_byte_is_dear(run: Run) -> Iterator[None]:
    """Meanwhile one record costs dollars by the prices of this month, and nothing is free.

    Prices come by migrations alone: only the tables' owner can add them. Triggers keep everybody
    from removing them; the superuser can have a session without these.
    """
    owner = postgres.connection_string(run.home / "postgres", "freshet_owner", "freshet")
    superuser = postgres.connection_string(run.home / "postgres", postgres.SUPERUSER, "freshet")
    with psycopg.connect(owner) as connection:
        connection.execute(
            "INSERT INTO billing_priceversion (id, valid_from, currency, created_at)"
            " VALUES (%s, date_trunc('month', now() AT TIME ZONE 'UTC')::date, 'USD', now())",
            [DEAR],
        )
        connection.execute(
            "INSERT INTO billing_price"
            " (version_id, meter, unit_price, unit, free_units, free_unit)"
            " SELECT %s, meter, 10000000, unit, 0, free_unit FROM billing_price",
            [DEAR],
        )
    try:
        yield
    finally:
        with psycopg.connect(superuser) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute("DELETE FROM billing_price WHERE version_id = %s", [DEAR])
            connection.execute("DELETE FROM billing_priceversion WHERE id = %s", [DEAR])


def produce_error(connection: Connection) -> confluent_kafka.KafkaError | None:
    """Produces one record with a fresh client; returns its error, None if it was acknowledged."""
    outcomes: list[confluent_kafka.KafkaError | None] = []
    settings = librdkafka_settings(connection, **{"message.timeout.ms": TIMEOUT_S * 1000})
    producer = confluent_kafka.Producer(settings, logger=logging.getLogger("producer"))
    value = os.urandom(8).hex()
    producer.produce(TOPIC, value, callback=lambda error, _: outcomes.append(error))
    assert producer.flush(2 * TIMEOUT_S) == 0
    return outcomes[0]


def fetch_error(connection: Connection) -> confluent_kafka.KafkaError:
    """Reads with a fresh client until it is refused; returns the error."""
    settings = librdkafka_settings(connection, **{"group.id": "refused"})
    settings["auto.offset.reset"] = "earliest"
    consumer = confluent_kafka.Consumer(settings, logger=logging.getLogger("consumer"))
    consumer.subscribe([TOPIC])
    errors: list[confluent_kafka.KafkaError] = []

    def is_refused() -> bool:
        message = consumer.poll(1)
        error = None if message is None else message.error()
        if error is not None:
            errors.append(error)
        return bool(errors)

    wait_until(is_refused, "consumers are refused")
    consumer.close()
    return errors[0]


def one_request_is_followed(run: Run) -> None:
    """The id that a REST call came with is in the logs of all five kinds of processes."""
    name = f"trace-{os.urandom(6).hex()}"
    api = Api.sign_up(run.address)
    api.http.headers["X-Request-Id"] = name
    cluster_id = api.create_cluster("followed")
    operation = api.call("GET", f"/operations?resource_id={cluster_id}")["items"][0]
    assert operation["request_id"] == name
    asker = f"control-plane {operation['id']} {name}"
    wait_for_log_lines(
        run,
        cluster_id,
        {
            "web": f"[{name} {operation['id']}]",
            "worker": f"[{name} {operation['id']}]",
            "keeper": f"{cluster_id}: woken by {asker}",
            "broker": f'cluster="{cluster_id}" slot=0 started_for="{asker}"',
            "gateway": f'cluster="{cluster_id}" started_for="{asker}"',
        },
    )
    api.leave()


def one_connection_is_followed(run: Run, cluster_id: str) -> None:
    """The id of the connection that woke a cluster is in the logs of gateway, keeper and broker."""
    gateway = (run.home / "log" / "gateway.log").read_text(errors="replace")
    connections = re.findall(rf'cluster="{cluster_id}" connection="(con_[0-9a-f]+)"', gateway)
    assert connections, gateway[-2000:]
    asker = f"gateway {connections[-1]}"
    wait_for_log_lines(
        run,
        cluster_id,
        {
            "keeper": f"{cluster_id}: woken by {asker}",
            "broker": f'cluster="{cluster_id}" slot=0 started_for="{asker}"',
            "gateway": f'cluster="{cluster_id}" started_for="{asker}"',
        },
    )


def wait_for_log_lines(run: Run, cluster_id: str, lines: Mapping[str, str]) -> None:
    """Waits until the log of each kind of process has a line with this in it."""
    for process, line in lines.items():
        log = run.home / "log" / f"{process}.log"
        if process == "broker":
            log = run.home / "keeper" / "run" / cluster_id / "slot-0" / "broker.log"
        wait_until(partial(_log_has, log, line), f"{process} tells of {line}")


def _log_has(log: Path, part: str) -> bool:
    """Tells whether a line of a log has this part."""
    return part in log.read_text(errors="replace")
