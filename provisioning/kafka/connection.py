"""How to reach the brokers of one cluster as the control plane's own user."""

from __future__ import annotations

from dataclasses import dataclass, field

SUPER_USER = "__freshet"
# For a broker's logs: any client may choose this id. What the meter leaves out is told by the
# principal, which brokers authenticate.
CLIENT_ID = "freshet-console"


@dataclass(frozen=True)
class Connection:
    """Brokers and the user to be there. Equal connections share clients.

    `bootstrap` is `host:port,…` of the brokers' internal listener, which is in no tenant's reach.
    Of `mechanism` only SCRAM is right where the way to the broker is not the machine's own.
    """

    bootstrap: str
    password: str = field(repr=False)
    username: str = SUPER_USER
    mechanism: str = "SCRAM-SHA-512"

    def settings(self) -> dict[str, object]:
        """librdkafka's settings for any client on this connection."""
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": CLIENT_ID,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.username,
            "sasl.password": self.password,
            # A cached client outlives its broker for a while; what it thinks of that is no news.
            "log_level": 0,
            "log.connection.close": False,
            "socket.connection.setup.timeout.ms": 3_000,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            # KIP-714: brokers here take no clients' telemetry.
            "enable.metrics.push": False,
        }

    def consumer_settings(self, isolation: str) -> dict[str, object]:
        """Of a consumer that is given its partitions and offsets: it joins no group, commits
        nothing. The group's name is only there because librdkafka asks for one.
        """
        return self.settings() | {
            "group.id": CLIENT_ID,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
            "fetch.message.max.bytes": 262_144,
            "queued.max.messages.kbytes": 16_384,
        }

    def producer_settings(self, timeout_s: float) -> dict[str, object]:
        """Of a producer whose records reach the log once, or are known not to have."""
        return self.settings() | {
            "enable.idempotence": True,
            "linger.ms": 0,
            "message.timeout.ms": int(timeout_s * 1000),
            # Where records without a partition go is where Java's clients would send them.
            "partitioner": "murmur2_random",
        }
