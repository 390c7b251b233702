"""The first contract of the REST interface, as a script of a new user would use it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Self

import httpx

REGION = "local"
ROUNDS_MAX = 20


@dataclass(frozen=True)
class Credential:
    """A Kafka user with the password that is shown once."""

    username: str
    password: str
    mechanism: str


@dataclass(frozen=True)
class Connection:
    """All that a Kafka client needs to know."""

    bootstrap_servers: str
    credential: Credential


class Api:
    """One organization's view of REST. Any status that was not expected fails with the answer."""

    def __init__(self, address: str, key: str = "") -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.http = httpx.Client(base_url=f"{address}/api/v1", headers=headers, timeout=60)
        self._made: list[str] = []

    @classmethod
    def sign_up(cls, address: str, email: str | None = None) -> Self:
        """Signs up with a fresh address; the client speaks with the key that comes back."""
        given = {
            "email": email or f"{secrets.token_hex(6)}@example.org",
            "password": secrets.token_urlsafe(16),
            "organization_name": "Example",
        }
        anybody = cls(address)
        answer = anybody.call("POST", "/signup", given)
        anybody.close()
        assert answer["organization"]["id"].startswith("org_")
        return cls(address, answer["api_key"]["secret"])

    def close(self) -> None:
        """Closes the connection."""
        self.http.close()

    def leave(self) -> None:
        """Suspends the clusters that it made, whose brokers would take others' time, and closes."""
        for cluster_id in self._made:
            self.call("POST", f"/clusters/{cluster_id}:suspend", status=202)
        self.close()

    def call(
        self,
        method: str,
        path: str,
        json: object = None,
        status: int | None = None,
    ) -> Any:  # noqa: ANN401 (decoded JSON)
        """Calls and returns the decoded answer. Without `status`, any success will do."""
        answer = self.http.request(method, path, json=json)
        good = answer.is_success if status is None else answer.status_code == status
        assert good, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json() if answer.content else None

    def finish(self, operation: dict[str, Any]) -> None:
        """Waits for an operation to succeed."""
        for _ in range(ROUNDS_MAX):
            if operation["state"] in {"succeeded", "failed", "cancelled"}:
                break
            operation = self.call("GET", f"/operations/{operation['id']}?wait=10")
        assert operation["state"] == "succeeded", operation

    def create_cluster(self, name: str) -> str:
        """Creates a cluster, waits for it, and returns its id."""
        operation = self.call("POST", "/clusters", {"name": name, "region": REGION}, status=202)
        self.finish(operation)
        cluster_id: str = operation["resource_id"]
        assert cluster_id.startswith("cl_")
        self._made.append(cluster_id)
        return cluster_id

    def cluster(self, cluster_id: str) -> dict[str, Any]:
        """The cluster as REST shows it."""
        shown: dict[str, Any] = self.call("GET", f"/clusters/{cluster_id}")
        return shown

    def phase(self, cluster_id: str) -> str:
        """What the cluster is doing."""
        phase: str = self.cluster(cluster_id)["status"]["phase"]
        return phase

    def set_idle_timeout(self, cluster_id: str, seconds: int) -> None:
        """Lets the cluster sleep after so long without a client."""
        answer = self.http.patch(f"/clusters/{cluster_id}", json={"idle_timeout_s": seconds})
        assert answer.is_success, answer.text
        body = answer.json()
        if answer.status_code == httpx.codes.ACCEPTED:
            self.finish(body)
        assert self.cluster(cluster_id)["spec"]["idle_timeout_s"] == seconds

    def create_topic(self, cluster_id: str, name: str, partitions: int = 3) -> None:
        """Creates a topic."""
        given = {"name": name, "partitions": partitions, "configs": {}}
        self.call("POST", f"/clusters/{cluster_id}/topics", given)

    def topics(self, cluster_id: str) -> list[str]:
        """Names of the cluster's topics."""
        return [
            item["name"] for item in self.call("GET", f"/clusters/{cluster_id}/topics")["items"]
        ]

    def connect(self, cluster_id: str, name: str = "app", role: str = "full") -> Connection:
        """Makes a credential, and with it all that a client needs."""
        given = {"name": name, "role": role}
        made = self.call("POST", f"/clusters/{cluster_id}/credentials", given, status=201)
        credential = Credential(made["username"], made["password"], made["mechanism"])
        return Connection(self.cluster(cluster_id)["bootstrap_servers"], credential)

    def lag(self, cluster_id: str, group: str) -> dict[tuple[str, int], int | None]:
        """Lag in records of each partition that the group has committed."""
        shown = self.call("GET", f"/clusters/{cluster_id}/groups/{group}")
        return {
            (p["topic"], p["partition"]): None if p["lag"] is None else int(p["lag"])
            for p in shown["partitions"]
        }
