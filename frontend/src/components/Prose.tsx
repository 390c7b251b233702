import type { ReactElement } from "react";

/** Shows a sentence of the API, in which names are between backticks. */
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
