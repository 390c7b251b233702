"""Commands for usage, costs, budgets, invoices, limits, incidents and metrics; completion."""

from datetime import UTC, datetime

import pytest

from console.programs.cli.fields import parse_moment


def test_budgets(freshet):
    made = freshet(
        "budget", "create", "Team", "--amount", "5000", "--threshold", "50", "--threshold", "90",
        "-o", "json",
    ).json  # fmt: skip
    assert (made["amount_minor"], made["thresholds"]) == (5000, [50, 90])
    changed = freshet("budget", "update", "Team", "--action", "suspend", "-o", "json").json
    assert (changed["action"], changed["thresholds"]) == ("suspend", [50, 90])
    assert freshet("budget", "list").rows()[0][0] == "Team"
    assert "created" in freshet("budget", "describe", "Team").out
    assert freshet("budget", "delete", "Team", "-y").code == 0
    assert freshet("budget", "describe", "Team").code == 4


def test_what_was_used_and_what_it_costs(freshet, cluster_id):
    listed = freshet("usage", "list", "--cluster", cluster_id, "--from", "-7d", "-o", "json")
    assert listed.json == {"items": [], "next_cursor": None}
    assert freshet("usage", "reconciliations", "--from", "-30d").code == 0
    assert freshet("usage", "list", "--group-by", "topic", "--granularity", "hour").code == 0
    assert freshet("cost", "show", "--month", "2026-10", "-o", "json").json["month"] == "2026-10"
    assert freshet("cost", "prices", "-o", "json").json["currency"] == "USD"
    assert freshet("invoice", "list").code == 0
    assert freshet("invoice", "pdf", "inv_aaaaaaaaaaaaaaaaaaaa", "--file", "-").code == 4
    changed = freshet(
        "billing-details", "update", "--address-line", "Street 1", "--address-line", "Town",
        "--country", "DE", "-o", "json",
    )  # fmt: skip
    assert changed.json["address"] == ["Street 1", "Town"]
    bare = freshet("billing-details", "update", "--no-address", "--country", "", "-o", "json").json
    assert (bare["address"], bare["country"]) == ([], "")


def test_the_platform(freshet, cluster_id):
    limits = freshet("limit", "list", "--cluster", cluster_id, "-o", "json").json["items"]
    assert {limit["scope"] for limit in limits} >= {"organization", "cluster"}
    requests = freshet(
        "limit-request", "create", "clusters", "--wanted", "500", "--reason", "Growth", "-o", "json"
    )
    assert requests.json["state"] == "open"
    shown = freshet("limit-request", "describe", requests.json["id"], "-o", "json").json
    assert shown["wanted"] == 500
    assert freshet("incident", "list", "--state", "open").out == ""
    assert freshet("region", "list").rows()[0][0] == "local"
    assert freshet("operation", "list", "--of", cluster_id).rows()[0][1] == "create_cluster"
    assert freshet("metrics").out.endswith("# EOF\n")
    assert freshet("cluster", "metrics", "-c", cluster_id).out.endswith("# EOF\n")


@pytest.fixture
def completed(freshet, monkeypatch):
    """What a shell offers for the last word of a command line."""

    def run_line(*words, **environment):
        monkeypatch.setenv("_FRESHET_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["freshet", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        result = freshet(**environment)
        return [line.partition(",")[2] for line in result.out.splitlines() if line]

    return run_line


def test_a_shell_completes_commands_and_names(freshet, completed, make_cluster, monkeypatch):
    make_cluster(name="orders")
    assert freshet("topic", "create", "payments", "-c", "orders").code == 0
    assert freshet("topic", "create", "refunds", "-c", "orders").code == 0
    assert completed("clus") == ["cluster"]
    assert completed("cluster", "describe", "o") == ["orders"]
    assert completed("topic", "list", "--cluster", "") == ["orders"]
    assert completed("topic", "describe", "-c", "orders", "p") == ["payments"]
    assert completed("consume", "r", FRESHET_CLUSTER="orders") == ["refunds"]
    assert completed("topic", "describe", "p", FRESHET_CLUSTER="none") == []
    monkeypatch.delenv("_FRESHET_COMPLETE")
    script = freshet("completion", "zsh").out
    assert "_FRESHET_COMPLETE=zsh_complete" in script


def test_times_are_rfc_3339_or_relative():
    now = lambda: datetime(2026, 5, 1, 12, tzinfo=UTC)  # noqa: E731
    assert parse_moment("now", now=now) == "2026-05-01T12:00:00.000Z"
    assert parse_moment("-24h", now=now) == "2026-04-30T12:00:00.000Z"
    assert parse_moment("+30d", now=now) == "2026-05-31T12:00:00.000Z"
    assert parse_moment("2026-05-01T12:00:00+02:00") == "2026-05-01T10:00:00.000Z"
    assert parse_moment("2026-05-01") == "2026-05-01T00:00:00.000Z"
    for bad in ("yesterday", "24h", ""):
        with pytest.raises(ValueError, match="Invalid isoformat"):
            parse_moment(bad)
