"""The command line as an organisation's owner."""

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
    """The environment of somebody who never used the command line."""
    return {"FRESHET_CONFIG": str(tmp_path / "freshet/config.json")}


@pytest.fixture
def transport(cell):
    """The way to the service, with what went through it."""
    return running.DjangoTransport()


@pytest.fixture
def freshet(transport, home, tenant):
    """Runs a command line: `freshet("topic", "list", key=…, given="input")`."""

    def call(*arguments, key=tenant.key, given="", terminal=False, **environment):
        session = Session(
            {**home, "FRESHET_API_KEY": key, **environment},
            make_transport=lambda _: transport,
            pause=lambda _: None,
        )
        return running.run(session, *arguments, given=given, terminal=terminal)

    return call


@pytest.fixture
def scripted(home):
    """Runs a command line against answers that the test gives, and gives what was asked."""

    def call(answers, *arguments, given="", **environment):
        transport = running.ScriptedTransport(list(answers))
        paused: list[float] = []
        session = Session(
            {**home, "FRESHET_API_KEY": "fk_x", "FRESHET_CLUSTER": "cl_x", **environment},
            make_transport=lambda _: transport,
            pause=paused.append,
        )
        said = running.run(session, *arguments, given=given)
        assert transport.answers == []
        return said, transport.requests, paused

    return call
