import { VisuallyHidden } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactElement, ReactNode } from "react";
import { Quantity } from "@/components/Quantity";
import { Tile, Tiles } from "@/components/Tile";
import type { Stored } from "@/lib/api/types";
import { formatBytes } from "@/lib/format/bytes";
import {
  exactQuantity,
  formatQuantity,
  isBillable,
  isTimed,
  meterMeaning,
  meterName,
  METERS,
} from "@/lib/format/meters";
import { utcDayOfMonth, utcTime } from "@/lib/format/utc";
import type { UsageSeries } from "../api/usage";
import { passedMinutes } from "../pictures";
import { filteredSums, type MeterSum, partWords } from "../sums";

interface Props {
  /** The range that is summed; undefined while it loads. */
  usage: UsageSeries | undefined;
  sums: readonly MeterSum[] | undefined;
  /** What topics hold now; undefined where it is not known. */
  stored: Stored | undefined;
}

/**
 * The tiles with the billed sums of a range, each with what is not billed apart. Each figure links
 * to the rows that it is the sum of.
 */
export function UsageTiles({ usage, sums, stored }: Props): ReactElement {
  const minutes = usage && passedMinutes(usage.range, usage.readAt);
  return (
    <Tiles>
      {METERS.map((meter) => {
        const billed = isBillable(meter) || undefined;
        const all = sums && filteredSums(sums, { meter, billed });
        return (
          <Tile
            key={meter}
            label={meterName(meter)}
            value={
              all &&
              minutes !== undefined && (
                <RowsLink meter={meter} billed={billed}>
                  <VisuallyHidden>{meterName(meter)}: show the rows of </VisuallyHidden>
                  <Quantity meter={meter} quantity={totalOfSums(all)} minutes={minutes} />
                </RowsLink>
              )
            }
            note={
              <>
                <div>{noteOf(meter)}</div>
                {meter === "storage_byte_minutes" && stored && <Held stored={stored} />}
                {sums &&
                  minutes !== undefined &&
                  billed &&
                  filteredSums(sums, { meter, billed: false }).map((sum) => (
                    <NotBilled key={sum.part} sum={sum} minutes={minutes} />
                  ))}
              </>
            }
          />
        );
      })}
    </Tiles>
  );
}

const totalOfSums = (sums: readonly MeterSum[]): bigint =>
  sums.reduce((total, { quantity }) => total + quantity, 0n);

interface RowsLinkProps {
  meter: string;
  billed: boolean | undefined;
  children: ReactNode;
}

function RowsLink({ meter, billed, children }: RowsLinkProps): ReactElement {
  return (
    <Link
      from="/usage"
      to="/usage"
      search={(before) => ({ ...before, meter, billed })}
      hash="rows"
      hashScrollIntoView={{ behavior: "smooth" }}
      resetScroll={false}
      title={meterMeaning(meter)}
    >
      {children}
    </Link>
  );
}

/** What is not billed of a meter, and why. */
function NotBilled({ sum, minutes }: { sum: MeterSum; minutes: number }): ReactElement {
  const { meter, part, quantity } = sum;
  return (
    <div title={exactQuantity(meter, quantity)}>
      <RowsLink meter={meter} billed={false}>
        {formatQuantity(meter, quantity, minutes)} more
      </RowsLink>
      , {partWords(part)}
    </div>
  );
}

/** The bytes that topics hold at present, whatever the time that the page shows. */
function Held({ stored }: { stored: Stored }): ReactElement | null {
  if (stored.at === null) return null;
  const at = new Date(stored.at);
  return (
    <div title={exactBytes(stored)}>
      {formatBytes(stored.bytes)} at {utcDayOfMonth(at)}, {utcTime(at)} UTC
    </div>
  );
}

const exactBytes = ({ bytes }: Stored): string => exactQuantity("ingress_bytes", bytes);

function noteOf(meter: string): string {
  if (!isBillable(meter)) return "never billed";
  return isTimed(meter) ? "on average" : "in this time";
}
