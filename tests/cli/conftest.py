"""Fixtures: the command line as an organization's owner runs it."""

import pytest

from console.programs.cli.session import Session
from tests.cli import running
from tests.console import conftest as console
from tests.provisioning.control import conftest as control

tenant, other_tenant, api = console.tenant, console.other_tenant, console.api
cell, meters, reconcile = control.cell, control.meters, control.reconcile
make_cluster, cluster_id = control.make_cluster, control.cluster_id


@pytest.fixture
def home(tmp_path):
    """The environment of a person who has no profiles yet."""
    return {"FRESHET_CONFIG": str(tmp_path / "freshet/config.json")}


@pytest.fixture
def transport(cell):
    """The transport to the service, which records its requests."""
    return running.DjangoTransport()


@pytest.fixture
def freshet(transport, home, tenant):
    """Returns a function that runs a command line: `freshet("topic", "list", stdin_text="…")`."""

    def run_line(*arguments, key=tenant.key, stdin_text="", terminal=False, **environment):
        session = Session(
            {**home, "FRESHET_API_KEY": key, **environment},
            make_transport=lambda _: transport,
            pause=lambda _: None,
        )
        return running.run_freshet(session, *arguments, stdin_text=stdin_text, terminal=terminal)

    return run_line


@pytest.fixture
def scripted(home):
    """Returns a function that runs a command line against scripted answers.

    It returns the result, the requests that were sent, and the pauses between them in seconds.
    """

    def run_line(answers, *arguments, stdin_text="", **environment):
        transport = running.ScriptedTransport(list(answers))
        paused: list[float] = []
        session = Session(
            {**home, "FRESHET_API_KEY": "fk_x", "FRESHET_CLUSTER": "cl_x", **environment},
            make_transport=lambda _: transport,
            pause=paused.append,
        )
        result = running.run_freshet(session, *arguments, stdin_text=stdin_text)
        assert transport.answers == []
        return result, transport.requests, paused

    return run_line
