import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { PageHead } from "@/components/PageHead";
import { invoiceListQuery } from "@/features/invoices/api/invoices";
import { InvoiceTable } from "@/features/invoices/components/InvoiceTable";

/** All invoices of the organization. */
export function InvoicesPage(): ReactElement {
  const invoices = useQuery(invoiceListQuery);
  return (
    <>
      <PageHead
        title="Invoices"
        lead="One for each month. An issued invoice never changes, and each line leads to its rows."
      />
      <Listed
        query={invoices}
        what="The invoices could not be read"
        empty={
          <Empty
            title="No invoice yet"
            action={<Link to="/usage/costs">See what this month costs so far</Link>}
          >
            A month&apos;s invoice is issued three days after its end, once all of its usage is
            complete. It is issued too when nothing is to be paid.
          </Empty>
        }
      >
        {(rows) => <InvoiceTable invoices={rows} />}
      </Listed>
    </>
  );
}
