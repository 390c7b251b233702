import type { ListenerName } from "@/lib/api/types";
import { goSnippet } from "./snippetGo";
import { javaSnippet } from "./snippetJava";
import { kcatSnippet } from "./snippetKcat";
import { nodeSnippet } from "./snippetNode";
import { pythonSnippet } from "./snippetPython";

/** All values that a snippet needs to run as pasted. */
export interface Connection {
  listener: ListenerName;
  bootstrapServers: string;
  username: string;
  password: string;
  /** `SCRAM-SHA-512`, `SCRAM-SHA-256` or `PLAIN`. */
  mechanism: string;
  topic: string;
  /** The path of the file with the gateway's certificate authority; used with TLS only. */
  caPath: string;
}

/** A block of code to copy: a command or a whole file. */
export interface Block {
  title: string;
  code: string;
}

export interface Language {
  id: string;
  label: string;
  /** The consumer group in which the snippet reads. */
  group: string;
  blocks: (connection: Connection) => Block[];
}

/**
 * The languages of snippets. Each snippet produces a record, then reads the topic in a group until
 * Ctrl-C.
 */
export const LANGUAGES: Language[] = [
  { id: "python", label: "Python", group: "python-group", blocks: pythonSnippet },
  { id: "java", label: "Java", group: "java-group", blocks: javaSnippet },
  { id: "node", label: "Node.js", group: "node-group", blocks: nodeSnippet },
  { id: "go", label: "Go", group: "go-group", blocks: goSnippet },
  { id: "kcat", label: "kcat", group: "kcat-group", blocks: kcatSnippet },
];
