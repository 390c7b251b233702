"""Every page of the real service, in both themes: nothing fails, nothing is wider than the window,
and axe finds nothing against WCAG 2 A and AA.

The everyday test, `mocked/test_pages.py`, looks at the same pages with examples in them.
"""

import re

import pytest

from tests.browser.clients import python_program, run_in_shell
from tests.browser.looking import look_at_all, screenshots
from tests.browser.visitor import CLUSTER, TOPIC

# The first of them waits until usage is metered, rolled up and invoiced.
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

# A path, and a text that is there once the page has its data. `{c}`: the cluster's address,
# `{i}`: an invoice's, `{row}`: a usage row's, `{alert}`: an alert's.
PAGES = {
    "overview": ("/", CLUSTER),
    "clusters": ("/clusters", CLUSTER),
    "new-cluster": ("/clusters?panel=new", "Create cluster"),
    "cluster": ("{c}", "Endpoints"),
    "connect": ("{c}/connect", "kcat"),
    "topics": ("{c}/topics", "Deleted topics"),
    "new-topic": ("{c}/topics?panel=new", "Create topic"),
    "messages": (f"{{c}}/topics/{TOPIC}", "Hello from Freshet"),
    "live": (f"{{c}}/topics/{TOPIC}?from=live", "Live"),
    "produce": (f"{{c}}/topics/{TOPIC}?panel=produce", "Empty for a record without a key"),
    "consumers": (f"{{c}}/topics/{TOPIC}/consumers", "pages-group"),
    "partitions": (f"{{c}}/topics/{TOPIC}/partitions", "Add partitions"),
    "configuration": (f"{{c}}/topics/{TOPIC}/configuration", "retention.ms"),
    "groups": ("{c}/groups", "pages-group"),
    "group": ("{c}/groups/pages-group", "Lag by partition"),
    "group-alert": ("{c}/groups/pages-group?panel=alert", "Create alert"),
    "reset": ("{c}/groups/pages-group?panel=reset", "See what would change"),
    "credentials": ("{c}/credentials", "SCRAM-SHA-512"),
    "new-credential": ("{c}/credentials?panel=new", "Create credential"),
    "delete-records": (
        f"{{c}}/topics/{TOPIC}/partitions?panel=delete-records",
        "Show what will be deleted",
    ),
    "acls": ("{c}/acls", "User:"),
    "new-acl": ("{c}/acls?panel=new", "Kafka Streams"),
    "quotas": ("{c}/quotas", "every other credential"),
    "new-quota": ("{c}/quotas?panel=new", "Set quotas"),
    "cluster-settings": ("{c}/settings", "All limits, and requests for more"),
    "alerts": ("/alerts", "Somebody falls behind"),
    "alert": ("{alert}", "Last look"),
    "new-alert": ("/alerts?panel=new", "Create alert"),
    "usage": ("/usage?range=1h", "Traffic"),
    "usage-by-topic": ("/usage?range=7d&by=topic", TOPIC),
    "usage-month": ("/usage?range=30d&by=principal&meter=ingress_bytes", "web-shop"),
    "usage-row": ("{row}", "SHA-256"),
    "costs": ("/usage/costs", "Forecast"),
    "costs-by-topic": ("/usage/costs?by=topic", "within what is free"),
    "budgets": ("/usage/budgets", "Team"),
    "new-budget": ("/usage/budgets?panel=new", "Create budget"),
    "prices": ("/prices", "$0.04 per GiB"),
    "invoices": ("/invoices", "Issued"),
    "invoice": ("{i}", "Data in"),
    "billing": ("/billing", "Nobody collects invoices here"),
    "billing-details": ("/billing-details", "Legal name"),
    "members": ("/access", "Invite somebody"),
    "invite": ("/access?panel=invite", "Send the invitation"),
    "projects": ("/access/projects", "default"),
    "new-project": ("/access/projects?panel=new", "Create project"),
    "service-accounts": ("/access/service-accounts", "No service account"),
    "new-service-account": ("/access/service-accounts?panel=new", "Create account"),
    "api-keys": ("/access/keys", "API keys"),
    "new-key": ("/access/keys?panel=new", "Create key"),
    "audit": ("/audit", "Cluster: create"),
    "audit-nothing": ("/audit?action=nothing.such", "Nothing of this kind"),
    "mail": ("/mail", "Confirm your address"),
    "settings": ("/settings", "Theme"),
    "settings-organization": ("/settings/organization", "Allowed addresses"),
    "settings-limits": ("/settings/limits", "Ask for more"),
    "incidents": ("/incidents", "Incidents"),
    "messages-filtered": (f"{{c}}/topics/{TOPIC}?filter=hello", "scanned so far"),
    "settings-sign-in": ("/settings/sign-in", "This one"),
    "absent-cluster": ("/clusters/cl_" + "a" * 20, "The cluster could not be read"),
    "absent-invoice": ("/invoices/inv_" + "a" * 20, "The invoice could not be read"),
    "absent-page": ("/no/such/page", "There is no such page"),
}
ENTRANCES = {
    "sign-in": ("/signin", "Sign in"),
    "sign-up": ("/signup", "Sign up"),
    "forgotten": ("/forgotten", "Send the link"),
    "password-reset": ("/password-reset#token", "Set the password"),
    "invitation": ("/invitation#token", "Make an account and join"),
    "password-reset-half": ("/password-reset", "The link is not complete"),
}
# What lies in the cluster besides: a method, a path inside the cluster, a body.
PLANTED = (
    ("PUT", "quotas", {"user": "", "produce_bytes_per_second": 10_485_760}),
    ("POST", "topics", {"name": "given-up", "partitions": 2}),
    ("DELETE", "topics/given-up", None),
)
ALERT = {"name": "Somebody falls behind", "kind": "group_lag", "threshold": 0, "for_s": 0}


@pytest.fixture(scope="module")
def addresses(people, account, invoice, tmp_path_factory):
    """A session's own addresses: a cluster with a group that lags, an invoice, a usage row, an
    alert.
    """
    with people(account) as visitor:
        visitor.open("/")
        visitor.enter_cluster()
        visitor.create_credential("pages", "Full")
        visitor.open_tab("Connect")
        visitor.sees("is filled in")
        code = visitor.snippet("Python", "freshet.py").replace("python-group", "pages-group")
        with python_program(code, tmp_path_factory.mktemp("client")) as consumer:
            consumer.wait_for_line("hello from Python")
        assert run_in_shell(visitor.snippet("kcat", "Produce")).returncode == 0
        cluster = re.sub(r"^https?://[^/]+|/connect.*$", "", visitor.page.url)
        # However long it takes to look at every page.
        visitor.change("PATCH", cluster, {"idle_timeout_s": 24 * 3600})
        for method, path, data in PLANTED:
            visitor.change(method, f"{cluster}/{path}", data)
        watched = {"cluster_id": cluster.removeprefix("/clusters/"), **ALERT}
        alert = visitor.change("POST", "/alerts", watched)["id"]
        visitor.create_budget("Team", "20")
        lines = visitor.page.request.get(f"/api/v1/invoices/{invoice.id}").json()["lines"]
        row = next(line["usage_row_ids"][0] for line in lines if line["usage_row_ids"])
        return {
            "c": cluster,
            "i": f"/invoices/{invoice.id}",
            "row": f"/usage?panel={row}",
            "alert": f"/alerts?panel={alert}",
        }


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The folder for screenshots."""
    return screenshots() or tmp_path_factory.mktemp("screenshots")


@pytest.mark.parametrize("who", ["signed-out", "member"])
def test_every_page_is_shown(people, account, addresses, pictures, who, subtests):
    pages, state = (ENTRANCES, None) if who == "signed-out" else (PAGES, account)
    named = {name: (path.format(**addresses), text) for name, (path, text) in pages.items()}
    with people(state) as visitor:
        look_at_all(visitor.page, named, subtests, pictures)
