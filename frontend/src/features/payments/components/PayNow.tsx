import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { GuardedButton } from "@/components/GuardedButton";
import { isCode } from "@/lib/api/client";
import { formatMoney } from "@/lib/format/money";
import { useRefusal } from "@/lib/permissions";
import { usePay } from "../api/payments";
import { failureWords, outcomeWords } from "../words";
import { GiveCard } from "./CardButtons";
import classes from "./PayNow.module.css";

interface Props {
  invoiceId: string;
  /** Whether every older invoice that is open is paid with it. */
  withOlder?: boolean;
  amountMinor: number;
  currency: string;
}

/** A button that charges the card now, and below it what became of that. */
export function PayNow({
  invoiceId,
  withOlder = false,
  amountMinor,
  currency,
}: Props): ReactElement {
  const pay = usePay();
  const refused = useRefusal("billing");
  const amount = formatMoney(amountMinor, currency);
  const outcome = pay.data && outcomeWords(pay.data);
  if (isCode(pay.error, "no_payment_method")) {
    // The card was removed since: what is unpaid is charged by itself once there is another one.
    return (
      <div className={classes.root}>
        <p role="status" className={classes.outcome}>
          {failureWords("no_payment_method")}
        </p>
        <GiveCard />
      </div>
    );
  }
  return (
    <div className={classes.root}>
      <GuardedButton
        refused={refused}
        loading={pay.isPending}
        onClick={() => {
          pay.mutate(
            { invoiceId, withOlder },
            {
              onSuccess: ({ state }) => {
                if (state === "succeeded") notifications.show({ message: `${amount} is paid` });
              },
            },
          );
        }}
      >
        Pay {amount}
      </GuardedButton>
      {outcome && (
        <p role="status" className={classes.outcome}>
          {outcome}
        </p>
      )}
      {pay.error && <ErrorPanel error={pay.error} what="Nothing was paid" />}
    </div>
  );
}
