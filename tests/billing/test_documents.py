"""The PDF: made once after issuing, the same each time, and good to read."""

import io
import re
import socket

import pytest
from pypdf import PdfReader

from billing.content import invoice_content
from billing.errors import (
    DocumentDamaged,
    DocumentPending,
    DocumentRefersOutside,
    NotIssued,
)
from billing.models import InvoiceDocument
from billing.pdf.render import draw_pdf, render_html, render_pdf
from billing.services import documents
from billing.services.store import document_store
from billing.services.voiding import void_invoice
from console.base.common.tenancy import organization_scope
from tests.billing import world
from tests.billing.world import invoices_of, issue_invoices
from tests.console.scopes import as_request_of


def text_of(pdf):
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)


@pytest.fixture
def invoice(used):
    """An issued invoice."""
    issue_invoices()
    return invoices_of(used.id)[0]


def read(invoice):
    with as_request_of(invoice.organization_id):
        return documents.read_document(invoice)


def test_a_document_is_made_stored_and_read(invoice):
    with pytest.raises(DocumentPending):
        read(invoice)
    assert documents.sweep_documents() == 1
    pdf = read(invoice)
    text = text_of(pdf)
    for said in ("Invoice", "FR-2026-000001", "Acme", "4 October 2026", "1 – 30 September 2026"):
        assert said in text, said
    for said in (
        "Data in",
        "orders",
        "20.000",
        "10.000",
        "$0.04",
        "$0.40",
        "$1.80",
        "not registered",
    ):
        assert said in text, said
    assert documents.sweep_documents() == 0


def test_the_same_content_is_the_same_file(invoice):
    content = invoice_content(invoice)
    assert render_pdf(content) == render_pdf(content)


def test_it_is_made_once(invoice):
    first = documents.store_document(
        organization_id=invoice.organization_id, invoice_id=invoice.pk, pdf=b"first"
    )
    again = documents.store_document(
        organization_id=invoice.organization_id, invoice_id=invoice.pk, pdf=b"second"
    )
    assert (again.pk, again.sha256) == (first.pk, first.sha256)
    assert read(invoice) == b"first"


def test_a_worker_that_died_between_storing_and_recording_leaves_its_file(invoice):
    document_store().put_new(f"v1/invoices/{invoice.pk}.pdf", b"stored")
    documents.make_document(organization_id=invoice.organization_id, invoice_id=invoice.pk)
    assert read(invoice) == b"stored"


def test_one_that_cannot_be_rendered_keeps_nobody_waiting(used, other_tenant, monkeypatch, caplog):
    world.sign_up(other_tenant.organization)
    issue_invoices()
    broken = invoices_of(used.id)[0]
    render = render_pdf

    def fail_one(content, terms):
        if content["id"] == broken.pk:
            message = "no such font"
            raise RuntimeError(message)
        return render(content, terms)

    monkeypatch.setattr(documents, "render_pdf", fail_one)
    assert documents.sweep_documents() == 1
    assert broken.pk in caplog.text
    with pytest.raises(DocumentPending):
        read(broken)
    assert read(invoices_of(other_tenant.id)[0]).startswith(b"%PDF")


def test_a_damaged_file_is_not_shown(invoice, documents_folder):
    documents.store_document(
        organization_id=invoice.organization_id, invoice_id=invoice.pk, pdf=b"first"
    )
    file = documents_folder / "v1" / "invoices" / f"{invoice.pk}.pdf"
    file.write_bytes(b"other")
    with pytest.raises(DocumentDamaged):
        read(invoice)
    file.unlink()
    with pytest.raises(DocumentDamaged):
        read(invoice)


@pytest.fixture
def documents_folder(documents):
    """The store's folder, under a name that the module of this name leaves free."""
    return documents


def test_a_draft_has_no_document(used):
    issue_invoices(draft=True)
    (draft,) = invoices_of(used.id)
    with pytest.raises(NotIssued):
        read(draft)
    documents.make_document(organization_id=used.id, invoice_id=draft.pk)
    with organization_scope(used.id):
        assert not InvoiceDocument.objects.exists()


def test_a_credit_note_says_what_it_takes_back(invoice):
    void_invoice(invoice_id=invoice.pk, reason="wrong address", by="tests")
    note = invoices_of(invoice.organization_id)[-1]
    with organization_scope(invoice.organization_id):
        text = text_of(render_pdf(invoice_content(note)))
    for said in ("Credit note", "FRC-2026-000001", "Takes back", "FR-2026-000001"):
        assert said in text, said
    assert "wrong address" in text
    assert "\N{MINUS SIGN}$1.80" in text


def test_names_are_text_and_nothing_else(invoice):
    content = invoice_content(invoice)
    content["customer"] = {**content["customer"], "name": "<img src='file:///etc/passwd'>"}
    assert "<img" not in render_html(content)
    assert "<img src" in text_of(render_pdf(content))


@pytest.mark.parametrize(
    ("page", "style"),
    [
        ("<img src='{url}'>", ""),
        ("<link rel=stylesheet href='{url}'>", ""),
        ("<svg xmlns='http://www.w3.org/2000/svg'><image href='{url}'/></svg>", ""),
        ("<p>text</p>", "@import '{url}';"),
        ("<p>text</p>", "p {{ background: url('{url}') }}"),
        ("<p>text</p>", "@font-face {{ font-family: x; src: url('{url}') }} p {{ font: 1em x }}"),
    ],
)
@pytest.mark.parametrize("kind", ["http", "file"])
def test_nothing_is_fetched_and_the_refusal_is_an_error_of_ours(tmp_path, page, style, kind):
    secret = tmp_path / "secret.css"
    secret.write_text("p { color: red }")
    with socket.create_server(("127.0.0.1", 0)) as host:
        host.setblocking(False)
        address = f"http://127.0.0.1:{host.getsockname()[1]}/x.css"
        url = address if kind == "http" else secret.as_uri()
        with pytest.raises(DocumentRefersOutside, match=re.escape(url)):
            draw_pdf(page.format(url=url), style.format(url=url), identifier=b"x" * 16)
        with pytest.raises(BlockingIOError):
            host.accept()


def test_many_lines_go_over_many_pages(invoice):
    content = invoice_content(invoice)
    content["lines"] *= 40
    reader = PdfReader(io.BytesIO(render_pdf(content)))
    assert len(reader.pages) > 3
    last = len(reader.pages)
    assert f"{last} / {last}" in reader.pages[-1].extract_text()
    assert all("Service" in page.extract_text() for page in reader.pages[:-1])
