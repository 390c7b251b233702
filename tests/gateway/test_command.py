"""`python -m brokers gateway` as its supervisor sees it, and its settings."""

import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import pytest

from brokers import _core
from brokers.config import load_settings
from brokers.errors import ConfigError
from brokers.gateway import resolve_settings
from brokers.settings.writing import toml_value
from tests.gateway.cells import DOMAIN, PASSWORD, ROOT, USER, Cell, GatewayServer, until
from tests.gateway.raw import LIMIT_S, Raw, Refused, metric
from tests.ports import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "gateway-settings.md"
ROW = re.compile(r"\| `(\w+\.\w+)` \| `(.*?)` \| (.*) \|$")
CELL = "[cell]\nmetadata = 'm'\nsecret = 's'\n"


def rows():
    matches = (ROW.match(line) for line in PAGE.read_text().splitlines())
    return {row.group(1): (row.group(2), row.group(3)) for row in matches if row}


def test_page_gives_every_setting_and_its_default():
    defaults = {
        f"{section}.{name}": toml_value(value)
        for section, settings in tomllib.loads(_core.default_gateway_settings()).items()
        for name, value in settings.items()
    }
    assert {name: default for name, (default, _) in rows().items()} == defaults
    assert all(meaning.endswith((".", ")")) for _, meaning in rows().values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[listener]\nplain = '0.0.0.0'\n", r"gateway.toml: line 5: listener.plain: "),
        ("[listener]\ntls = ':1'\n", r"gateway.toml: line 5: listener.tls: must be host:port"),
        ("[wake]\nhold = 1\n", r"gateway.toml: line 5: wake.hold: unknown field"),
    ],
)
def test_wrong_settings_name_file_line_and_key(tmp_path, text, said):
    path = tmp_path / "gateway.toml"
    path.write_text(CELL + text)
    with pytest.raises(ConfigError, match=said):
        load_settings(path, (), resolve_settings)
    ran = subprocess.run(
        [sys.executable, "-m", "brokers", "gateway", "--config", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert re.search(said, ran.stderr)


@pytest.mark.parametrize(
    ("mode", "content", "said"),
    [(0o644, "00" * 32, "opens it to others"), (0o600, "00", "not a cell's secret")],
)
def test_secret_that_is_none_or_open_ends_the_start(cell, mode, content, said):
    secret = cell.folder / "secret"
    secret.write_text(content)
    secret.chmod(mode)
    gateway = GatewayServer(cell)
    with pytest.raises(AssertionError, match=said):
        gateway.start()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_it_and_clients_are_closed(cell, number):
    spec = cell.add_cluster("cl_one")
    gateway = GatewayServer(cell)
    gateway.start()
    client = Raw.plain(spec.ports[0])
    client.log_in(USER, PASSWORD)
    gateway.signal(number)
    assert client.is_closed()
    assert gateway.stop() == 0


def test_health_and_metrics_are_served(cell):
    with GatewayServer(cell) as gateway:
        with urllib.request.urlopen(f"http://{gateway.ready['metrics']}/healthz") as answer:
            assert answer.read() == b"ok\n"
        assert metric(gateway.ready["metrics"], "freshet_gateway_plain_listeners") == 0


def test_port_in_use_is_said_once_and_taken_when_it_is_free(cell):
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        spec = cell.add_cluster("cl_busy", ports=(port,))
        gateway = GatewayServer(cell, log={"format": "json"})
        gateway.start()
        assert gateway.ready["plain"] == "0"
    until(lambda: lets_in(spec), "the gateway listens")
    gateway.stop()
    lines = [json.loads(line) for line in gateway.log.read_text().splitlines()]
    errors = [line for line in lines if line["level"] == "ERROR"]
    message = "cannot listen on a cluster's port: trying again every second"
    assert [line["message"] for line in errors] == [message]
    assert errors[0]["address"] == f"127.0.0.1:{spec.ports[0]}"


def lets_in(spec):
    try:
        Raw.plain(spec.ports[0]).log_in(USER, PASSWORD)
    except (ConnectionError, Refused):
        return False
    return True


def test_own_authority_is_private_and_kept(cell):
    with GatewayServer(cell) as gateway:
        first = gateway.authority.read_bytes()
        assert (gateway.folder / "key.pem").stat().st_mode & 0o777 == 0o600
    with GatewayServer(cell) as gateway:
        assert gateway.authority.read_bytes() == first


def test_certificate_is_changed_without_a_restart(cell, tmp_path):
    with GatewayServer(Cell(tmp_path / "other")) as other:
        names = ("cert.pem", "key.pem", "ca.pem")
        certificate, key, authority = ((other.folder / name).read_bytes() for name in names)
    with GatewayServer(cell, tls={"reload_interval_ms": 50}) as gateway:
        assert trusted(gateway, gateway.authority.read_text())
        assert not trusted(gateway, authority.decode())
        (gateway.folder / "cert.pem").write_bytes(certificate)
        (gateway.folder / "key.pem").write_bytes(key)
        until(lambda: trusted(gateway, authority.decode()), "the other certificate is shown")


def trusted(gateway, authority):
    context = ssl.create_default_context(cadata=authority)
    raw = socket.create_connection(("127.0.0.1", gateway.tls_port), LIMIT_S)
    with raw:
        try:
            context.wrap_socket(raw, server_hostname=f"any.{DOMAIN}").close()
        except ssl.SSLCertVerificationError:
            return False
        return True
