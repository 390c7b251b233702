import { cloneElement, isValidElement, type ReactElement, type ReactNode } from "react";
import { isLegible } from "@/lib/format/legible";
import { Escaped, Name, NAME_CHARS_MAX } from "./Name";

/**
 * Returns what a cell shows, with every long or unreadable text in it as a `Name`, or, where it is
 * a sentence, whole with escapes. It looks into elements, as into a link, and not into components
 * that make their own text.
 */
export function legibly(node: ReactNode, isSentence = false): ReactNode {
  if (typeof node === "string") {
    if (isSentence) return isLegible(node) ? node : <Escaped text={node} />;
    return node.length <= NAME_CHARS_MAX && isLegible(node) ? node : <Name text={node} />;
  }
  if (Array.isArray(node)) {
    const parts = node as ReactNode[];
    const shown = parts.map((part) => legibly(part, isSentence));
    return shown.some((part, at) => part !== parts[at]) ? keyed(shown) : node;
  }
  if (!isValidElement<{ children?: ReactNode }>(node)) return node;
  const { children } = node.props;
  if (children === undefined || typeof children === "function") return node;
  const shown = legibly(children, isSentence);
  return shown === children ? node : cloneElement(node as ReactElement, undefined, shown);
}

/** Gives the elements of a list keys of their places, which never change within a cell. */
function keyed(parts: ReactNode[]): ReactNode[] {
  return parts.map((part, at) =>
    isValidElement(part) && part.key === null ? cloneElement(part, { key: at }) : part,
  );
}
