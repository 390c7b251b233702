import type { ReactElement } from "react";
import type { Tone } from "@/components/Note";
import { StateMark } from "@/components/StateMark";
import type { Alert } from "@/lib/api/types";
import { type ShownState, shownStateOf } from "../figures";

const MEANINGS: Record<ShownState, { word: string; tone: Tone; title: string }> = {
  firing: { word: "Firing", tone: "failed", title: "The figure is beyond its threshold." },
  pending: {
    word: "Pending",
    tone: "waking",
    title: "The figure is beyond its threshold, and not yet for long enough to fire.",
  },
  ok: { word: "OK", tone: "running", title: "The figure is within its threshold." },
  unknown: {
    word: "Not known",
    tone: "quiet",
    title: "The figure was not known at the last check.",
  },
  new: { word: "New", tone: "quiet", title: "It is looked at within a minute." },
};

const BACK = "The figure is back below its threshold, and not yet for long enough to be over.";

/** Shows the state of an alert as word, shape and colour. */
export function AlertMark({ alert }: { alert: Alert }): ReactElement {
  const { word, tone, title } = MEANINGS[shownStateOf(alert)];
  const back = alert.back_since !== null;
  return (
    <StateMark tone={tone} title={back ? BACK : title}>
      {word}
    </StateMark>
  );
}
