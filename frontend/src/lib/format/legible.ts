/**
 * Text of clients as it can be shown. Characters that draw nothing, move the cursor or turn the
 * direction of what follows would make a page show something else than what is there: they are
 * written as escapes. Letters of any script stay as they are.
 */

/**
 * Controls (but for line breaks and tabs where `kept`), soft hyphens, marks and overrides of
 * direction, spaces without width, separators of lines, tags, and halves of surrogate pairs. The
 * joiners U+200C and U+200D stay, since scripts and emoji need them.
 */
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

/** A piece of a text: as it is, or an escape that stands for a character. */
export interface Piece {
  text: string;
  escape: boolean;
}

function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (character === "\n") return "\\n";
  if (character === "\r") return "\\r";
  if (character === "\t") return "\\t";
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

/** Cuts a text into pieces. `lines`: line breaks and tabs stay, for text of several lines. */
export function piecesOf(text: string, { lines = false } = {}): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(UNSEEN)) {
    const [character] = match;
    if (lines && (character === "\n" || character === "\t")) continue;
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), escape: false });
    pieces.push({ text: escapeOf(character), escape: true });
    from = match.index + character.length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), escape: false });
  return pieces;
}

/** Returns a text in which escapes stand for what cannot be seen. */
export function legible(text: string, options?: { lines?: boolean }): string {
  return piecesOf(text, options)
    .map((piece) => piece.text)
    .join("");
}

/** Returns whether a text has characters that cannot be shown as they are. */
export function isLegible(text: string): boolean {
  return text.search(UNSEEN) === -1;
}
