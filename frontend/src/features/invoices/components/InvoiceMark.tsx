import type { ReactElement } from "react";
import type { Tone } from "@/components/Note";
import { StateMark } from "@/components/StateMark";
import type { InvoiceState } from "@/lib/api/types";

const MEANINGS: Record<InvoiceState, { word: string; tone: Tone; title: string }> = {
  draft: {
    word: "Draft",
    tone: "asleep",
    title: "It has no number yet and may still change.",
  },
  issued: { word: "Issued", tone: "running", title: "It has a number and never changes." },
  paid: { word: "Paid", tone: "running", title: "All of it was paid." },
  overdue: { word: "Overdue", tone: "failed", title: "The day by which it was due has passed." },
  uncollectible: {
    word: "Written off",
    tone: "quiet",
    title: "It is not expected to be paid any more.",
  },
  void: { word: "Void", tone: "quiet", title: "It was withdrawn. Its number stays taken." },
};

/** Shows an invoice's state as word, shape and colour. */
export function InvoiceMark({ state }: { state: InvoiceState }): ReactElement {
  const { word, tone, title } = MEANINGS[state];
  return (
    <StateMark tone={tone} title={title}>
      {word}
    </StateMark>
  );
}
