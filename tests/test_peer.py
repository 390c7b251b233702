"""The peer itself: it starts, takes records, and ends what it began."""

from pathlib import Path

from tests.peer.kafka import Peer, java_tool


def test_peer_serves_and_ends_with_its_processes():
    topics = "org.apache.kafka.tools.TopicCommand"
    with Peer("kafka1") as peer:
        pids, folder = peer.pids, peer.folder
        java_tool(topics, "--bootstrap-server", peer.bootstrap, "--create", "--topic", "seen")
        listing = java_tool(topics, "--bootstrap-server", peer.bootstrap, "--list")
        assert "seen" in listing.stdout.split()
    assert not folder.exists()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
