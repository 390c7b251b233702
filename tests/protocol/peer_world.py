"""Apache Kafka with the same content, users and rights as our broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.peer.kafka import Peer
from tests.protocol.codec import Codec
from tests.protocol.running import NOBODY, ROOT
from tests.protocol.schemas import error_names, load_schemas
from tests.protocol.world import Account, Place, World

INTERNAL = Account("admin", "password-of-admin")


class GuardedPeer(Peer):
    """One broker whose clients authenticate, and may do what ACLs say."""

    def _properties(self, node: int) -> str:
        users = " ".join(
            f'user_{account.user}="{account.password}"' for account in (ROOT, NOBODY, INTERNAL)
        )
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        login = f'username="{INTERNAL.user}" password="{INTERNAL.password}" {users}'
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
        listener = "listener.name.plaintext"
        properties = {
            # Of two lines with the same name the last one counts.
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            f"{listener}.plain.sasl.jaas.config": f"{module} required {login};",
            f"{listener}.scram-sha-256.sasl.jaas.config": f"{scram} required;",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # The controller's listener, on the loopback, knows nobody's name.
            "super.users": f"User:{ROOT.user};User:{INTERNAL.user};User:ANONYMOUS",
        }
        lines = "".join(f"{name}={value}\n" for name, value in properties.items())
        return super()._properties(node) + lines


@contextmanager
def running_peer_world(folder: Path) -> Iterator[World]:
    """Apache Kafka with content."""
    codec = Codec(load_schemas(), error_names())
    with GuardedPeer("kafka1", folder=folder) as peer:
        world = World(Place(peer.bootstrap, codec, ROOT, NOBODY, is_immediate=False))
        world.prepare()
        yield world
        world.close()
