/** Names as parts of paths of the API and of the console. */

/**
 * Browsers take such a part for a step in the path, even if it is escaped. In a path it gets one
 * more `~` in front.
 */
const DOTS = /^~*\.{1,2}$/;

/** Returns the part of a path for a name. The caller percent-encodes it. */
export const partOf = (name: string): string => (DOTS.test(name) ? `~${name}` : name);

/** Returns the name of a percent-decoded part of a path. */
export const nameOf = (part: string): string =>
  part.startsWith("~") && DOTS.test(part) ? part.slice(1) : part;
