/** The networks of a text, one a line or between commas. */
export function networksOf(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

/** What is wrong with networks as typed; null when nothing is. The service looks closer. */
export function networksComplaint(text: string): string | null {
  const wrong = networksOf(text).find((each) => !/^[0-9a-fA-F.:]+\/\d{1,3}$/.test(each));
  return wrong === undefined ? null : `${wrong} is no network such as 203.0.113.0/24`;
}
