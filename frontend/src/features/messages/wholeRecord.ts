import type { Message, RecordBytes } from "@/lib/api/types";
import { bytesOf } from "./bytes";
import { layOutJson } from "./json";

/** Returns whether some of a record's bytes were left out. */
export function isCut({ key, value, headers }: Message): boolean {
  return [key, value, ...headers.map((header) => header.value)].some((part) => part?.truncated);
}

/** Returns the name of the file in which a record's key or value is kept. */
export function fileName(
  topic: string,
  record: Message,
  part: string,
  content: RecordBytes,
): string {
  const json = content.text !== null && !content.truncated && layOutJson(content.text) !== null;
  const ending = json ? "json" : content.text === null ? "bin" : "txt";
  return `${topic}-${String(record.partition)}-${record.offset}-${part.toLowerCase()}.${ending}`;
}

/** Has the browser keep bytes as a file, exactly as the record has them. */
export function download(name: string, content: RecordBytes): void {
  const address = URL.createObjectURL(new Blob([bytesOf(content)]));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has read it by then.
  setTimeout(() => {
    URL.revokeObjectURL(address);
  }, 60_000);
}
