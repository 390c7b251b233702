"""Tests of the supervisor's parts that need no child."""

import errno
import io
import os
import socket
import stat
from pathlib import Path

import pytest
from django.urls import resolve

from brokers.secrets import read_cell_secret
from console.programs.stripe_fake import keys
from console.programs.supervisor import home, migrations, services, space
from console.programs.supervisor.banner import banner
from console.programs.supervisor.errors import StartError, from_os_error, names_full_disk
from console.programs.supervisor.lock import HomeLock
from console.programs.supervisor.output import LogFile, Output
from console.programs.supervisor.ports import Port, check_ports
from console.settings.config import build_config
from console.settings.home import derive_mail_token, read_or_make_secret
from console.settings.schedule import (
    BEAT_SCHEDULE,
    NIGHTLY_QUEUE,
    OUTBOUND_QUEUE,
    OUTBOUND_TASK,
    TASK_ROUTES,
)
from metering.agent.settings import load_settings as load_agent_settings
from provisioning.cell.keeper.settings import load_settings
from tests.ports import free_ports

CHILDREN_IN_ORDER = [
    *("postgres", "redis", "keeper", "gateway", "agent", "web", "worker", "nightly", "outbound"),
    "beat",
]


@pytest.fixture
def config(tmp_path):
    return build_config(tmp_path / "home", {}, {})


def test_a_second_run_names_where_the_first_is(tmp_path):
    path = tmp_path / "up.lock"
    with HomeLock(path, "http://first"):
        sentence = f"already runs on {tmp_path} at http://first \\(pid {os.getpid()}\\)"
        with pytest.raises(StartError, match=sentence), HomeLock(path, "http://second"):
            pass
        assert "first" in path.read_text()
    with HomeLock(path, "http://third"):
        assert "third" in path.read_text()


def test_every_taken_port_is_named_with_its_holder_and_its_setting():
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as two:
        taken = [listener.getsockname()[1] for listener in (one, two)]
        with pytest.raises(StartError) as caught:
            check_ports([Port(taken[0], "console", "FIRST"), Port(taken[1], "Kafka", "SECOND")])
    sentence = caught.value.sentence
    assert f"Port {taken[0]} (console) is taken by" in sentence
    assert f"(pid {os.getpid()}): set FIRST" in sentence
    assert f"Port {taken[1]} (Kafka) is taken by" in sentence
    check_ports([Port(taken[0], "console", "FIRST")])


def test_lingering_closed_connections_take_no_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = listener.accept()
            accepted.close()  # the side that closes first lingers
    check_ports([Port(port, "console", "FIRST")])


def test_ports_that_overlap_are_named(tmp_path):
    (number,) = free_ports(1)
    taken = {"FRESHET_KAFKA_PORT": f"{number}", "FRESHET_HTTP_PORT": f"{number}"}
    with pytest.raises(StartError) as caught:
        check_ports(home.listening_ports(build_config(tmp_path, {}, taken)))
    assert caught.value.sentence == (
        f"Port {number} (the console and REST) is taken by Kafka: set FRESHET_HTTP_PORT to another."
    )


def test_too_little_room_is_named_with_what_a_start_needs(tmp_path, monkeypatch):
    real = os.statvfs(tmp_path)
    monkeypatch.setattr(space, "FIRST_START_BYTES", real.f_bavail * real.f_frsize * 2)
    with pytest.raises(StartError, match=f"The disk that holds {tmp_path} has .* MiB free"):
        space.check_space(tmp_path, first=True)
    monkeypatch.setattr(space, "LATER_START_BYTES", 0)
    space.check_space(tmp_path, first=False)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "The disk that holds /x is full"),
        (errno.EACCES, "may not write to /x/y"),
        (errno.ENOTDIR, "cannot use /x"),
    ],
)
def test_an_error_of_the_system_becomes_a_sentence(number, sentence):
    error = OSError(number, os.strerror(number), "/x/y")
    assert sentence in from_os_error(error, Path("/x")).sentence


def test_a_full_disk_is_known_by_its_words():
    assert names_full_disk(["a", "FATAL: could not write: No space left on device"])
    assert not names_full_disk(["all is well"])


def test_lines_are_prefixed_kept_and_logged(tmp_path):
    stream = io.StringIO()
    output = Output(stream, tmp_path, ["web", "gateway"], colour=False)
    for n in range(20):
        output.say("web", f"line {n}")
    output.close()
    assert stream.getvalue().startswith("web     | line 0\nweb     | line 1\n")
    assert output.tail("web")[-1] == "line 19"
    assert len(output.tail("web")) == 12
    assert len((tmp_path / "web.log").read_text().splitlines()) == 20


def test_colours_are_for_terminals(tmp_path):
    stream = io.StringIO()
    output = Output(stream, tmp_path, ["web"], colour=True)
    output.say("web", "hello")
    output.close()
    assert stream.getvalue() == "\x1b[36mweb |\x1b[0m hello\n"


def test_a_log_rolls_over(tmp_path, monkeypatch):
    monkeypatch.setattr("console.programs.supervisor.output.LOG_BYTES_MAX", 100)
    log = LogFile(tmp_path / "web.log")
    for n in range(30):
        log.write(f"line {n:02}")
    log.close()
    assert (tmp_path / "web.log.1").stat().st_size <= 110
    assert (tmp_path / "web.log").read_text().endswith("line 29\n")


def test_a_log_that_cannot_be_written_does_not_stop_the_output(tmp_path):
    output = Output(io.StringIO(), tmp_path / "absent", ["web"], colour=False)
    output.say("web", "hello")
    assert output.tail("web") == ["hello"]
    output.close()


def test_a_reader_that_went_away_does_not_stop_the_output(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        output = Output(stream, tmp_path, ["web"], colour=False)
        output.say("web", "hello")
        output.say("web", "again")
        output.close()
        assert (tmp_path / "web.log").read_text() == "hello\nagain\n"


def test_secrets_are_made_once_and_for_their_owner_only(config):
    home.make_home(config)
    home.make_folders(config)
    home.make_secrets(config)
    key, secret = config.secret_key_file, config.cell.secret
    assert [stat.S_IMODE(file.stat().st_mode) for file in (key, secret)] == [0o600, 0o600]
    before = (key.read_text(), read_cell_secret(secret))
    home.make_secrets(config)
    assert (key.read_text(), read_cell_secret(secret)) == before


def test_the_keeper_reads_the_settings_that_are_written_for_it(config):
    home.make_home(config)
    home.make_folders(config)
    home.write_settings(config)
    settings = load_settings(services.keeper_file(config))
    assert settings.cell.metadata == str(config.home / "cell" / "metadata.sqlite")
    assert settings.cell.secret == config.cell.secret
    assert settings.keeper.stop_brokers_on_exit


def test_the_agent_reads_the_settings_that_are_written_for_it(config):
    home.make_home(config)
    home.make_folders(config)
    home.write_settings(config)
    settings = load_agent_settings(services.agent_file(config))
    assert settings.cell.id == config.cell.id
    assert settings.cell.dfs == config.cell.dfs
    assert settings.cell.metadata == str(config.home / "cell" / "metadata.sqlite")
    assert settings.cell.bucket == str(config.home / "cell" / "bucket")
    assert settings.usage.location == str(config.home / "cell" / "usage")
    assert settings.usage.progress == config.usage.progress
    assert settings.agent.period_ms == 15_000


def test_folders_are_closed_to_others(config):
    config.home.mkdir(mode=0o750)
    before = os.umask(0o077)  # as `main` sets it
    home.make_home(config)
    home.make_folders(config)
    os.umask(before)
    below = [path for path in config.home.rglob("*") if path.is_dir()]
    made = {"dfs", "bucket", "keeper", "gateway", "agent", "usage", "metering", "mail", "log"}
    assert {path.name for path in below} >= made
    assert {stat.S_IMODE(path.stat().st_mode) for path in (config.home, *below)} == {0o700}


def test_all_parts_start_on_embedded_servers(config):
    specs = services.specify_children(config, {}, None)
    assert [spec.name for spec in specs] == CHILDREN_IN_ORDER
    waits = {spec.name: spec.after for spec in specs}
    assert waits["keeper"] == waits["gateway"] == waits["agent"] == ()
    assert waits["web"] == ("migrate",)
    assert waits["worker"] == waits["beat"] == ("migrate", "postgres", "redis")
    assert waits["outbound"] == ("redis",)


def test_tasks_that_take_minutes_or_call_out_have_workers_of_their_own(config):
    specs = {spec.name: spec.command for spec in services.specify_children(config, {}, None)}
    queues = {
        name: command[command.index("--queues") + 1]
        for name, command in specs.items()
        if "--queues" in command
    }
    assert queues == {"worker": "celery", "nightly": NIGHTLY_QUEUE, "outbound": OUTBOUND_QUEUE}
    assert {route["queue"] for route in TASK_ROUTES.values()} == {NIGHTLY_QUEUE, OUTBOUND_QUEUE}
    due = {entry["task"] for entry in BEAT_SCHEDULE.values()}
    assert TASK_ROUTES.keys() - due == {OUTBOUND_TASK}


def test_the_web_server_bounds_connections(config):
    (web,) = (
        spec for spec in services.specify_children(config, {}, None) if spec.name == services.WEB
    )
    assert "console.programs.web" in web.command


def test_servers_elsewhere_are_not_started(tmp_path):
    table = {"database": {"host": "db.internal"}, "queue": {"url": "amqp://queue.internal"}}
    config = build_config(tmp_path, table, {})
    specs = services.specify_children(config, {}, None)
    assert [spec.name for spec in specs] == CHILDREN_IN_ORDER[2:]
    assert specs[-1].after == ("migrate",)


def test_a_fake_of_stripe_runs_where_there_is_no_key(tmp_path):
    base = "http://127.0.0.1:12345"
    table = {"billing": {"collector": "stripe", "stripe_api_base": base}}
    config = build_config(tmp_path, table, {})
    specs = {spec.name: spec for spec in services.specify_children(config, {}, None)}
    command = specs[services.STRIPE].command
    assert command[command.index("--port") + 1] == "12345"
    assert command[command.index("--state") + 1] == str(tmp_path / "stripe" / "state.sqlite")
    webhook = f"http://127.0.0.1:{config.web.port}/api/v1/webhooks/stripe"
    assert command[command.index("--webhook") + 1] == webhook
    assert 12345 in {port.number for port in home.listening_ports(config)}
    assert base in banner(config)
    # What the other children read is what the fake expects.
    environment = services.child_environment(config, {"FRESHET_HOME": str(tmp_path)}, "mark")
    seen = build_config(tmp_path, table, environment).billing
    assert (seen.collector, seen.stripe_api_base) == ("stripe", base)
    assert seen.stripe_api_key == keys.SECRET_KEY
    assert seen.stripe_webhook_secret == keys.WEBHOOK_SECRET
    assert resolve(keys.WEBHOOK_PATH).url_name == "stripe-webhook"


@pytest.mark.parametrize(
    "billing",
    [
        {"collector": "none"},
        {"collector": "transfer", "bank_account": ["DE00"]},
        {"collector": "stripe", "stripe_api_key": "sk_test_own"},
        {"collector": "stripe", "stripe_api_base": "https://stripe.example.com"},
    ],
)
def test_no_fake_of_stripe_runs_otherwise(tmp_path, billing):
    config = build_config(tmp_path, {"billing": billing}, {})
    names = {spec.name for spec in services.specify_children(config, {}, None)}
    assert services.STRIPE not in names
    environment = services.child_environment(config, {}, "mark")
    assert not any("STRIPE" in name for name in environment)
    assert "Stripe" not in banner(config)


def test_children_know_the_home_and_the_run(config):
    environment = services.child_environment(config, {"PYTHONPATH": "/a", "X": "y"}, "mark")
    assert environment["FRESHET_HOME"] == str(config.home)
    assert environment["FRESHET_RUN"] == "mark"
    assert environment["X"] == "y"
    assert environment["PYTHONPATH"].split(":") == [str(services.ROOT), "/a"]


def test_a_changed_migration_changes_the_fingerprint(tmp_path):
    folder = tmp_path / "console" / "accounts" / "migrations"
    folder.mkdir(parents=True)
    prints = {migrations.migrations_fingerprint(tmp_path)}
    (folder / "0001_first.py").write_text("a = 1\n")
    prints.add(migrations.migrations_fingerprint(tmp_path))
    (folder / "0001_first.py").write_text("a = 2\n")
    prints.add(migrations.migrations_fingerprint(tmp_path))
    assert len(prints) == 3
    assert migrations.migrations_fingerprint(tmp_path) in prints


def test_the_banner_says_where_everything_is(config):
    text = banner(config)
    for part in (config.web.public_url, "9092", "9443", str(config.home), "ca.pem", "Ctrl-C"):
        assert part in text
    token = derive_mail_token(read_or_make_secret(config.secret_key_file))
    assert f"{config.web.public_url}/mail#{token}\n" in text
