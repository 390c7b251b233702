import { delay, http, HttpResponse, type JsonBodyType } from "msw";
import { setupServer } from "msw/node";
import {
  answerComplaint,
  type AnswerOf,
  exampleOf,
  operationAt,
  type OperationName,
  type ProblemBody,
  requestComplaint,
  statusOf,
} from "./contract";

/** A request that the console has made. */
export interface Sent {
  name: OperationName;
  pathname: string;
  query: Record<string, string>;
  body: unknown;
  headers: Headers;
}

type Responder = (sent: Sent) => Response | Promise<Response>;

const responders = new Map<OperationName, Responder>();
const requests: Sent[] = [];
const complaints: string[] = [];

/** Makes the JSON answer of an operation, and fails where its description says otherwise. */
function answerOf(name: OperationName, status: number, body: unknown): Response {
  const complaint = answerComplaint(name, status, body);
  if (complaint !== undefined) throw new Error(`a mocked answer breaks the contract: ${complaint}`);
  if (body === undefined) return new HttpResponse(null, { status });
  const type = status >= 400 ? "application/problem+json" : "application/json";
  return HttpResponse.json(body as JsonBodyType, { status, headers: { "Content-Type": type } });
}

/**
 * Has an operation answer with a body; with a function, with what it makes of the request. The body
 * is compared with the API's description when it is given, or when it is made.
 */
export function answer<Name extends OperationName>(
  name: Name,
  body: AnswerOf<Name> | ((sent: Sent) => AnswerOf<Name>),
): void {
  const made = typeof body === "function" ? (body as (sent: Sent) => AnswerOf<Name>) : undefined;
  if (!made) answerOf(name, statusOf(name), body);
  responders.set(name, (sent) => answerOf(name, statusOf(name), made ? made(sent) : body));
}

/** The same type with all members writable. */
type Editable<T> = T extends (infer Item)[]
  ? Editable<Item>[]
  : T extends object
    ? { -readonly [Key in keyof T]: Editable<T[Key]> }
    : T;

/** Has an operation answer with a changed copy of its first example. */
export function change<Name extends OperationName>(
  name: Name,
  edit: (example: Editable<AnswerOf<Name>>) => void,
): void {
  const body = exampleOf(name);
  edit(body as Editable<AnswerOf<Name>>);
  answer(name, body);
}

/** Has a list answer without rows. */
export function empty<Name extends OperationName>(
  ...names: AnswerOf<Name> extends { items: unknown[] } ? Name[] : never[]
): void {
  for (const name of names) {
    const page: unknown = { ...(exampleOf(name) as object), items: [], next_cursor: null };
    answer(name as Name, page as AnswerOf<Name>);
  }
}

type Refusal = Partial<ProblemBody> & { status: number; detail: string };

/** Returns the problem document of a refusal. */
export function problem(refusal: Refusal): ProblemBody {
  return {
    type: "about:blank",
    title: "The request was refused",
    code: "refused",
    request_id: "req_5v2jq7k3xw4mzn6yt2ba",
    ...refusal,
  };
}

/** Has an operation refuse with a problem document. */
export function refuse(name: OperationName, refusal: Refusal): void {
  const body = problem(refusal);
  answerOf(name, refusal.status, body);
  responders.set(name, () => answerOf(name, refusal.status, body));
}

/** Has an operation answer with any response: a stream, a page of a proxy, no answer at all. */
export function respond(name: OperationName, responder: Responder): void {
  responders.set(name, responder);
}

/** Keeps an operation from answering, so that the page shows its loading state. */
export function stall(name: OperationName): void {
  responders.set(name, async () => {
    await delay("infinite");
    return HttpResponse.error();
  });
}

/** Returns all requests, oldest first. */
export function sent(): readonly Sent[] {
  return requests;
}

/** Returns the requests to an operation, oldest first. */
export function sentTo(name: OperationName): Sent[] {
  return requests.filter((sent) => sent.name === name);
}

/** Returns the only request to an operation; fails where there is not exactly one. */
export function onlySentTo(name: OperationName): Sent {
  const [sent, ...more] = sentTo(name);
  if (!sent || more.length > 0) {
    throw new Error(`${name} was asked ${String(sentTo(name).length)} times`);
  }
  return sent;
}

async function respondTo(request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const name = operationAt(request.method, pathname);
  if (!name) throw new Error(`the API has no ${request.method} ${pathname}`);
  const written = await request.text();
  const body: unknown = written === "" ? undefined : JSON.parse(written);
  const complaint = requestComplaint(name, searchParams, body);
  if (complaint !== undefined) throw new Error(`a request breaks the contract: ${complaint}`);
  const query = Object.fromEntries(searchParams);
  const sent: Sent = { name, pathname, query, body, headers: request.headers };
  requests.push(sent);
  const responder = responders.get(name);
  return responder ? responder(sent) : answerOf(name, statusOf(name), exampleOf(name));
}

// Operations without a set answer are answered with the examples of the OpenAPI file.
const server = setupServer(
  http.all("*/api/*", async ({ request }) => {
    try {
      return await respondTo(request);
    } catch (error) {
      complaints.push(String(error));
      return HttpResponse.error();
    }
  }),
  http.get("*/readyz", () => HttpResponse.json({ ready: true, parts: {} })),
);

// The console's client keeps the `fetch` that it finds when it is loaded, which is this one.
server.listen({ onUnhandledRequest: "error" });

/** Forgets the set answers and the requests; returns what broke the contract meanwhile. */
export function takeComplaints(): string[] {
  responders.clear();
  requests.length = 0;
  return complaints.splice(0);
}

/** Returns an error of the service about one field: its place in the body, and what is wrong. */
export function fieldError(
  pointer: string,
  detail: string,
): NonNullable<ProblemBody["errors"]>[number] {
  return { pointer, detail, code: "invalid" };
}
