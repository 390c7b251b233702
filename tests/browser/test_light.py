"""What pages take over the network: the overview with nothing kept, and an open page later on."""

from __future__ import annotations

from tests.browser.visitor import CLUSTER

FILES_MAX = 20
BYTES_MAX = 250 * 1024
# Shorter answers fit into a packet, and are sent as they are.
SHORT_BYTES = 1_000


class Traffic:
    """What a page asks for from now on, with its bytes as they were sent."""

    def __init__(self, page):
        self.answers = {}
        self.bytes = {}
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        session.on("Network.responseReceived", self._answered)
        session.on("Network.loadingFinished", self._finished)

    def _answered(self, event):
        self.answers[event["requestId"]] = event["response"]

    def _finished(self, event):
        self.bytes[event["requestId"]] = event["encodedDataLength"]

    def finished(self, *, of_api):
        """Lists (address, encoding, bytes) of what has arrived: of the API, or of files."""
        return [
            (
                self.answers[number]["url"],
                {k.lower(): v for k, v in self.answers[number]["headers"].items()}.get(
                    "content-encoding"
                ),
                size,
            )
            for number, size in self.bytes.items()
            if number in self.answers
            and ("/api/" in self.answers[number]["url"]) == of_api
            and not self.answers[number]["url"].endswith("/readyz")
        ]


def test_the_overview_is_light(people, account):
    with people(account) as visitor:
        traffic = Traffic(visitor.page)
        visitor.open("/")
        visitor.sees(CLUSTER)
        visitor.sees("This month")
        visitor.page.wait_for_load_state("load")
        files, reads = traffic.finished(of_api=False), traffic.finished(of_api=True)
        sizes = [size for _, _, size in files]
        assert 0 < len(files) <= FILES_MAX, files
        assert 0 < sum(sizes) <= BYTES_MAX, files
        assert reads != []
        for address, encoding, size in files:
            # The page itself is compressed when it is asked for.
            expected = "br" if "/assets/" in address else "gzip"
            assert encoding == expected or size < SHORT_BYTES, (address, encoding, size)
        for address, encoding, size in reads:
            assert encoding == "gzip" or size < 2 * SHORT_BYTES, (address, encoding, size)


def test_an_open_page_is_notified_of_changes_and_asks_for_nothing_else(visitor):
    page = visitor.page
    with page.expect_response(lambda answer: "/api/v1/watch?" in answer.url) as stream:
        visitor.open("/access/projects")
    assert stream.value.status == 200
    visitor.sees("Projects")
    reads = []
    page.on("request", lambda request: reads.append(request.url))
    # Asking by itself, it would read its clusters every two seconds, and the rest every ten.
    page.wait_for_timeout(11_000)
    assert [address for address in reads if "/api/v1/projects" in address] == []
    assert len(reads) < 5, reads
    visitor.change("POST", "/projects", {"name": "Made elsewhere"})
    visitor.sees("Made elsewhere")
