import createClient, { defaultPathSerializer, type Middleware } from "openapi-fetch";
import { partOf } from "@/lib/names";
import type { paths } from "./schema";
import { Problem, problemOf, unreachable } from "./problem";

let csrfToken: string | undefined;

/** Remembers the token of `GET /api/v1/session`; every unsafe request sends it. */
export function setCsrfToken(token: string | undefined): void {
  csrfToken = token;
}

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const headers: Middleware = {
  onRequest({ request }) {
    if (SAFE.has(request.method)) return;
    if (csrfToken) request.headers.set("X-CSRFToken", csrfToken);
    if (request.method === "POST") request.headers.set("Idempotency-Key", randomKey());
  },
  onError({ request }) {
    return unreachable(request.method);
  },
  async onResponse({ request, response }) {
    if (response.ok) return;
    throw problemOf(response, await bodyOf(response), request.method);
  },
};

/** The body of a refusal. A proxy may answer with a page: that has no members to read. */
async function bodyOf(response: Response): Promise<unknown> {
  try {
    return (await response.clone().json()) as unknown;
  } catch {
    return undefined;
  }
}

/** A path with its parameters, all of which are names or ids. */
export function pathOf(template: string, names: Record<string, unknown>): string {
  const parts = Object.entries(names).map(([key, name]) => [key, partOf(String(name))]);
  return defaultPathSerializer(template, Object.fromEntries(parts) as Record<string, unknown>);
}

/** The typed client. Same origin: the session's cookie goes along by itself. */
export const api = createClient<paths>({ credentials: "same-origin", pathSerializer: pathOf });
api.use(headers);

/** What `validate_only` answers, which the console never asks for. */
type Validated = { valid: boolean };

/** The answer's body; what is not ok has been thrown as a `Problem` before. */
export async function body<T>(call: Promise<{ data?: T }>): Promise<Exclude<T, Validated>> {
  const { data } = await call;
  return data as Exclude<T, Validated>;
}

/** Waits for a call whose answer has no body. */
export async function done(call: Promise<unknown>): Promise<void> {
  await call;
}

/** Tells whether an error is the API's answer with this status. */
export function isStatus(error: unknown, status: number): error is Problem {
  return error instanceof Problem && error.status === status;
}

/** Tells whether an error is the API's refusal with this stable code. */
export function isCode(error: unknown, code: string): error is Problem {
  return error instanceof Problem && error.code === code;
}
