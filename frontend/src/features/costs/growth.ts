import type { Price, UsageItem } from "@/lib/api/types";
import { inUnits, unitSize } from "@/lib/format/meters";
import { minorDigits } from "@/lib/format/money";
import { minutesOfMonth, monthStart } from "@/lib/format/utc";

/**
 * The growth of a meter's cost: minor units at the end of each day; null for days in the future.
 */
export interface Growth {
  meter: string;
  values: (number | null)[];
}

const DAY_MS = 86_400_000;

/** Returns the starts of all days of a month, in ms. */
export function daysOf(month: string): number[] {
  const first = monthStart(month).getTime();
  const count = (monthStart(month, 1).getTime() - first) / DAY_MS;
  return Array.from({ length: count }, (_, day) => first + day * DAY_MS);
}

/**
 * The cost of a month as it grew by the day: what is over the free quantity, times the price. It is
 * a picture only and is not rounded; the amounts beside it are the service's own.
 */
export function growthOf(
  items: readonly UsageItem[],
  prices: readonly Price[],
  currency: string,
  month: string,
  now: Date,
): Growth[] {
  const days = daysOf(month);
  const minutes = minutesOfMonth(month);
  const scale = 10 ** minorDigits(currency);
  return prices.map(({ meter, unit, unit_price, free_units, free_unit }) => {
    const free = free_units * unitSize(free_unit, minutes);
    const counted = items.filter((item) => item.billed && item.meter === meter);
    let quantity = 0;
    const values = days.map((day) => {
      if (day > now.getTime()) return null;
      for (const item of counted) {
        const start = Date.parse(item.window_start);
        if (start >= day && start < day + DAY_MS) quantity += Number(item.quantity);
      }
      const units = inUnits(Math.max(0, quantity - free), unit, minutes);
      return units * Number(unit_price) * scale;
    });
    return { meter, values };
  });
}

/**
 * Returns the line of the forecast, from the cost on the present day to that of the whole month.
 */
export function forecastLine(
  month: string,
  spent: number,
  forecast: number,
  now: Date,
): (number | null)[] {
  const days = daysOf(month);
  const today = days.findLastIndex((day) => day <= now.getTime());
  return days.map((_, index) => {
    if (index === days.length - 1) return forecast;
    return index === today ? spent : null;
  });
}

/** More lines than these would hide the cost, and fill a phone with their names. */
const BUDGETS_DRAWN = 4;

/** The budgets that a chart draws: those that are reached first. */
export function drawnBudgets<Limit extends { amountMinor: number }>(
  budgets: readonly Limit[],
): Limit[] {
  return budgets.toSorted((a, b) => a.amountMinor - b.amountMinor).slice(0, BUDGETS_DRAWN);
}
