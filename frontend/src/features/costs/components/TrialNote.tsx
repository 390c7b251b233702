import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Note, NoteMore } from "@/components/Note";
import type { Costs, Price } from "@/lib/api/types";
import { formatPriced, meterName } from "@/lib/format/meters";
import { minutesOfMonth } from "@/lib/format/utc";
import { big } from "@/lib/format/whole";

interface Props {
  costs: Costs | undefined;
  prices: readonly Price[] | undefined;
}

/** What is left of the trial, and what follows once it is used up; empty where none is needed. */
export function TrialNote({ costs, prices }: Props): ReactElement | null {
  const left = costs?.trial_left;
  if (!costs || !prices || !left) return null;
  const known = prices.filter(({ meter }) => left[meter] !== undefined);
  const used = known.filter(({ meter }) => big(left[meter] ?? "0") <= 0n);
  const card = <Link to="/billing">Add a card</Link>;
  if (known.length === 0) {
    return (
      <Note tone="failed" action={card}>
        <strong>The organization has no trial.</strong> Without a card all clusters refuse produce
        and fetch.
      </Note>
    );
  }
  const words = known.map(
    ({ meter, free_unit: unit }) =>
      `${meterName(meter)}: ${formatPriced(left[meter] ?? "0", unit, minutesOfMonth(costs.month))}`,
  );
  return (
    <Note tone={used.length > 0 ? "failed" : "waking"} action={card}>
      {used.length > 0 ? (
        <>
          <strong>The trial is used up.</strong> All clusters refuse produce and fetch until a card
          is added.
        </>
      ) : (
        <>
          <strong>This is a trial.</strong> Once one of these is used up, all clusters refuse
          produce and fetch until a card is added.
        </>
      )}
      <NoteMore>Left of it: {words.join(", ")}.</NoteMore>
      <NoteMore>
        What was used in the trial stays free. With a card the month&apos;s free quantities begin
        anew, and what is used beyond them is billed.
      </NoteMore>
    </Note>
  );
}
