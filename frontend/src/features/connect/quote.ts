/** Quotes a text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Quotes a text as a string literal of Python, JavaScript and Go. */
export function literal(text: string): string {
  return JSON.stringify(text);
}
