"""Nobody goes around `console.base.outbound`: where else the service opens connections, by name.

`ALLOWED` names each file or folder that may, and to whom: in no case has a tenant chosen it. A file
that opens connections and is not named fails, and so does a name without such a file.
"""

import ast

import pytest

from tests.imports import ROOT

PACKAGES = ("billing", "brokers", "console", "metering", "provisioning", "spark_usage")
# Modules with which one can open a connection to any address: sockets, HTTP, names, and SDKs that
# are made of these. Drivers of PostgreSQL, queues and mail speak to what the settings name.
CLIENTS = {
    *("socket", "ssl", "socketserver", "http.client", "urllib.request", "xmlrpc.client"),
    *("ftplib", "poplib", "imaplib", "nntplib", "telnetlib", "smtplib"),
    *(
        "urllib3",
        "requests",
        "httpx",
        "httpcore",
        "aiohttp",
        "h11",
        "h2",
        "websocket",
        "websockets",
    ),
    *("dns", "boto3", "botocore", "kubernetes", "grpc", "paramiko", "pycurl", "oauthlib"),
    *("requests_oauthlib", "authlib", "jwt", "stripe", "fsspec", "weasyprint", "pyarrow.fs"),
}
# Functions of other modules that open one.
OPENERS = {
    *("open_connection", "create_connection", "open_unix_connection", "create_unix_connection"),
    *("create_datagram_endpoint", "sock_connect", "getaddrinfo", "gethostbyname", "urlopen"),
}
OUTBOUND = "console/base/outbound/"

NOBODY = "nobody: it asks for the name of this machine, or names types and errors"
LOOPBACK = "parts of this service on this machine"
BROKERS = "brokers of a cluster, where the keeper said that they are"
OPERATOR = "what the operator's settings name"
API_SERVER = "the API server of Kubernetes"
STRIPE = "Stripe, or its fake where the operator's settings name that"
USER = "the service that the person at the command line names"
LISTENS = "nobody: it asks for the addresses that it listens on itself"
NOTHING = "nobody: it refuses every address that a document has"
ALLOWED = {
    OUTBOUND: "what tenants chose",
    "billing/collection/gateway.py": STRIPE,
    "billing/pdf/render.py": NOTHING,
    "brokers/etcd.py": OPERATOR,
    "brokers/s3.py": OPERATOR,
    "console/programs/cli/login.py": NOBODY,
    "console/programs/cli/transport.py": USER,
    "console/programs/stripe_fake/": LOOPBACK,
    "console/programs/supervisor/": LOOPBACK,
    "console/programs/web/server.py": LISTENS,
    "metering/services/rollup.py": NOBODY,
    "provisioning/cell/drivers/kubernetes/": API_SERVER,
    "provisioning/cell/keeper/lease.py": NOBODY,
    "provisioning/cell/status/reader.py": BROKERS,
}


def opening_files():
    """Returns the files that can open a connection, with what they use for that."""
    files = {
        path.relative_to(ROOT).as_posix(): used_clients(path.read_text(encoding="utf-8"))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    return {name: uses for name, uses in files.items() if uses}


def used_clients(text):
    """What a file uses to open connections: modules of `CLIENTS`, and functions of `OPENERS`."""
    uses = set()
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and node.attr in OPENERS:
            uses.add(node.attr)
        # A module that is named in a text, as for `import_module`.
        elif isinstance(node, ast.Call) and callee(node) in {"import_module", "__import__"}:
            names = [str(word.value) for word in node.args if isinstance(word, ast.Constant)]
        for name in names:
            uses |= {client for client in CLIENTS if f"{name}.".startswith(f"{client}.")}
            uses |= {name.rpartition(".")[2]} & OPENERS
    return uses


def callee(node):
    return getattr(node.func, "attr", None) or getattr(node.func, "id", None)


def test_connections_are_opened_by_those_who_may():
    unknown = {
        name: sorted(uses)
        for name, uses in opening_files().items()
        if not any(name.startswith(place) for place in ALLOWED)
    }
    assert not unknown, (
        f"{unknown}: call addresses of tenants by console.base.outbound; others are named here"
    )


def test_those_who_may_do():
    names = opening_files()
    assert not [place for place in ALLOWED if not any(name.startswith(place) for name in names)]


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("import socket", {"socket"}),
        ("import http.client as h", {"http.client"}),
        ("from http import client", {"http.client"}),
        ("from urllib.request import urlopen", {"urllib.request", "urlopen"}),
        ("def f():\n    import httpx", {"httpx"}),
        ("from requests.sessions import Session", {"requests"}),
        ("import_module('urllib3.util')", {"urllib3"}),
        ("importlib.import_module('socket')", {"socket"}),
        ("__import__('dns.resolver')", {"dns"}),
        ("import asyncio\nasyncio.open_connection('x', 1)", {"open_connection"}),
        ("from asyncio import open_connection", {"open_connection"}),
        ("loop.getaddrinfo('x', 1)", {"getaddrinfo"}),
        ("import http\nimport socketpair\nfrom urllib.parse import quote\nhttp.HTTPStatus", set()),
    ],
)
def test_each_way_to_open_a_connection_is_seen(text, uses):
    assert used_clients(text) == uses
