"""Calls to addresses that tenants choose: to hosts that do what hostile ones can, by real sockets.

Each test has a network of its own, with public addresses, private ones and the metadata service of
a cloud, and asks for names at a real DNS server. A limit of time is met by hosts that would
otherwise keep a call for ever, so that no test measures time.
"""

import gzip
import itertools
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.base.outbound.addresses import why_refused
from console.base.outbound.calls import HEAD_BYTES_MAX, CallRules
from console.base.outbound.errors import (
    AddressInvalid,
    AddressNotPublic,
    AnswerInvalid,
    AnswerTooLarge,
    CallTimedOut,
    CertificateRefused,
    ConnectionFailed,
    NameUnresolved,
    Redirected,
    RequestInvalid,
    TlsFailed,
)
from console.base.outbound.messages import Answer, Call, Outcome
from console.base.outbound.targets import parse_target
from tests.isolation.calling import (
    METADATA,
    METADATA_IPV6,
    NAME,
    OTHER_NAME,
    PRIVATE,
    PUBLIC,
    PUBLIC_IPV6,
    PUBLIC_TOO,
    REFUSED_NETWORKS,
    URL,
    internet,
    make_authority,
)
from tests.isolation.hosts import (
    announcing,
    answering,
    flooding,
    ok,
    silent,
    taking_nothing,
    trickling,
)
from tests.kubernetes.pki import Authority

SHORT_S = 2.0
KIB = 1024
MIB = 1024 * KIB


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """The authority that calls trust."""
    return make_authority(tmp_path_factory.mktemp("authority") / "pki")


@pytest.fixture
def net(authority):
    """A network of its own, in which every name has one public address."""
    with internet(authority) as made:
        yield made


REFUSED = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1"),  # noqa: S104 (called)
    "100.127.255.255",
    *("127.0.0.1", "127.1.2.3", "169.254.0.1", METADATA, "172.16.0.1", "172.31.255.255"),
    *("192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255"),
    *("198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
    *("255.255.255.255", "168.63.129.16", "100.100.100.200"),
    *("::", "::1", "::ffff:11.22.33.44", "::ffff:169.254.169.254", "::11.22.33.44"),
    *("64:ff9b::b16:212c", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1"),
    *("2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:b16:212c::1", "3fff::1"),
    *("5f00::1", "fc00::1", "fd12:3456::1", METADATA_IPV6, "fe80::1", "fec0::1", "ff02::1"),
    *("ff0e::1", "4000::1"),
]


@pytest.mark.parametrize("address", REFUSED)
def test_names_of_addresses_that_are_not_public_are_refused(net, address):
    hosts = [net.serve(answering(ok()), own) for own in (METADATA, METADATA_IPV6, PRIVATE)]
    net.resolve(address)
    with pytest.raises(AddressNotPublic) as caught:
        net.call()
    assert address not in caught.value.detail
    # The same address beside a public one, in either order of the answers.
    for addresses in ([PUBLIC, address], [address, PUBLIC_IPV6]):
        net.resolve(*addresses)
        with pytest.raises(AddressNotPublic):
            net.call()
    assert [host.visits for host in hosts] == [0, 0, 0]


@pytest.mark.parametrize("address", REFUSED)
def test_addresses_that_are_not_public_are_refused_as_such(net, address):
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(AddressNotPublic):
        net.call(f"https://{host}/latest/meta-data/")
    assert net.names.questions == []


def test_an_absent_name_looks_like_one_of_the_inside(net):
    details = []
    for addresses, net.names.all_exist in (([], False), ([], True), ([PRIVATE], False)):
        net.resolve(*addresses)
        with pytest.raises(AddressNotPublic) as caught:
            net.call()
        details.append((caught.value.code, caught.value.detail))
    assert details[0] == details[1] == details[2]


@given(st.ip_addresses())
def test_no_address_is_called_that_python_holds_for_local(address):
    if not why_refused(address):
        assert address.is_global
        assert not address.is_multicast


@given(st.ip_addresses(v=4))
def test_no_address_of_ipv4_is_called_in_the_form_of_ipv6(address):
    number = int(address)
    embedded = [
        IPv6Address(number),
        IPv6Address((0xFFFF << 32) + number),
        IPv6Address((0x64FF9B << 96) + number),
        IPv6Address((0x2002 << 112) + (number << 80)),
        IPv6Address((0x20010000 << 96) + (number ^ 0xFFFFFFFF)),
    ]
    assert all(why_refused(form) for form in embedded)


@pytest.mark.parametrize("address", [PUBLIC, PUBLIC_IPV6])
def test_a_public_host_is_called_by_its_name(net, address):
    host = net.serve(answering(ok(b"hello", b"X-Own: yes")), address)
    net.resolve(address)
    answer = net.call(
        f"{URL}in/b%C3%BCcher ü?a=b&c".replace(" ", "%20"),
        method="POST",
        body=b"{}",
        headers={"X-Signature": "abc", "Content-Type": "application/json"},
    )
    assert answer == Answer(200, (("content-length", "5"), ("x-own", "yes")), b"hello")
    assert answer.succeeded
    assert host.server_names == [NAME]
    head, _, body = host.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /in/b%C3%BCcher%20%C3%BC?a=b&c HTTP/1.1"
    assert set(lines[1:]) == {
        f"Host: {NAME}",
        "User-Agent: Freshet",
        "Accept-Encoding: identity",
        "Connection: close",
        "Content-Length: 2",
        "X-Signature: abc",
        "Content-Type: application/json",
    }
    assert body == b"{}"


def test_a_public_address_is_called_as_such(net):
    net.serve(answering(ok()))
    host = net.serve(answering(ok()), PUBLIC_IPV6, 8443)
    assert net.call(f"https://{PUBLIC}/").succeeded
    assert net.call(f"https://[{PUBLIC_IPV6}]:8443/").succeeded
    assert f"Host: [{PUBLIC_IPV6}]:8443".encode() in host.requests[0]


def test_a_name_of_another_script_is_called_in_ascii(net):
    host = net.serve(answering(ok()))
    assert net.call("https://Bücher。EXAMPLE.com./").succeeded
    assert host.server_names == ["xn--bcher-kva.example.com"]
    assert {name for name, _ in net.names.questions} == {"xn--bcher-kva.example.com."}


def test_another_address_of_the_host_is_tried(net):
    host = net.serve(answering(ok()), PUBLIC_IPV6)
    net.resolve(PUBLIC, PUBLIC_IPV6)
    assert net.call().succeeded
    assert host.visits == 1


def test_networks_that_the_installation_names_are_refused(net):
    host = net.serve(answering(ok()), PUBLIC_TOO)
    net.resolve(PUBLIC_TOO)
    rules = CallRules(authorities=net.rules.authorities, refused=REFUSED_NETWORKS)
    with pytest.raises(AddressNotPublic):
        net.call(rules=rules)
    assert host.visits == 0
    assert net.call().succeeded


@pytest.mark.parametrize("later", [METADATA, PRIVATE, "127.0.0.1", METADATA_IPV6])
def test_a_name_that_changes_is_asked_for_once(net, later):
    inside = [net.serve(answering(ok(b"secret")), own) for own in (METADATA, PRIVATE)]
    outside = net.serve(answering(ok()))
    net.names.zone = lambda _, asked: [PUBLIC] if asked == 0 else [later]
    assert net.call().body == b"fine"
    assert net.names.questions == [(f"{NAME}.", "A"), (f"{NAME}.", "AAAA")]
    assert outside.visits == 1
    # The next call asks anew, and judges anew.
    with pytest.raises(AddressNotPublic):
        net.call()
    assert outside.visits == 1
    assert [host.visits for host in inside] == [0, 0]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location", [f"http://{METADATA}/latest/", f"https://{OTHER_NAME}/", "/elsewhere", ""]
)
def test_redirects_are_named_and_not_followed(net, status, location):
    inside = net.serve(answering(ok(b"secret")), METADATA, 80, certificate=None)
    redirect = f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    host = net.serve(answering(redirect.encode()))
    with pytest.raises(Redirected, match="redirects are not followed") as caught:
        net.call()
    assert location in caught.value.detail
    assert (host.visits, inside.visits) == (1, 0)


def test_other_statuses_are_answers(net):
    net.serve(answering(b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nsick"))
    answer = net.call()
    assert (answer.status, answer.body, answer.succeeded) == (500, b"sick", False)


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "script",
    [
        silent,
        trickling(b"", b"H"),
        trickling(HEAD, b"X: y\r\n"),
        trickling(HEAD + b"X: ", b"y"),
        trickling(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        trickling(HEAD + b"Content-Length: 1000\r\n\r\n", b"x"),
        trickling(HEAD + b"\r\n", b"x"),
        trickling(CHUNKED, b"1\r\nx\r\n"),
        trickling(CHUNKED + b"0\r\n", b"X: y\r\n"),
    ],
    ids=[
        *("nothing", "no status", "endless headers", "endless header", "only informational"),
        *("body of a length", "body without a length", "chunks", "trailers"),
    ],
)
def test_a_slow_answer_ends_with_the_call(net, script):
    host = net.serve(script)
    with pytest.raises(CallTimedOut, match=r"given up after 2 s"):
        net.call(timeout_s=SHORT_S)
    assert host.visits == 1


def test_a_host_that_takes_no_request_ends_with_the_call(net):
    net.network.shrink_buffers(16 * 1024)
    net.serve(taking_nothing)
    with pytest.raises(CallTimedOut, match="while the host took the request"):
        net.call(timeout_s=SHORT_S, method="POST", body=bytes(256 * KIB))


def test_a_host_that_never_agrees_on_encryption_ends_with_the_call(net):
    net.serve(taking_nothing, certificate=None)
    with pytest.raises(CallTimedOut, match="while it agreed on encryption"):
        net.call(timeout_s=SHORT_S)


def test_a_host_that_accepts_no_connection_ends_with_the_call(net):
    full = net.listen(PUBLIC, 443, backlog=0)
    with (
        full,
        net.network.run(socket.create_connection, (PUBLIC, 443)),
        pytest.raises(CallTimedOut, match="while it connected"),
    ):
        net.call(timeout_s=SHORT_S)


def test_an_address_that_accepts_no_connection_leaves_time_for_the_next(net):
    net.serve(answering(ok()), PUBLIC_IPV6)
    net.resolve(PUBLIC, PUBLIC_IPV6)
    full = net.listen(PUBLIC, 443, backlog=0)
    with full, net.network.run(socket.create_connection, (PUBLIC, 443)):
        assert net.call(timeout_s=4.0).succeeded


def test_name_servers_that_do_not_answer_end_with_the_call(net):
    net.names.broken = lambda _: None
    with pytest.raises(CallTimedOut, match="while it asked for the addresses"):
        net.call(timeout_s=SHORT_S)


@pytest.mark.parametrize(
    "broken",
    [
        lambda answer: answer[:3] + b"\x82" + answer[4:],
        lambda answer: answer[:3] + b"\x85" + answer[4:],
    ],
    ids=["SERVFAIL", "REFUSED"],
)
def test_name_servers_that_fail_are_named(net, broken):
    net.names.broken = broken
    with pytest.raises(NameUnresolved) as caught:
        net.call()
    assert caught.value.retry


def test_a_name_has_a_bounded_number_of_addresses(net):
    net.resolve(*(str(IPv4Address(PUBLIC) + number) for number in range(33)))
    with pytest.raises(NameUnresolved, match="more than 32 addresses"):
        net.call()


def test_a_long_answer_of_the_name_server_comes_over_tcp(net):
    net.serve(answering(ok()))
    net.names.truncated = True
    assert net.call().succeeded
    assert net.names.over_tcp == 2


@pytest.mark.parametrize(
    ("start", "piece", "part"),
    [
        (HEAD + b"\r\n", bytes(4096), "body"),
        (HEAD + b"Content-Length: 1000000000000\r\n\r\n", bytes(4096), "body"),
        (CHUNKED, b"1000\r\n" + bytes(4096) + b"\r\n", "body"),
        (CHUNKED, b"1\r\nx\r\n", "body"),
        (CHUNKED + b"0\r\n", b"X: y\r\n", "body"),
        (HEAD, b"X: y\r\n", "head"),
        (HEAD + b"X: ", b"y" * 4096, "head"),
        (b"HTTP/1.1 200 ", b"O" * 4096, "head"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", "head"),
    ],
    ids=[
        *("without a length", "with a length", "chunks", "small chunks", "trailers"),
        *("headers", "one header", "reason", "informational"),
    ],
)
def test_an_endless_answer_ends_at_its_size(net, start, piece, part):
    net.serve(flooding(start, piece))
    with pytest.raises(AnswerTooLarge, match=f"The {part} of the answer is larger than"):
        net.call(max_bytes=4000)


def test_an_endless_extension_of_a_chunk_is_not_read(net):
    net.serve(flooding(CHUNKED + b"1;", b"x" * 4096))
    with pytest.raises((AnswerInvalid, AnswerTooLarge)):
        net.call()


def test_an_answer_may_have_as_many_bytes_as_the_call_takes(net):
    for framed in (
        ok(b"x" * 4000),
        HEAD + b"\r\n" + b"x" * 4000,
        CHUNKED + b"fa0\r\n" + b"x" * 4000 + b"\r\n0\r\n\r\n",
    ):
        host = net.serve(answering(framed))
        assert net.call(max_bytes=4000).body == b"x" * 4000
        with pytest.raises(AnswerTooLarge, match="larger than 3999 bytes"):
            net.call(max_bytes=3999)
        host.close()


def test_a_head_may_have_as_many_bytes_as_is_said(net):
    filler = HEAD_BYTES_MAX - len(ok(b"", b"X: "))
    net.serve(answering(ok(b"", b"X: " + b"y" * filler)))
    assert len(dict(net.call().headers)["x"]) == filler


def test_a_compressed_answer_stays_compressed(net):
    bomb = gzip.compress(bytes(64 * MIB))
    net.serve(answering(ok(bomb, b"Content-Encoding: gzip")))
    answer = net.call(max_bytes=MIB)
    assert len(bomb) < MIB
    assert answer.body == bomb
    assert dict(answer.headers)["content-encoding"] == "gzip"


@pytest.mark.parametrize("certificate", ["of-another", "named-by-subject", "of-clients"])
def test_a_certificate_of_another_is_refused(net, certificate):
    host = net.serve(answering(ok()), certificate=certificate)
    with pytest.raises(CertificateRefused, match="The certificate of the host is refused"):
        net.call()
    assert host.requests == []


def test_an_unknown_authority_is_refused(net, tmp_path):
    other = Authority(tmp_path / "other")
    other.issue("host", "/CN=host", usage="serverAuth", names=(f"DNS:{NAME}",))
    host = net.serve(answering(ok()), authority=other)
    with pytest.raises(CertificateRefused):
        net.call()
    net.serve(answering(ok()), PUBLIC_TOO)
    net.resolve(PUBLIC_TOO)
    # By the public authorities, which production trusts, neither counts.
    with pytest.raises(CertificateRefused):
        net.call(rules=CallRules())
    assert host.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
        b"220 mail.example.com ESMTP\r\n250 fine\r\n\r\n",
        b"+PONG\r\n\r\n",
        b"<html>HTTP/0.9</html>\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        CHUNKED + b"zz\r\nhello\r\n",
        CHUNKED + b"1\r\nhello\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
        bytes(range(256)) + b"\r\n\r\n",
    ],
)
def test_what_is_not_http_is_no_answer(net, answer):
    net.serve(answering(answer))
    with pytest.raises(AnswerInvalid):
        net.call()


@pytest.mark.parametrize(
    "answer", [b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\nhello", CHUNKED + b"5\r\nhel"]
)
def test_an_answer_that_breaks_off_is_no_answer(net, answer):
    net.serve(answering(answer))
    with pytest.raises(ConnectionFailed, match="closed the connection") as caught:
        net.call()
    assert caught.value.retry


@pytest.mark.parametrize("banner", [b"SSH-2.0-OpenSSH_9.9\r\n", ok(), b"-ERR\r\n", bytes(100)])
def test_a_port_without_encryption_is_named(net, banner):
    net.serve(announcing(banner), certificate=None)
    with pytest.raises(TlsFailed, match="while it agreed on encryption"):
        net.call()


def test_a_port_that_nobody_listens_on_is_named(net):
    with pytest.raises(ConnectionFailed, match="connection refused"):
        net.call()


def test_no_variable_sends_a_call_elsewhere(net, monkeypatch):
    proxy = net.serve(answering(ok(b"proxied")), PUBLIC_TOO, 3128, certificate=None)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://{PUBLIC_TOO}:3128")
    net.serve(answering(ok()))
    assert net.call().body == b"fine"
    assert proxy.visits == 0


def test_nothing_of_a_call_is_kept_for_the_next(net):
    host = net.serve(answering(ok(b"", b"Set-Cookie: id=1; Path=/", b"Connection: keep-alive")))
    net.call()
    net.call()
    assert host.visits == 2
    assert not any(b"cookie" in head.lower() for head in host.requests)


INVALID = [
    "",
    "hooks.example.com",
    "//hooks.example.com/",
    "https:hooks.example.com",
    "https:///path",
    "http://hooks.example.com/",
    "ftp://hooks.example.com/",
    "file:///etc/passwd",
    "gopher://hooks.example.com/",
    "https://user@hooks.example.com/",
    "https://user:password@hooks.example.com/",
    "https://hooks.example.com@169.254.169.254/",
    "https://hooks.example.com:80@10.0.0.1/",
    "https://hooks.example.com/#fragment",
    "https://hooks.example.com#@10.0.0.1/",
    "https://hooks.example.com\\@10.0.0.1/",
    "https://hooks.example.com/ x",
    "https://hooks.example.com/\r\nX: y",
    "https://hooks.example.com/\ud800",
    "\thttps://hooks.example.com/",
    "https://hooks.example.com:22/",
    "https://hooks.example.com:0/",
    "https://hooks.example.com:99999/",
    "https://hooks.example.com:-1/",
    "https://hooks.example.com:x/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://127.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.1.5/",
    "https://１２７.1/",
    "https://[::1/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[127.0.0.1]/",
    "https://[v1.x]/",
    "https://hooks..example.com/",
    "https://-hooks.example.com/",
    "https://hooks_1.example.com/",
    "https://%68ooks.example.com/",
    "https://hooks.example.com%2f@10.0.0.1/",
    f"https://{'a' * 64}.example.com/",
    f"https://hooks.example.com/{'a' * 2048}",
]


@pytest.mark.parametrize("url", INVALID)
def test_an_address_that_can_be_read_in_two_ways_is_refused(net, url):
    with pytest.raises(AddressInvalid):
        net.call(url)
    assert net.names.questions == []


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST.", "a.localhost", "intranet", "postgres"),
        *("web.freshet-system.svc.cluster.local", "metadata.google.internal", "x.internal."),
        *("printer.local", "1.0.0.127.in-addr.arpa", "x.onion", "x.test"),
    ],
)
def test_names_of_the_inside_are_not_even_asked_for(net, host):
    net.resolve(PUBLIC)
    with pytest.raises(AddressNotPublic):
        net.call(f"https://{host}/")
    assert net.names.questions == []


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text):
    for url in (text, f"https://{text}", f"https://{text}.example.com/", f"{URL}{text}"):
        try:
            target = parse_target(url)
        except (AddressInvalid, AddressNotPublic):
            continue
        assert target.scheme == "https"
        assert target.port in {443, 8443}
        assert target.path.startswith("/")
        assert (target.host + target.path).isascii()
        assert not set("\r\n @\\#") & set(target.path + target.host) - {"@"}


@pytest.mark.parametrize(
    "call",
    [
        {"method": "DELETE"},
        {"method": "GET\r\nX: y"},
        {"body": b"x"},
        {"method": "POST", "body": bytes(256 * KIB + 1)},
        {"timeout_s": 0},
        {"timeout_s": 31},
        {"timeout_s": float("nan")},
        {"max_bytes": -1},
        {"max_bytes": MIB + 1},
        {"headers": {"Host": "169.254.169.254"}},
        {"headers": {"transfer-encoding": "chunked"}},
        {"headers": {"Content-Length": "0"}},
        {"headers": {"Proxy-Authorization": "x"}},
        {"headers": {"X": "a\r\nHost: b"}},
        {"headers": {"X": "a\n"}},
        {"headers": {"X": " a"}},
        {"headers": {"X": "ü"}},
        {"headers": {"X": "a" * 5000}},
        {"headers": {"X: y\r\nHost": "b"}},
        {"headers": {"": "b"}},
        {"headers": {f"X-{number}": "a" for number in range(31)}},
    ],
)
def test_a_request_that_would_be_read_in_two_ways_is_refused(net, call):
    host = net.serve(answering(ok()))
    with pytest.raises(RequestInvalid):
        net.call(**call)
    assert host.visits == 0


def local(net):
    return CallRules(local=True, authorities=net.rules.authorities)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_local_mode_calls_its_own_machine(net, host):
    own = net.serve(answering(ok()), host.strip("[]").replace("localhost", "127.0.0.1"), 8080,
                    certificate=None)  # fmt: skip
    assert net.call(f"http://{host}:8080/", rules=local(net)).succeeded
    with pytest.raises((AddressNotPublic, AddressInvalid)):
        net.call(f"http://{host}:8080/")
    assert own.visits == 1


def test_local_mode_calls_its_own_machine_with_encryption(net):
    net.serve(answering(ok()), "127.0.0.1", 9999)
    assert net.call("https://localhost:9999/", rules=local(net)).succeeded
    assert net.call("https://127.0.0.1:9999/", rules=local(net)).succeeded


@pytest.mark.parametrize(
    "url",
    [
        *(f"http://{METADATA}/", f"https://{METADATA}/", f"https://{PRIVATE}/"),
        *("http://hooks.example.com/", "https://hooks.example.com:22/", "https://0.0.0.0/"),
    ],
)
def test_local_mode_refuses_all_else_that_production_does(net, url):
    hosts = [net.serve(answering(ok()), address) for address in (METADATA, PRIVATE)]
    with pytest.raises((AddressNotPublic, AddressInvalid)):
        net.call(url, rules=local(net))
    assert [host.visits for host in hosts] == [0, 0]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", PRIVATE, METADATA])
def test_a_name_is_no_way_to_the_own_machine_in_local_mode_either(net, address):
    net.resolve(address)
    with pytest.raises(AddressNotPublic):
        net.call(rules=local(net))


def test_messages_are_read_as_they_were_written():
    call = Call(URL, "POST", bytes(range(256)), {"X": "y"}, 3.5, 10)
    assert Call.from_text(call.to_text()) == call
    answer = Outcome(Answer(200, (("x", "y"), ("x", "z")), bytes(range(256))))
    failure = Outcome.of_error(CallTimedOut("late"))
    assert (failure.code, failure.detail, failure.retry) == ("timed_out", "late", True)
    for outcome in (answer, failure):
        assert Outcome.from_text(outcome.to_text()) == outcome


def test_all_refused_addresses_are_of_a_kind_of_their_own():
    assert len(set(REFUSED)) == len(REFUSED)
    assert all(why_refused(ip_address(address)) for address in REFUSED)
    public = (PUBLIC, PUBLIC_TOO, PUBLIC_IPV6, "1.1.1.1", "2606:4700::1111")
    assert not any(why_refused(ip_address(address)) for address in itertools.chain(public))
