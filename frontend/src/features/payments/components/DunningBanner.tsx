import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Note, NoteMore } from "@/components/Note";
import type { Account } from "@/lib/api/types";
import { accountQuery } from "../api/payments";
import { dunned } from "../words";
import { GiveCard } from "./CardButtons";
import classes from "./DunningBanner.module.css";
import { PayNow } from "./PayNow";

/**
 * What is unpaid, above every page: how much and since when, what holds, what happens next and
 * when, and how to pay it. It is empty where nothing is unpaid.
 */
export function DunningBanner(): ReactElement | null {
  const { data: account } = useQuery(accountQuery);
  const words = account && dunned(account);
  if (!account || !words) return null;
  return (
    <section aria-label="Unpaid invoices" className={classes.root}>
      <Note
        tone={account.stage === "unpaid" ? "waking" : "failed"}
        action={<WayToPay account={account} />}
      >
        <strong>{words.owed}</strong> {words.now}
        {words.next.map((line) => (
          <NoteMore key={line}>{line}</NoteMore>
        ))}
      </Note>
    </section>
  );
}

function WayToPay({ account }: { account: Account }): ReactElement | null {
  const { collector, failure, unpaid_invoice_ids: ids, unpaid_minor, currency } = account;
  const newest = ids.at(-1);
  // Who has roles in projects alone sees neither invoices nor amounts.
  if (newest === undefined || unpaid_minor === null) return null;
  if (collector !== "stripe") {
    return (
      <Link to="/invoices/$invoiceId" params={{ invoiceId: ids[0] ?? newest }}>
        How to pay
      </Link>
    );
  }
  return (
    <div className={classes.ways}>
      {failure === "no_payment_method" ? (
        <GiveCard />
      ) : (
        <PayNow invoiceId={newest} withOlder amountMinor={unpaid_minor} currency={currency} />
      )}
      <Link to="/billing">Payment</Link>
    </div>
  );
}
