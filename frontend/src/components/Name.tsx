import type { ReactElement } from "react";
import { isLegible, legible, piecesOf } from "@/lib/format/legible";
import classes from "./Name.module.css";

/** A text that is longer than this is cut in its middle. */
export const NAME_CHARS_MAX = 44;
/** So many characters of its end stay in view: names often differ only there. */
const TAIL_CHARS = 12;

/** Text that clients wrote: what cannot be seen is written as escapes that look like such. */
export function Escaped({ text, lines }: { text: string; lines?: boolean }): ReactElement {
  if (isLegible(text)) return <>{text}</>;
  return (
    <>
      {piecesOf(text, { lines }).map((piece, at) =>
        piece.escape ? (
          <span key={at} className={classes.escape}>
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </>
  );
}

/**
 * A name in a bounded width: the middle of a long one is left out. All of it is in the page, so
 * that it is copied and found whole, and is shown on hover.
 */
export function Name({ text }: { text: string }): ReactElement {
  const shown = legible(text);
  if (shown.length <= NAME_CHARS_MAX) {
    return (
      <bdi>
        <Escaped text={text} />
      </bdi>
    );
  }
  // By characters, so that none is cut into halves.
  const characters = [...shown];
  const head = characters.slice(0, -TAIL_CHARS).join("");
  const tail = characters.slice(-TAIL_CHARS).join("");
  return (
    <bdi className={classes.long} title={shown}>
      <span className={classes.head}>{head}</span>
      <span>{tail}</span>
    </bdi>
  );
}
