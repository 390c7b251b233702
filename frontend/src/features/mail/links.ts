/** A part of a mail's text; it has an `href` where it is a link. */
export interface Part {
  text: string;
  href?: string;
}

const LINK = /https?:\/\/[^\s<>"]+[^\s<>".,;:!?)]/g;

/** Splits a plain text into texts and links. */
export function linkify(text: string): Part[] {
  const parts: Part[] = [];
  let at = 0;
  for (const match of text.matchAll(LINK)) {
    if (match.index > at) parts.push({ text: text.slice(at, match.index) });
    parts.push({ text: match[0], href: match[0] });
    at = match.index + match[0].length;
  }
  if (at < text.length) parts.push({ text: text.slice(at) });
  return parts;
}
