import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactElement, type ReactNode, useMemo } from "react";
import { type Freshness, useFreshness } from "@/lib/api/freshness";
import { formatInstant } from "@/lib/format/instant";
import { serverTime } from "@/lib/serverTime";
import { StoppedTime } from "@/lib/useNow";
import { useZone, type Zone } from "@/lib/zone";
import classes from "./Figures.module.css";

/**
 * What every page stands in: it says when the page's figures were read, and where the service does
 * not answer any more it says since when, and takes the colour out of all figures.
 */
export function Figures({ children }: { children: ReactNode }): ReactElement {
  const client = useQueryClient();
  const zone = useZone();
  const freshness = useFreshness();
  const { readAt, stale, everything } = freshness;
  const stands = everything && stale !== null ? stale.since : undefined;
  const stopped = useMemo(() => (stands === undefined ? undefined : byService(stands)), [stands]);
  const complaint = complaintOf(freshness, zone);
  return (
    <>
      <div className={classes.line} data-stale={complaint !== undefined || undefined}>
        <span role="status">{complaint}</span>
        {complaint !== undefined && (
          <Button
            variant="default"
            size="compact-xs"
            onClick={() => void client.refetchQueries({ type: "active" })}
          >
            Try again
          </Button>
        )}
        {complaint === undefined && readAt !== null && (
          <span data-testid="read at">Figures of {formatClock(readAt, zone)}</span>
        )}
      </div>
      <StoppedTime value={stopped}>
        <div className={classes.figures} data-stale={stale !== null || undefined}>
          {children}
        </div>
      </StoppedTime>
    </>
  );
}

/** Says what is not answered; undefined where all is. */
function complaintOf(freshness: Freshness, zone: Zone): string | undefined {
  const { stale, missing, everything, because } = freshness;
  const sentences: string[] = [];
  if (stale !== null) {
    const about = everything ? "" : ` about ${listed(stale.nouns)}`;
    sentences.push(
      `No answer${about} since ${formatClock(stale.since, zone)}.`,
      everything ? "All figures below are from then." : "Figures of it below are from then.",
    );
  }
  if (missing.length > 0) sentences.push(`Could not be read: ${listed(missing)}.`);
  if (sentences.length === 0) return undefined;
  return [...sentences, because].filter(Boolean).join(" ");
}

function listed(nouns: readonly string[]): string {
  return nouns.length < 2
    ? nouns.join("")
    : `${nouns.slice(0, -1).join(", ")} and ${String(nouns.at(-1))}`;
}

/** Returns an instant of this machine's clock by the service's. */
const byService = (atMs: number): Date => new Date(atMs + serverTime().getTime() - Date.now());

/** Formats an instant of this machine's clock by the service's; with its day unless it is today. */
function formatClock(atMs: number, zone: Zone): string {
  const now = serverTime();
  const [day, clock = "", name] = formatInstant(byService(atMs), zone).split(" ");
  const [today] = formatInstant(now, zone).split(" ");
  return [day === today ? "" : day, clock.slice(0, 8), name].filter(Boolean).join(" ");
}
