import type { ReactElement } from "react";

/** A sentence of the API's, in which names stand between backticks. */
export function Prose({ text }: { text: string }): ReactElement {
  return (
    <>
      {text.split("`").map((part, index) => {
        const key = `${String(index)} ${part}`;
        return index % 2 === 1 ? <code key={key}>{part}</code> : part;
      })}
    </>
  );
}
