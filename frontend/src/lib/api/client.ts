import createClient, { defaultPathSerializer, type Middleware } from "openapi-fetch";
import { partOf } from "@/lib/names";
import { noteServerTime } from "@/lib/serverTime";
import { DIGEST, noteAddress, noteDigest } from "./addresses";
import type { paths } from "./schema";
import { Problem, problemOf, unreachable } from "./problem";

let csrfToken: string | undefined;

/** Keeps the CSRF token of `GET /api/v1/session`, which every unsafe request sends. */
export function setCsrfToken(token: string | undefined): void {
  csrfToken = token;
}

/** No read takes longer, a wait for an operation and a search included: its server hangs. */
const ANSWER_MS = 30_000;

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function addressOf({ url }: Request): string {
  const { pathname, search } = new URL(url);
  return pathname + search;
}

const headers: Middleware = {
  // It runs within the call that asks, before anything is waited for: `noteAddress` relies on that.
  onRequest({ request }) {
    if (SAFE.has(request.method)) {
      noteAddress(addressOf(request));
      request.headers.set(DIGEST, "1");
      return new Request(request, { signal: AbortSignal.timeout(ANSWER_MS) });
    }
    if (csrfToken) request.headers.set("X-CSRFToken", csrfToken);
    if (request.method === "POST") request.headers.set("Idempotency-Key", randomKey());
  },
  onError({ request }) {
    return unreachable(request.method);
  },
  async onResponse({ request, response }) {
    noteServerTime(response.headers.get("Date"));
    if (response.ok) {
      if (SAFE.has(request.method)) noteDigest(addressOf(request), response.headers.get(DIGEST));
      return;
    }
    throw problemOf(response, await bodyOf(response), request.method);
  },
};

/** Returns the body of a refusal; undefined where it is not JSON, as a proxy's page. */
async function bodyOf(response: Response): Promise<unknown> {
  try {
    return (await response.clone().json()) as unknown;
  } catch {
    return undefined;
  }
}

/** Returns a path with its parameters filled in. All of them are names or ids. */
export function pathOf(template: string, names: Record<string, unknown>): string {
  const parts = Object.entries(names).map(([key, name]) => [key, partOf(String(name))]);
  return defaultPathSerializer(template, Object.fromEntries(parts) as Record<string, unknown>);
}

/** The typed client. On the same origin the browser sends the session's cookie by itself. */
export const api = createClient<paths>({ credentials: "same-origin", pathSerializer: pathOf });
api.use(headers);

/** The answer to `validate_only`, which the console never sends. */
type Validated = { valid: boolean };

/** Returns the body of an answer. An answer that is not ok was thrown as a `Problem` before. */
export async function body<T>(call: Promise<{ data?: T }>): Promise<Exclude<T, Validated>> {
  const { data } = await call;
  return data as Exclude<T, Validated>;
}

/** Waits for a call whose answer has no body. */
export async function done(call: Promise<unknown>): Promise<void> {
  await call;
}

/** Returns whether an error is an answer of the API with this status. */
export function isStatus(error: unknown, status: number): error is Problem {
  return error instanceof Problem && error.status === status;
}

/** Returns whether an error is a problem of the API with this code. */
export function isCode(error: unknown, code: string): error is Problem {
  return error instanceof Problem && error.code === code;
}
