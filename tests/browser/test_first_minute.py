"""The first minute: a program with a credential of its own, and steps that the service follows."""

import re
import secrets

import pytest
from playwright.sync_api import expect

from tests.browser.clients import python_program
from tests.browser.visitor import TIMEOUT_MS, TOPIC
from tests.service.test_tutorial import program_of_the_lesson

FIRST_NAME = "first-steps"
GROUPS = ("python-group", "java-group", "node-group", "go-group", "kcat-group")
# The whole page is loaded, topics and steps are read, and what depends on them is done.
SETTLED_MS = 2_000


def section(visitor, name):
    """A part of the page, by its title."""
    return visitor.page.get_by_role("region", name=name, exact=True)


def step(within, number):
    """A line of the first steps."""
    return within.get_by_role("list", name="First steps").get_by_role("listitem").nth(number)


def program_in(within):
    """The program in Python that is shown without choosing a language."""
    return within.get_by_test_id("code freshet.py").inner_text().replace("\u00a0", " ")


def credentials_of(visitor, cluster):
    return visitor.read(f"/clusters/{cluster}/credentials")["items"]


@pytest.fixture
def newcomer(people):
    """Somebody who has just signed up, at the overview, with the first cluster."""
    with people() as visitor:
        email = f"ada@{secrets.token_hex(4)}.example"
        visitor.sign_up("First minute", email, "correct horse battery")
        visitor.wait_for_first_cluster()
        yield visitor
        for cluster in visitor.read("/clusters")["items"]:
            visitor.change("POST", f"/clusters/{cluster['id']}:suspend")


def test_one_program_is_the_first_minute(newcomer, tmp_path):
    (cluster,) = [item["id"] for item in newcomer.read("/clusters")["items"]]
    part = section(newcomer, "Connect to first-cluster")
    # Nobody pressed anything.
    expect(part).to_contain_text("It may do what the snippets do", timeout=TIMEOUT_MS)
    expect(step(part, 0)).to_contain_text("Done", timeout=TIMEOUT_MS)
    for number in (1, 2):
        expect(step(part, number)).to_contain_text("To do")
    program = program_in(part)
    (credential,) = credentials_of(newcomer, cluster)
    assert (credential["name"], credential["role"]) == (FIRST_NAME, "none")
    may_do_what_it_does(newcomer, cluster, credential)
    is_the_lessons(program, credential["username"])
    with python_program(program, tmp_path) as running:
        assert running.wait_for_line("hello from Python") == "0 3 hello from Python"
        for number in range(3):
            expect(step(part, number)).to_contain_text("Done", timeout=TIMEOUT_MS)
    newcomer.page.reload()
    newcomer.sees("This month")
    newcomer.page.wait_for_timeout(SETTLED_MS)
    expect(part).to_have_count(0)
    assert len(credentials_of(newcomer, cluster)) == 1


def may_do_what_it_does(visitor, cluster, credential):
    """Checks that the credential has rights on the topic and the snippets' groups alone."""
    rules = visitor.read(f"/clusters/{cluster}/acls?principal=User:{credential['username']}")
    assert {
        (rule["operation"], rule["resource_type"], rule["resource_name"], rule["pattern_type"])
        for rule in rules["items"]
    } == {
        ("WRITE", "TOPIC", TOPIC, "LITERAL"),
        ("READ", "TOPIC", TOPIC, "LITERAL"),
        *(("READ", "GROUP", group, "LITERAL") for group in GROUPS),
    }


def is_the_lessons(program, username):
    """Checks that the tutorial prints this program, but for the address and the credential."""
    own = re.sub(r'("bootstrap.servers": )"[^"]+"', r'\1"127.0.0.1:9092"', program)
    own = re.sub(r'("sasl.password": )"[^"]+"', r'\1"PASSWORD"', own)
    own = own.replace(f'"{username}"', '"USERNAME"')
    assert own.strip() == program_of_the_lesson().strip()


def test_a_second_cluster_has_steps_of_its_own(newcomer):
    newcomer.change("POST", "/clusters", {"name": "second", "region": "local"})
    newcomer.open("/")
    part = section(newcomer, "Connect to second")
    expect(part).to_contain_text("The cluster has no topic yet", timeout=TIMEOUT_MS)
    # The first cluster's are left, and stay.
    expect(step(section(newcomer, "First steps with first-cluster"), 1)).to_contain_text("To do")
    cluster = next(
        item["id"] for item in newcomer.read("/clusters")["items"] if item["name"] == "second"
    )
    assert credentials_of(newcomer, cluster) == []
    newcomer.change("POST", f"/clusters/{cluster}/topics", {"name": "orders", "partitions": 1})
    expect(part).to_contain_text("It may do what the snippets do", timeout=TIMEOUT_MS)
    expect(step(part, 0)).to_contain_text("Done", timeout=TIMEOUT_MS)
    (credential,) = credentials_of(newcomer, cluster)
    assert f'"{credential["username"]}"' in program_in(part)
    # A later visit makes no other one, and says how to get one.
    newcomer.page.reload()
    expect(part.get_by_role("button", name="Create a credential and fill it in")).to_be_visible(
        timeout=TIMEOUT_MS
    )
    newcomer.page.wait_for_timeout(SETTLED_MS)
    assert '"PASSWORD"' in program_in(part)
    assert [item["id"] for item in credentials_of(newcomer, cluster)] == [credential["id"]]
