import text from "../../../docs/tutorials/first-cluster.md?raw";

/** The tutorial of a first cluster, as Markdown. It shows a program that the console shows too. */
export const LESSON: string = text;
