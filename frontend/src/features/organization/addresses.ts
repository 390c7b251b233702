/** Returns the networks in a text, which are separated by lines or commas. */
export function networksOf(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

/**
 * Returns what is wrong with typed networks; null where nothing is. The service checks them fully.
 */
export function networksComplaint(text: string): string | null {
  const wrong = networksOf(text).find((network) => !/^[0-9a-fA-F.:]+\/\d{1,3}$/.test(network));
  return wrong === undefined ? null : `${wrong} is no network such as 203.0.113.0/24`;
}
