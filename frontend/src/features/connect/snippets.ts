import type { ListenerName } from "@/lib/api/types";
import { goSnippet } from "./snippetGo";
import { javaSnippet } from "./snippetJava";
import { kcatSnippet } from "./snippetKcat";
import { nodeSnippet } from "./snippetNode";
import { pythonSnippet } from "./snippetPython";

/** All that a snippet needs to run as pasted. */
export interface Connection {
  listener: ListenerName;
  bootstrapServers: string;
  username: string;
  password: string;
  /** `SCRAM-SHA-512`, `SCRAM-SHA-256` or `PLAIN`. */
  mechanism: string;
  topic: string;
  /** Where the client finds the gateway's certificate authority; used with TLS only. */
  caPath: string;
}

/** A piece to copy: a command or a whole file. */
export interface Block {
  title: string;
  code: string;
}

export interface Language {
  id: string;
  label: string;
  blocks: (connection: Connection) => Block[];
}

/** Each one produces a record, then reads the topic in a group until Ctrl-C. */
export const LANGUAGES: Language[] = [
  { id: "kcat", label: "kcat", blocks: kcatSnippet },
  { id: "python", label: "Python", blocks: pythonSnippet },
  { id: "java", label: "Java", blocks: javaSnippet },
  { id: "node", label: "Node.js", blocks: nodeSnippet },
  { id: "go", label: "Go", blocks: goSnippet },
];
