"""The worker of outbound calls: a real process with the queue, in a network where nothing else is.

Redis listens on a socket in the file system, which a process reaches from any network.
"""

import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import ip_network

import httpx
import pytest
import yaml
from celery import Celery
from kombu import Connection

from brokers.settings.errors import SettingsError
from console.base.common.models import OutboxEntry
from console.base.common.outbound import enqueue_call
from console.base.common.tenancy import organization_scope
from console.base.outbound.addresses import PUBLIC_IPV6, REFUSED_IPV4, REFUSED_IPV6
from console.base.outbound.calls import CallRules
from console.base.outbound.errors import TooManyCalls
from console.base.outbound.messages import Call, Outcome
from console.base.outbound.names import AddressBook
from console.base.outbound.targets import PORTS
from console.programs.outbound import slots
from console.programs.outbound.caller import Caller, make_caller
from console.programs.outbound.slots import CallSlots
from console.settings.outbound import load_outbound_config
from console.settings.schedule import OUTBOUND_QUEUE, OUTBOUND_TASK, TASK_ROUTES
from tests.imports import ROOT
from tests.isolation.calling import METADATA, NAME, URL
from tests.isolation.hosts import Host, answering, closing_all, ok, silent
from tests.isolation.names import NameServer, make_sockets
from tests.isolation.networks import own_network
from tests.kubernetes import installation
from tests.metrics_page import documented, reported_metrics
from tests.redis import running_redis

PER_ORGANIZATION = 2
# How a worker says that it took a message.
TAKEN = "outbound.call["
WAIT_S = 120
READY = re.compile(r"@\S+ ready\.")
SERVED = re.compile(r"metrics\.served process=outbound address=(\S+)")
REPLY = "tests.take_outcome"


class Worker:
    """The process of the worker, and what is sent to it and comes back."""

    def __init__(self, network, home, queue, mode):
        self.network = network
        self.client = Celery(broker=queue, set_as_current=False)
        self.queue = queue
        command = [sys.executable, "-m", "celery", "--app", "console.programs.outbound.worker"]
        command += ["--quiet", "worker", "--queues", OUTBOUND_QUEUE, "--loglevel", "INFO"]
        self.process = network.run(
            subprocess.Popen,
            [*command, "--without-mingle", "--without-gossip", "--without-heartbeat"],
            cwd=ROOT,
            # All that it gets: no key, no password, no place of a database.
            env={
                "PATH": "/usr/bin:/bin",
                "PYTHONWARNINGS": "ignore:You're running the worker",
                "DJANGO_SETTINGS_MODULE": "console.settings",
                "FRESHET_HOME": str(home),
                "FRESHET_MODE": mode,
                "FRESHET_QUEUE_URL": f"{queue}\n",
                "FRESHET_OUTBOUND_CALLS": str(PER_ORGANIZATION * 4),
                "FRESHET_OUTBOUND_CALLS_PER_ORGANIZATION": str(PER_ORGANIZATION),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self.replies = Connection(queue)
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._ready.wait(WAIT_S), self.lines

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            if READY.search(line):
                self._ready.set()

    def send(self, organization_id, call, **reference):
        """Sends a call as the outbox does."""
        self.client.send_task(
            OUTBOUND_TASK,
            kwargs={
                "organization_id": organization_id,
                "call": call.to_text(),
                "reply": REPLY,
                "reference": "{}" if not reference else f'{{"id": "{reference["id"]}"}}',
            },
            queue=OUTBOUND_QUEUE,
            headers={"request_id": "req_of_the_test"},
        )

    def reply(self):
        """Waits for the next reply; returns its arguments and outcome."""
        with self.replies.SimpleQueue("celery") as queue:
            message = queue.get(timeout=WAIT_S)
            message.ack()
        assert message.headers["task"] == REPLY
        assert message.headers["request_id"] == "req_of_the_test"
        arguments = message.payload[1]
        return arguments, Outcome.from_text(arguments.pop("outcome"))

    def close(self):
        self.process.terminate()
        assert self.process.wait(WAIT_S) == 0, self.lines
        self._reader.join()
        self.process.stderr.close()
        self.replies.close()
        self.client.close()


@pytest.fixture
def network():
    """A network with loopback and the metadata service of a cloud."""
    with own_network([METADATA]) as made:
        yield made


@pytest.fixture
def hosts():
    with closing_all() as made:
        yield made


@pytest.fixture
def start(network, tmp_path):
    """Starts a worker in one mode of the service."""
    workers = []
    with running_redis() as queue:

        def start_worker(mode):
            workers.append(Worker(network, tmp_path, queue, mode))
            return workers[-1]

        yield start_worker
        for worker in workers:
            worker.close()


def serve(network, hosts, script, address="127.0.0.1"):
    listener = network.run(socket.create_server, (address, 0))
    hosts.append(Host(listener, script))
    return hosts[-1], f"http://{address}:{hosts[-1].port}/"


def test_an_outcome_goes_to_the_task_that_was_named(start, network, hosts):
    worker = start("local")
    host, url = serve(network, hosts, answering(ok(b"taken")))
    worker.send("org_1", Call(url, "POST", b"news"), id="whd_7")
    arguments, outcome = worker.reply()
    assert arguments == {"organization_id": "org_1", "id": "whd_7"}
    assert (outcome.answer.status, outcome.answer.body) == (200, b"taken")
    assert host.requests[0].endswith(b"\r\n\r\nnews")

    worker.send("org_1", Call(f"http://{METADATA}/"))
    assert worker.reply()[1].code == "address_invalid"

    (address,) = [match[1] for line in worker.lines if (match := SERVED.search(line))]
    page = network.run(httpx.get, f"http://{address}/metrics", timeout=WAIT_S).text
    assert documented("Outbound worker") == reported_metrics(page)
    assert 'freshet_outbound_call_seconds_count{outcome="answered"} 1.0' in page


def test_in_production_it_needs_no_secret_and_calls_no_private_address(start, network, hosts):
    worker = start("production")
    host, url = serve(network, hosts, answering(ok()))
    worker.send("org_1", Call(url))
    assert worker.reply()[1].code == "address_invalid"
    worker.send("org_1", Call(url.replace("http:", "https:").replace(str(host.port), "443")))
    assert worker.reply()[1].code == "address_not_public"

    udp, tcp = network.run(make_sockets, "127.0.0.1")
    names = NameServer(udp, tcp, lambda *_: [METADATA])
    worker.send("org_1", Call(URL))
    assert worker.reply()[1].code == "address_not_public"
    names.close()
    assert names.questions == [(f"{NAME}.", "A"), (f"{NAME}.", "AAAA")]
    assert host.visits == 0


def test_slow_hosts_of_one_organization_take_no_time_of_others(start, network, hosts):
    worker = start("local")
    slow, slow_url = serve(network, hosts, silent)
    _, url = serve(network, hosts, answering(ok()))
    for number in range(20):
        worker.send("org_hostile", Call(slow_url, timeout_s=30), id=str(number))
    worker.send("org_victim", Call(url))
    refused = []
    arguments, outcome = worker.reply()
    while arguments["organization_id"] == "org_hostile":
        refused.append(outcome)
        arguments, outcome = worker.reply()
    # The victim's answer came while the hostile organization's calls were under way.
    assert outcome.answer.body == b"fine"
    assert slow.visits == PER_ORGANIZATION
    refused += [worker.reply()[1] for _ in range(20 - PER_ORGANIZATION - len(refused))]
    assert {(outcome.code, outcome.retry) for outcome in refused} == {("too_many_calls", True)}
    slow.close()
    rest = [worker.reply()[1].code for _ in range(PER_ORGANIZATION)]
    assert rest == ["connection_failed"] * PER_ORGANIZATION
    # Its places are free again.
    worker.send("org_hostile", Call(url))
    assert worker.reply()[1].answer.status == 200


def test_the_share_of_an_organization_is_one_for_all_workers(start, network, hosts):
    workers = [start("local") for _ in range(2)]
    slow, slow_url = serve(network, hosts, silent)
    _, url = serve(network, hosts, answering(ok()))
    # More than one worker makes at a time, so that both get some.
    for number in range(40):
        workers[0].send("org_hostile", Call(slow_url, timeout_s=30), id=str(number))
    refused = [workers[0].reply()[1] for _ in range(40 - PER_ORGANIZATION)]
    assert {(outcome.code, outcome.retry) for outcome in refused} == {("too_many_calls", True)}
    assert slow.visits == PER_ORGANIZATION
    taken = [sum(TAKEN in line for line in worker.lines) for worker in workers]
    assert min(taken) > 0, taken
    # Others have a share of their own.
    workers[0].send("org_victim", Call(url))
    assert workers[0].reply()[1].answer.body == b"fine"
    slow.close()
    for _ in range(PER_ORGANIZATION):
        assert workers[0].reply()[1].code == "connection_failed"
    workers[0].send("org_hostile", Call(url))
    assert workers[0].reply()[1].answer.status == 200


def test_the_share_of_a_worker_that_died_is_free_again(monkeypatch):
    monkeypatch.setattr(slots, "LASTS_S", 0.01)
    with running_redis() as queue:
        one, other = CallSlots(1, queue), CallSlots(1, queue)
        with one.take("org_1"):
            while True:
                with suppress(TooManyCalls), other.take("org_1"):
                    break


@pytest.mark.django_db
def test_the_outbox_has_what_the_worker_takes(start, network, hosts):
    worker = start("local")
    _, url = serve(network, hosts, answering(ok()))
    with organization_scope("org_1"):
        entry = enqueue_call(
            organization_id="org_1", call=Call(url), reply=REPLY, reference={"id": "whd_7"}
        )
        stored = OutboxEntry.objects.get(pk=entry.pk)
    assert TASK_ROUTES[stored.task] == {"queue": OUTBOUND_QUEUE}
    worker.client.send_task(
        stored.task,
        kwargs=stored.arguments,
        queue=OUTBOUND_QUEUE,
        headers={"request_id": "req_of_the_test"},
    )
    arguments, outcome = worker.reply()
    assert arguments == {"organization_id": "org_1", "id": "whd_7"}
    assert outcome.answer.succeeded


def test_an_organization_never_has_more_calls_than_its_share():
    shares = CallSlots(3, "memory://")
    together = threading.Barrier(8)
    most = []

    def run(organization_id):
        together.wait(WAIT_S)
        for _ in range(200):
            try:
                with shares.take(organization_id):
                    most.append(shares.taken(organization_id))
            except TooManyCalls:
                pass

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, ["org_1", "org_2"] * 4))
    assert max(most) <= 3
    assert shares.taken("org_1") == shares.taken("org_2") == 0
    with shares.take("org_1"), shares.take("org_1"), shares.take("org_1"):
        with pytest.raises(TooManyCalls), shares.take("org_1"):
            pass
        with shares.take("org_2"):
            pass


def test_a_fault_of_the_service_is_an_outcome_too(caplog):
    class Broken(AddressBook):
        def addresses_of(self, *_):
            raise RuntimeError("a fault")

    outcome = Caller(CallRules(names=Broken()), CallSlots(1, "memory://")).make(
        "org_1", Call("https://hooks.example.com/")
    )
    assert (outcome.code, outcome.retry) == ("call_failed", True)
    assert "a fault" in caplog.text
    assert "a fault" not in outcome.detail


def test_settings_of_the_worker_are_those_of_the_service(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(
        'mode = "production"\nsecret_key = "x"\n[web]\nport = 1\n'
        '[outbound]\nrefused_networks = ["11.0.0.0/8"]\n'
    )
    config = load_outbound_config({"FRESHET_HOME": str(tmp_path), "FRESHET_LOG_FORMAT": "json"})
    assert config.outbound.refused_networks == ("11.0.0.0/8",)
    assert config.queue.url == f"redis+socket://{tmp_path}/redis/redis.sock"
    assert (config.local, config.log.format) == (False, "json")
    wrong = load_outbound_config(
        {"FRESHET_HOME": str(tmp_path), "FRESHET_OUTBOUND_REFUSED_NETWORKS": "11.0.0.1/8"}
    )
    with pytest.raises(SettingsError, match=r"outbound\.refused_networks"):
        make_caller(wrong)


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    """What the overlay of production installs."""
    return installation.production(installation.copy(tmp_path_factory.mktemp("kube") / "copy"))


def test_its_pods_reach_names_the_queue_and_the_public_internet_alone(manifests):
    labels = installation.pods_of(manifests)["outbound"]["metadata"]["labels"]
    egress = {
        name: policy["spec"]["egress"]
        for name, policy in installation.of_kind(manifests, "NetworkPolicy").items()
        if "Egress" in policy["spec"]["policyTypes"]
        and selects(policy["spec"]["podSelector"], labels)
        and policy["spec"].get("egress")
    }
    assert set(egress) == {"names", "outbound-calls", "outbound-queue"}
    assert [port["port"] for rule in egress["names"] for port in rule["ports"]] == [53, 53]
    assert [port["port"] for rule in egress["outbound-queue"] for port in rule["ports"]] == [6379]
    (calls,) = egress["outbound-calls"]
    assert {port["port"] for port in calls["ports"]} == PORTS
    blocks = {
        ip_network(peer["ipBlock"]["cidr"]): set(map(ip_network, peer["ipBlock"]["except"]))
        for peer in calls["to"]
    }
    assert blocks == {ip_network("0.0.0.0/0"): set(REFUSED_IPV4), PUBLIC_IPV6: set(REFUSED_IPV6)}


def test_only_its_pods_may_call_out(manifests):
    labels = {
        name: template["metadata"]["labels"]
        for name, template in installation.pods_of(manifests).items()
    }
    policies = installation.of_kind(manifests, "NetworkPolicy")
    allowed = policies["outbound-calls"]["spec"]["podSelector"]
    assert [name for name in labels if selects(allowed, labels[name])] == ["outbound"]


def test_its_pods_hold_the_queue_alone(manifests):
    spec = installation.pods_of(manifests)["outbound"]["spec"]
    text = yaml.safe_dump(spec)
    assert set(re.findall(r"name: (freshet-[a-z]+)", text)) == {
        "freshet-settings",
        "freshet-outbound",
    }
    assert "persistentVolumeClaim" not in text
    assert spec["automountServiceAccountToken"] is False


def selects(selector, labels):
    """Whether a selector of pods selects a pod with these labels."""
    if not selector.get("matchLabels", {}).items() <= labels.items():
        return False
    return all(
        (labels.get(rule["key"]) in rule["values"]) == (rule["operator"] == "In")
        for rule in selector.get("matchExpressions", [])
    )
