/** Amounts are integers of the currency's minor unit (cents) and are formatted without floats. */

/** Returns how many digits a currency's minor unit has: 2 for USD, 0 for JPY. */
export function minorDigits(currency: string): number {
  const format = new Intl.NumberFormat("en-US", { style: "currency", currency });
  return format.resolvedOptions().maximumFractionDigits ?? 2;
}

function symbolOf(currency: string): string {
  const parts = new Intl.NumberFormat("en-US", { style: "currency", currency }).formatToParts(0);
  return parts.find(({ type }) => type === "currency")?.value ?? currency;
}

const grouped = (digits: string): string => digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** Formats an amount in minor units: `123456`, `USD` → `$1,234.56`. */
export function formatMoney(minor: number, currency: string): string {
  const digits = minorDigits(currency);
  const text = String(Math.abs(Math.round(minor))).padStart(digits + 1, "0");
  const whole = grouped(text.slice(0, text.length - digits));
  const fraction = digits > 0 ? `.${text.slice(-digits)}` : "";
  const sign = minor < 0 ? "−" : "";
  return `${sign}${symbolOf(currency)}${whole}${fraction}`;
}

/** Formats a unit price, which is a decimal as text: `0.000500000` → `$0.0005`, `4` → `$4.00`. */
export function formatUnitPrice(price: string, currency: string): string {
  const [whole = "0", fraction = ""] = price.replace(/^-/, "").split(".");
  const needed = fraction.replace(/0+$/, "").padEnd(minorDigits(currency), "0");
  const sign = price.startsWith("-") ? "−" : "";
  return `${sign}${symbolOf(currency)}${grouped(whole)}${needed ? `.${needed}` : ""}`;
}

/** Parses a typed amount as minor units: `12.5` → 1250. Null where it is wrong. */
export function parseMoney(text: string, currency: string): number | null {
  const digits = minorDigits(currency);
  const match = /^(\d{1,12})(?:\.(\d*))?$/.exec(text.trim().replace(/[,\s]/g, ""));
  const fraction = match?.[2] ?? "";
  if (!match?.[1] || fraction.length > digits) return null;
  return Number(match[1] + fraction.padEnd(digits, "0"));
}

/** Writes an amount as the text of a field: 1250 → `12.50`. */
export function editMoney(minor: number, currency: string): string {
  const digits = minorDigits(currency);
  const text = String(minor).padStart(digits + 1, "0");
  const cut = text.length - digits;
  return digits > 0 ? `${text.slice(0, cut)}.${text.slice(cut)}` : text;
}
