"""The evidence pack: a plain Python recomputes the invoice from it, and finds what was changed."""

import csv
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from functools import partial

import pytest

from billing import rating
from billing.catalog import GIB
from billing.choices import Rounding
from billing.drafts import Draft
from billing.money import round_half_up
from billing.pdf.render import content_sha256
from billing.services import issuing
from billing.services.documents import store_document
from billing.services.evidence import make_evidence
from billing.services.voiding import void_invoice
from tests.billing import world
from tests.billing.world import invoices_of, issue_invoices
from tests.console.scopes import as_request_of
from tests.metering.console.world import Used, name_topic, publish_day


def pack_of(invoice):
    with as_request_of(invoice.organization_id):
        return make_evidence(invoice)


def unpacked(pack):
    with zipfile.ZipFile(io.BytesIO(pack)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def recompute(folder, files):
    """Runs the pack's own program in a plain interpreter, without anything of this project."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return subprocess.run(
        [sys.executable, "-I", "-S", "recompute.py"],
        cwd=folder,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )


def sealed(files):
    """The pack with new hashes, since whoever changes a pack can also change its hashes."""
    named = {name: data for name, data in files.items() if name != "SHA256SUMS"}
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in named.items()]
    return {**named, "SHA256SUMS": "".join(lines).encode()}


def changed_json(files, name, change):
    content = json.loads(files[name])
    change(content)
    return sealed({**files, name: json.dumps(content).encode()})


def changed_rows(files, change):
    rows = list(csv.DictReader(io.StringIO(files["usage_rows.csv"].decode())))
    rows = change(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return sealed({**files, "usage_rows.csv": text.getvalue().encode()})


@pytest.fixture
def invoice(used):
    """A month of two clusters and several days, with amounts that had to be rounded."""
    second = world.make_cluster(used.id, "cl_bbbbbbbbbbbbbbbbbbbb", "payments")
    name_topic(used.id, "cl_aaaaaaaaaaaaaaaaaaaa", "orders.v1")
    for number, day in enumerate(world.days_of()[1:20]):
        publish_day(
            day,
            [
                Used(used.id, second, "ingress_bytes", 123_456_789 * number),
                Used(used.id, second, "storage_byte_minutes", 10**13 + number, principal=""),
                Used(used.id, "cl_aaaaaaaaaaaaaaaaaaaa", "egress_bytes", 10**9 + number),
            ],
        )
    issue_invoices()
    return invoices_of(used.id)[0]


@pytest.fixture
def files(invoice):
    """The pack, unpacked."""
    return unpacked(pack_of(invoice))


def test_a_real_pack_agrees(files, invoice, tmp_path):
    result = recompute(tmp_path, files)
    assert result.returncode == 0, result.stdout + result.stderr
    amount = f"Total {invoice.total_minor / 100:.2f} USD."
    assert f"{invoice.number} agrees: 6 lines from" in result.stdout
    assert amount in result.stdout
    assert content_sha256(json.loads(files["invoice.json"])) in result.stdout


def test_a_zip_is_read_as_it_is(invoice, files, tmp_path):
    (tmp_path / "pack.zip").write_bytes(pack_of(invoice))
    (tmp_path / "recompute.py").write_bytes(files["recompute.py"])
    command = [sys.executable, "-I", "-S", "recompute.py", "pack.zip"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_pack_is_the_same_each_time(invoice):
    assert pack_of(invoice) == pack_of(invoice)


HALF_A_CENT = GIB // 8
SMALL = {"cl_aaaaaaaaaaaaaaaaaaaa": 10 * GIB + HALF_A_CENT, "cl_bbbbbbbbbbbbbbbbbbbb": HALF_A_CENT}


def issue_small(organization):
    """A month of two clusters that are to pay half a cent each."""
    world.sign_up(organization)
    for number, cluster_id in enumerate(SMALL):
        world.make_cluster(organization.pk, cluster_id, f"orders-{number}")
    world.publish_month(
        [
            Used(organization.pk, cluster_id, "ingress_bytes", quantity)
            for cluster_id, quantity in SMALL.items()
        ]
    )
    issue_invoices(organization.pk)
    return invoices_of(organization.pk)[0]


def test_lines_of_a_meter_are_rounded_together_and_so_recomputed(other_tenant, tmp_path):
    invoice = issue_small(other_tenant.organization)
    files = unpacked(pack_of(invoice))
    content = json.loads(files["invoice.json"])
    assert (content["rounding"], invoice.subtotal_minor) == ("meter", 1)
    assert [line["amount_minor"] for line in content["lines"]] == [1, 0]
    result = recompute(tmp_path, files)
    assert result.returncode == 0, result.stdout + result.stderr
    unknown = changed_json(files, "invoice.json", lambda i: i.update(rounding="x"))
    assert recompute(tmp_path, unknown).returncode == 2


def test_an_invoice_from_before_keeps_its_content_and_agrees(other_tenant, monkeypatch, tmp_path):
    """Each of its lines was rounded by itself, and it says nothing of rounding."""
    with monkeypatch.context() as earlier:
        earlier.setattr(rating, "allocate_amount", _round_each)
        earlier.setattr(issuing, "Draft", partial(Draft, rounding=Rounding.LINE.value))
        invoice = issue_small(other_tenant.organization)
    void_invoice(invoice_id=invoice.pk, reason="x", by="tests")
    for document in invoices_of(other_tenant.id):
        content = json.loads((files := unpacked(pack_of(document)))["invoice.json"])
        assert "rounding" not in content
        assert [abs(line["amount_minor"]) for line in content["lines"]] == [1, 1]
        result = recompute(tmp_path, files)
        assert result.returncode == 0, result.stdout + result.stderr


def _round_each(_amount_minor, billable):
    """Half a cent of each line, as an earlier version rounded it."""
    return {cluster_id: round_half_up(n * 4, GIB) for cluster_id, n in billable.items()}


def test_an_invoice_over_nothing_agrees(used, other_tenant, tmp_path):
    world.sign_up(other_tenant.organization)
    issue_invoices()
    result = recompute(tmp_path, unpacked(pack_of(invoices_of(other_tenant.id)[0])))
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_credit_note_agrees(invoice, tmp_path):
    void_invoice(invoice_id=invoice.pk, reason="x", by="tests")
    note = invoices_of(invoice.organization_id)[-1]
    result = recompute(tmp_path, unpacked(pack_of(note)))
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_capped_invoice_agrees(capped, tmp_path):
    issue_invoices()
    (invoice,) = invoices_of(capped.id)
    assert invoice.total_minor == 120
    files = unpacked(pack_of(invoice))
    result = recompute(tmp_path, files)
    assert result.returncode == 0, result.stdout + result.stderr
    lifted = changed_json(files, "invoice.json", lambda i: i.update(cap_minor=None))
    assert "beyond the suspending budget" in recompute(tmp_path, lifted).stdout


def test_the_pack_has_the_document_once_there_is_one(invoice, files):
    assert "invoice.pdf" not in files
    store_document(
        organization_id=invoice.organization_id, invoice_id=invoice.pk, pdf=b"%PDF-1.7 x"
    )
    assert unpacked(pack_of(invoice))["invoice.pdf"] == b"%PDF-1.7 x"


def test_the_rows_have_names_and_the_ids_of_the_invoice(files):
    rows = list(csv.DictReader(io.StringIO(files["usage_rows.csv"].decode())))
    assert {row["topic"] for row in rows} == {"orders.v1", ""}
    assert all(row["id"].startswith("ur_") for row in rows)
    assert "broker_seconds" not in {row["meter"] for row in rows}


def raise_amount(invoice):
    invoice["lines"][0]["amount_minor"] += 1
    invoice["subtotal_minor"] += 1
    invoice["total_minor"] += 1


def lower_price(prices):
    prices["prices"][0]["unit_price"] = "0.03"


def drop_run(runs):
    runs.pop()


def more_free(prices):
    prices["prices"][1]["free_units"] += 1


TAMPERED = {
    "a file": (
        lambda files: {**files, "usage_files.json": b"[]\n\n"},
        "usage_files.json was changed",
    ),
    "an amount": (
        lambda files: changed_json(files, "invoice.json", raise_amount),
        "amount_minor is 41 on the invoice, and 40 recomputed",
    ),
    "the total": (
        lambda files: changed_json(files, "invoice.json", lambda i: i.update(total_minor=1)),
        "total_minor is 1 on the invoice",
    ),
    "the tax": (
        lambda files: changed_json(files, "invoice.json", lambda i: i["tax"].update(percent="19")),
        "tax_minor is 0 on the invoice",
    ),
    "a price": (
        lambda files: changed_json(files, "prices.json", lower_price),
        "unit_price is 0.04 on the invoice, and 0.03 recomputed",
    ),
    "an allowance": (
        lambda files: changed_json(files, "prices.json", more_free),
        "free_quantity is",
    ),
    "a run": (
        lambda files: changed_json(files, "rollup_runs.json", drop_run),
        "does not have the runs",
    ),
    "a quantity": (
        lambda files: changed_rows(files, lambda rows: [{**rows[0], "quantity": "1"}, *rows[1:]]),
        "the control total is",
    ),
    "a row left out": (lambda files: changed_rows(files, lambda rows: rows[1:]), "control total"),
    "a row twice": (
        lambda files: changed_rows(files, lambda rows: [*rows, rows[0]]),
        "a usage row is there twice",
    ),
    "a row of somebody else": (
        lambda files: changed_rows(
            files, lambda rows: [{**rows[0], "organization_id": "org_x"}, *rows[1:]]
        ),
        "of another organization",
    ),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_changed_is_found(files, tmp_path, what):
    change, said = TAMPERED[what]
    result = recompute(tmp_path, change(files))
    assert result.returncode == 1, result.stdout + result.stderr
    assert "is NOT what its usage rows and prices make it" in result.stdout
    assert said in result.stdout


def test_what_is_no_pack_is_said_to_be_none(files, tmp_path):
    result = recompute(tmp_path, {"recompute.py": files["recompute.py"]})
    assert result.returncode == 2
    assert "cannot be read" in result.stdout
