import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { CopyText } from "@/components/CopyText";
import { Escaped, Name } from "@/components/Name";
import type { Invoice, InvoiceLine, Party } from "@/lib/api/types";
import { formatNumber } from "@/lib/format/bytes";
import { exactQuantity } from "@/lib/format/meters";
import { formatMoney, formatUnitPrice } from "@/lib/format/money";
import { monthName, utcDay, utcTime } from "@/lib/format/utc";
import { rowsSearch, unitsOf } from "../lines";
import classes from "./InvoiceDocument.module.css";
import { InvoiceMark } from "./InvoiceMark";

interface Props {
  invoice: Invoice;
}

/** An invoice as a document. Each line leads to the usage rows that it was priced from. */
export function InvoiceDocument({ invoice }: Props): ReactElement {
  const { currency } = invoice;
  return (
    <article className={classes.paper} aria-label="Invoice">
      <header className={classes.head}>
        <div>
          <div className={classes.kind}>
            {invoice.kind === "credit_note" ? "Credit note" : "Invoice"}
          </div>
          <div className={classes.number}>{invoice.number ?? "not numbered yet"}</div>
        </div>
        <InvoiceMark state={invoice.state} />
      </header>
      <Facts invoice={invoice} />
      <div className={classes.scroll}>
        <table className={classes.lines} aria-label="Lines">
          <thead>
            <tr>
              <th scope="col">Description</th>
              <th scope="col" data-align="right">
                Quantity
              </th>
              <th scope="col" data-align="right">
                Free of it
              </th>
              <th scope="col" data-align="right">
                Unit price
              </th>
              <th scope="col" data-align="right">
                Amount
              </th>
              <th scope="col">
                <span className={classes.hidden}>Usage rows</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {invoice.lines.map((line) => (
              <Line key={line.id} invoice={invoice} line={line} />
            ))}
            {invoice.lines.length === 0 && (
              <tr>
                <td colSpan={6} className={classes.quiet}>
                  Nothing was used in this month.
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </div>
      <dl className={classes.totals}>
        <dt>Subtotal</dt>
        <dd>{formatMoney(invoice.subtotal_minor, currency)}</dd>
        <dt title={invoice.tax.reason}>
          VAT, {invoice.tax.percent} %{invoice.tax.reason && `: ${invoice.tax.reason}`}
        </dt>
        <dd>{formatMoney(invoice.tax_minor, currency)}</dd>
        <dt className={classes.total}>Total, {currency}</dt>
        <dd className={classes.total}>{formatMoney(invoice.total_minor, currency)}</dd>
      </dl>
    </article>
  );
}

function Facts({ invoice }: Props): ReactElement {
  const issued = invoice.issued_at === null ? null : new Date(invoice.issued_at);
  return (
    <dl className={classes.facts}>
      <PartyFacts title="From" party={invoice.seller} />
      <PartyFacts title="For" party={invoice.customer} />
      <div>
        <dt>Usage of</dt>
        <dd>{monthName(invoice.month)}, UTC</dd>
        <dt>Issued</dt>
        <dd>{issued ? `${utcDay(issued)}, ${utcTime(issued)} UTC` : "Not yet"}</dd>
      </div>
      {invoice.sha256 && (
        <div className={classes.hash}>
          <dt>SHA-256 of the PDF</dt>
          <dd>
            <CopyText value={invoice.sha256} what="the hash" />
          </dd>
        </div>
      )}
    </dl>
  );
}

function PartyFacts({ title, party }: { title: string; party: Party }): ReactElement {
  const { name, address, country, vat_id } = party;
  const lines = [...address, country, vat_id && `VAT ${vat_id}`].filter(Boolean);
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <Escaped text={name} />
      </dd>
      {lines.map((line) => (
        <dd key={line} className={classes.quiet}>
          <Escaped text={String(line)} />
        </dd>
      ))}
    </div>
  );
}

function Line({ invoice, line }: { invoice: Invoice; line: InvoiceLine }): ReactElement {
  const { meter, quantity, free_quantity, unit_price, cluster, cluster_id } = line;
  const search = rowsSearch(invoice, line);
  return (
    <tr>
      <td>
        {line.description}
        {cluster_id && (
          <div className={classes.quiet}>
            {cluster && (
              <>
                <Name text={cluster} />,{" "}
              </>
            )}
            <span className={classes.mono}>{cluster_id}</span>
          </div>
        )}
      </td>
      <td data-align="right" title={quantity === null ? "" : exactQuantity(meter, quantity)}>
        {unitsOf(line, quantity)}
      </td>
      <td
        data-align="right"
        title={free_quantity === null ? "" : exactQuantity(meter, free_quantity)}
      >
        {unitsOf(line, free_quantity)}
      </td>
      <td data-align="right">
        {unit_price === null ? "–" : formatUnitPrice(unit_price, invoice.currency)}
      </td>
      <td data-align="right">{formatMoney(line.amount_minor, invoice.currency)}</td>
      <td data-align="right">
        {search && (
          <Link to="/usage" search={search} hash="rows">
            {formatNumber(line.usage_row_ids.length, "row")}
            <span className={classes.hidden}>
              {` of ${line.description}, ${cluster || (cluster_id ?? "")}`}
            </span>
          </Link>
        )}
      </td>
    </tr>
  );
}
