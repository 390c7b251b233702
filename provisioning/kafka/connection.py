"""How to reach the brokers of one cluster as the control plane's own user."""

from __future__ import annotations

from dataclasses import dataclass, field

SUPER_USER = "__freshet"
# Only for a broker's logs, because any client may choose this id. The meter leaves out our own
# traffic by its principal, which brokers authenticate.
CLIENT_ID = "freshet-console"


@dataclass(frozen=True)
class Connection:
    """The address of a cluster's brokers and the user to log in as. Equal ones share clients.

    `bootstrap` is `host:port,…` of the brokers' internal listener, which no tenant can reach.
    `mechanism` must be SCRAM unless the broker runs on this machine, because the listener has no
    TLS.
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
            # A cached client outlives its broker for a while, and would log that as an error.
            "log_level": 0,
            "log.connection.close": False,
            "socket.connection.setup.timeout.ms": 3_000,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            # KIP-714: brokers here take no clients' telemetry.
            "enable.metrics.push": False,
        }

    def consumer_settings(self, isolation: str) -> dict[str, object]:
        """librdkafka's settings for a consumer with assigned partitions and offsets.

        It joins no group and commits nothing; librdkafka needs a `group.id` nevertheless.
        `isolation`: the isolation level, by Kafka's name.
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
            # For a partition whose batch it cannot decode librdkafka asks for ever more.
            "fetch.max.bytes": 4_194_304,
            "queued.max.messages.kbytes": 16_384,
        }

    def producer_settings(self, timeout_s: float) -> dict[str, object]:
        """librdkafka's settings for an idempotent producer, which never writes a record twice."""
        return self.settings() | {
            "enable.idempotence": True,
            "linger.ms": 0,
            "message.timeout.ms": int(timeout_s * 1000),
            # Java's clients choose the partition in this way, and equal keys must go to the same
            # one.
            "partitioner": "murmur2_random",
        }
