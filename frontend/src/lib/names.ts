/** Names as parts of paths, the API's and the console's own. */

/** Browsers take these for steps, escaped or not: in a path they have one `~` more. */
const DOTS = /^~*\.{1,2}$/;

/** The part of a path that means a name; whoever puts it into one percent-encodes it. */
export const partOf = (name: string): string => (DOTS.test(name) ? `~${name}` : name);

/** The name that a part of a path, percent-decoded, means. */
export const nameOf = (part: string): string =>
  part.startsWith("~") && DOTS.test(part) ? part.slice(1) : part;
