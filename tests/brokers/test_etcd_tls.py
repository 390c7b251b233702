"""An etcd that is reached by TLS alone, by those whose certificate its authority signed: from the
engine, and from Python."""

import pytest

from brokers.errors import UnavailableError
from brokers.etcd import Etcd
from brokers.locations import EtcdLocation, metadata_location
from brokers.metadata import CellStore
from tests.etcd import running_etcd
from tests.kubernetes.pki import Authority

pytestmark = pytest.mark.full("stores")


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """The authority that etcd trusts; it signed the certificates of etcd and of a cell."""
    made = Authority(tmp_path_factory.mktemp("authority") / "pki")
    made.issue("server", "/CN=etcd", usage="serverAuth,clientAuth", names=("IP:127.0.0.1",))
    made.issue("cell", "/CN=cell", usage="clientAuth")
    return made


@pytest.fixture(scope="module")
def untrusted(tmp_path_factory):
    """Another authority, which etcd does not trust; it signed another cell's certificate."""
    made = Authority(tmp_path_factory.mktemp("untrusted") / "pki")
    made.issue("cell", "/CN=cell", usage="clientAuth")
    return made


@pytest.fixture(scope="module")
def server(authority, tmp_path_factory):
    with running_etcd(tmp_path_factory.mktemp("etcd"), authority=authority) as running:
        yield running


def options(trusted, client=None):
    files = {"ca": trusted.certificate("ca")}
    if client is not None:
        files |= {"cert": client.certificate("cell"), "key": client.key("cell")}
    return files


def by_engine(location):
    return CellStore(location).wakes()


def etcd_of(location):
    parsed = metadata_location(location)
    assert isinstance(parsed, EtcdLocation)
    return Etcd(parsed)


def by_python(location):
    return etcd_of(location).get("keeper/tls")


def test_what_the_engine_writes_python_reads(server, authority):
    location = server.location("both", options(authority, authority))
    CellStore(location).cluster("cl_tls").create()
    etcd = etcd_of(location)
    assert [entry.key for entry in etcd.range("cl_tls/").entries]
    assert etcd.create("keeper/tls", b"here")
    assert [entry.value for entry in etcd.range("keeper/").entries] == [b"here"]


@pytest.mark.parametrize("read", [by_engine, by_python])
@pytest.mark.parametrize("wrong", ["no certificate", "an untrusted certificate", "trusts another"])
def test_nobody_else_is_let_in(server, authority, untrusted, read, wrong):
    given = {
        "no certificate": options(authority),
        "an untrusted certificate": options(authority, untrusted),
        "trusts another": options(untrusted, authority),
    }[wrong]
    with pytest.raises(UnavailableError):
        read(server.location("refused", given))


@pytest.mark.parametrize("read", [by_engine, by_python])
def test_a_certificate_of_another_name_is_not_trusted(server, authority, read):
    files = options(authority, authority)
    with pytest.raises(UnavailableError):
        read(server.location("named", {**files, "server_name": "etcd.internal"}))
