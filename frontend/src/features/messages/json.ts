/**
 * JSON laid out by its text. `JSON.parse` would round numbers, sort keys that look like numbers to
 * the front, drop all but the last of repeated keys, and replace escapes; here every token stays as
 * it was written.
 */

/** JSON that is nested deeper is not laid out, as its indentation alone could take gigabytes. */
export const DEPTH_MAX = 100;

const INDENT = "  ";
/** A token of a valid JSON text: a bracket, comma, colon, string, number or word. */
const TOKEN = /[{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}[\],:"]+/g;

/** The text with its tokens on lines of their own, as `JSON.stringify(…, null, 2)` has them; null
 * where it is not JSON, or is nested deeper than `DEPTH_MAX`. */
export function layOutJson(text: string): string | null {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const parts: string[] = [];
  let depth = 0;
  let before = "";
  for (const [token] of text.matchAll(TOKEN)) {
    const opens = before === "{" || before === "[";
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    // An empty object or array stays on one line.
    if (opens !== closes || before === ",") parts.push("\n", INDENT.repeat(depth));
    parts.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth += 1;
    if (depth > DEPTH_MAX) return null;
    before = token;
  }
  return parts.join("");
}
