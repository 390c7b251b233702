/** One word of a POSIX shell, whatever characters it has. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A string literal that Python, JavaScript and Go read alike. */
export function literal(text: string): string {
  return JSON.stringify(text);
}
