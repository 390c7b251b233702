/** Reads what staff types about money. */
import { parseMoney } from "@/lib/format/money";

/** Parses an amount above 0 of a currency as minor units; null where either is wrong. */
export function amountOf(text: string, currency: string): number | null {
  if (!/^[A-Z]{3}$/.test(currency)) return null;
  const minor = parseMoney(text, currency);
  return minor !== null && minor > 0 ? minor : null;
}

/** Parses a day such as `2026-12-10` as its first instant in UTC; null where there is none. */
export function dayOf(text: string): string | null {
  const day = text.trim();
  const at = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN;
  // A day that the month does not have would be one of the next month.
  return new Date(at || Number.NaN).toJSON()?.startsWith(day) ? `${day}T00:00:00Z` : null;
}

const ORGANIZATION = /^org_[a-z2-7]{20}$/;

/** Tells whether a text is the id of an organization, and not a reference. */
export const isOrganization = (text: string): boolean => ORGANIZATION.test(text.trim());
