import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { GuardedButton } from "@/components/GuardedButton";
import { Note, NoteMore } from "@/components/Note";
import { formatMoney } from "@/lib/format/money";
import { useRefusal } from "@/lib/permissions";
import { usePayInAdvance } from "../api/payments";
import { outcomeWords } from "../words";

interface Props {
  amountMinor: number;
  currency: string;
}

/** Says that the card could not be charged in advance, with a button that charges it now. */
export function PayInAdvance({ amountMinor, currency }: Props): ReactElement {
  const pay = usePayInAdvance();
  const refused = useRefusal("billing");
  const amount = formatMoney(amountMinor, currency);
  const outcome = pay.data && outcomeWords(pay.data);
  return (
    <>
      <Note
        tone="failed"
        action={
          <GuardedButton
            refused={refused}
            loading={pay.isPending}
            onClick={() => {
              pay.mutate(undefined, {
                onSuccess: ({ state }) => {
                  if (state === "succeeded") notifications.show({ message: `${amount} is paid` });
                },
              });
            }}
          >
            Pay {amount} in advance
          </GuardedButton>
        }
      >
        <strong>The card could not be charged in advance.</strong> A card that is new here pays for
        a first amount before the month ends.
        <NoteMore>
          What it pays is used for the next invoice. Pay here, or use another card: otherwise the
          clusters refuse produce and fetch.
        </NoteMore>
      </Note>
      {outcome && <p role="status">{outcome}</p>}
      {pay.error && <ErrorPanel error={pay.error} what="Nothing was paid" />}
    </>
  );
}
