import { Stack } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Note, NoteMore } from "@/components/Note";
import type { ClosedEarly, Invoice } from "@/lib/api/types";
import { formatNumber } from "@/lib/format/bytes";

/** Notes on an invoice: a draft, issued early, cancelling another one, or cancelled itself. */
export function InvoiceNotes({ invoice }: { invoice: Invoice }): ReactElement | null {
  const { closed_early, credits_id, credit_note_id, reason, state } = invoice;
  if (!closed_early && !credits_id && !credit_note_id && state !== "draft") return null;
  return (
    <Stack gap="sm" mb="md" maw={960}>
      {state === "draft" && (
        <Note tone="waking">
          A draft: it has no number, nothing is owed, and it may still change.
        </Note>
      )}
      {closed_early && (
        <Note tone="waking">
          The month was closed early by {closed_early.by}: {closed_early.reason}
          <NoteMore>{missingWords(closed_early)}</NoteMore>
        </Note>
      )}
      {credits_id && (
        <Note tone="quiet">
          It takes{" "}
          <Link to="/invoices/$invoiceId" params={{ invoiceId: credits_id }}>
            an invoice
          </Link>{" "}
          back: {reason}
        </Note>
      )}
      {credit_note_id && (
        <Note tone="quiet">
          It was taken back by{" "}
          <Link to="/invoices/$invoiceId" params={{ invoiceId: credit_note_id }}>
            a credit note
          </Link>
          . Nothing is owed for it.
        </Note>
      )}
    </Stack>
  );
}

/** Returns what is missing on the invoice of a month that was closed early. */
export function missingWords(early: ClosedEarly): string {
  const { days_without_roll_up: days, days_with_newer_files: newer, incomplete_hours } = early;
  const missing = [
    days.length > 0 && `${formatNumber(days.length, "day")} without roll-up`,
    newer.length > 0 && `${formatNumber(newer.length, "day")} with newer usage files`,
    incomplete_hours > 0 && formatNumber(incomplete_hours, "incomplete hour"),
  ].filter((words) => words !== false);
  return missing.length > 0 ? `Not on it: ${missing.join(", ")}.` : "No usage of it was missing.";
}
