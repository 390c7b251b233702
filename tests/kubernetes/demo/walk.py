"""A customer's first steps: signs up, creates a cluster, produces and consumes records."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.gateway.names import run_with_names
from tests.kubernetes.demo.client import TOPIC
from tests.service.api import Api


@dataclass(frozen=True)
class Walked:
    """What the walk created."""

    cluster_id: str
    bootstrap: str
    username: str
    password: str


def walk(address: str, authority: Path, folder: Path, say: Callable[[str], None]) -> Walked:
    """Does all steps. Raises `AssertionError` where one fails. `authority` is a PEM file."""
    api = Api.sign_up(address)
    say("signed up")
    try:
        cluster_id = api.create_cluster("first")
        say(f"cluster {cluster_id} runs")
        api.create_topic(cluster_id, TOPIC)
        connection = api.connect(cluster_id)
        endpoints = api.cluster(cluster_id)["endpoints"]
        (bootstrap,) = [
            endpoint["bootstrap_servers"]
            for endpoint in endpoints
            if endpoint["listener"] == "SASL_SSL"
        ]
    finally:
        api.close()
    credential = connection.credential
    given = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authority),
        "sasl.mechanism": credential.mechanism,
        "sasl.username": credential.username,
        "sasl.password": credential.password,
    }
    host = bootstrap.partition(":")[0]
    names = [host, *(f"b{slot}-{host}" for slot in range(3))]
    command = [sys.executable, "-m", "tests.kubernetes.demo.client"]
    done = run_with_names(folder, names, command, given=json.dumps(given).encode())
    assert done.returncode == 0, done.stderr.decode()
    say(done.stdout.decode().strip())
    return Walked(cluster_id, bootstrap, credential.username, credential.password)
