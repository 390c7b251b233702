import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, empty, refuse } from "@/testing/server";
import { firstRow, loadedTable, visit } from "@/testing/visit";

const LIST = "GET /api/v1/invoices";
const ONE = "GET /api/v1/invoices/{id}";
const INVOICE = "/invoices/inv_3k2jq7v5xw4mzn6yt2ba";

test("an invoice is listed with its state, its total and its PDF", async () => {
  visit("/invoices");
  const cells = await firstRow("Invoices");
  expect(cells.slice(0, 4)).toEqual(["FR-2026-000042", "Invoice", "November 2026", "Issued"]);
  expect(cells.slice(5, 8)).toEqual(["18 Dec 2026", "$0.30", "$0.40"]);
  const pdf = screen.getByRole("link", { name: "PDF of the invoice FR-2026-000042" });
  expect(pdf).toHaveAttribute("href", "/api/v1/invoices/inv_3k2jq7v5xw4mzn6yt2ba/pdf");
});

test("an invoice whose PDF is not made yet offers none", async () => {
  change(LIST, ({ items: [invoice] }) => {
    if (invoice) invoice.sha256 = null;
  });
  visit("/invoices");
  await loadedTable("Invoices");
  expect(screen.queryByRole("link", { name: /^PDF of/ })).toBeNull();
});

test("without an invoice it is said when the first one comes", async () => {
  empty(LIST);
  visit("/invoices");
  expect(await screen.findByText(/^No invoice/)).toBeVisible();
});

test("a list that is refused shows the problem's text", async () => {
  refuse(LIST, { status: 403, detail: "Your role is developer." });
  visit("/invoices");
  expect(await screen.findByText(/Your role is developer\./)).toBeVisible();
});

test("a line leads to the rows that it was priced from", async () => {
  visit(INVOICE);
  const lines = within(await screen.findByRole("table", { name: "Lines" }));
  const row = lines.getByRole("row", { name: /^Data in/ });
  expect(row).toHaveTextContent("$0.40");
  const link = lines.getByRole("link", { name: /1 row of Data in/ });
  const href = link.getAttribute("href") ?? "";
  expect(href).toMatch(/^\/usage\?/);
  expect(href).toContain("meter=ingress_bytes");
  expect(href).toContain("cluster=cl_3k2jq7v5xw4mzn6yt2ba");
});

test("the document names both parties, the reason of no tax and the hash of the PDF", async () => {
  change(ONE, (invoice) => {
    Object.assign(invoice.customer, { address: ["Lindenallee 3"], vat_id: "DE987654328" });
  });
  visit(INVOICE);
  const document = await screen.findByRole("article", { name: "Invoice" });
  expect(document).toHaveTextContent("Lindenallee 3");
  expect(document).toHaveTextContent("VAT DE987654328");
  expect(document).toHaveTextContent("The seller is not registered for VAT.");
  expect(document).toHaveTextContent("9f86d081884c7d659a2feaa0c55ad015");
});

test("a month that was closed early says what is missing", async () => {
  change(ONE, (invoice) => {
    invoice.closed_early = {
      by: "ada",
      reason: "The year ends.",
      days_without_roll_up: ["2026-11-20", "2026-11-21"],
      days_with_newer_files: [],
      incomplete_hours: 1,
    };
  });
  visit(INVOICE);
  expect(await screen.findByText(/closed early by ada: The year ends\./)).toBeVisible();
  expect(screen.getByText("Not on it: 2 days without roll-up, 1 incomplete hour.")).toBeVisible();
});

test("an invoice that was taken back leads to its credit note", async () => {
  change(ONE, (invoice) => (invoice.credit_note_id = "inv_zn6yt2ba3k2jq7v5xw4m"));
  visit(INVOICE);
  const link = await screen.findByRole("link", { name: "a credit note" });
  expect(link).toHaveAttribute("href", "/invoices/inv_zn6yt2ba3k2jq7v5xw4m");
});

test("a draft has no number, and owes nothing", async () => {
  change(ONE, (invoice) => Object.assign(invoice, { state: "draft", number: null }));
  visit(INVOICE);
  expect(await screen.findByText(/it has no number, nothing is owed/)).toBeVisible();
  expect(screen.queryByRole("link", { name: "Evidence" })).toBeNull();
});

test("a PDF that is being made keeps its place", async () => {
  change(ONE, (invoice) => (invoice.sha256 = null));
  visit(INVOICE);
  const open = await screen.findByRole("button", { name: "Open the PDF" });
  expect(open).toHaveAttribute("data-loading");
});
