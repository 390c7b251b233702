import { keptOf, nextOf } from "./hints";

/** An entry of `errors` in a problem+json body: a field, and what is wrong with it. */
export interface FieldError {
  pointer: string;
  detail: string;
}

export interface Quota {
  name: string;
  limit: number;
  used: number;
}

interface ProblemInit {
  status: number;
  code: string;
  title: string;
  detail?: string;
  requestId?: string;
  errors?: FieldError[];
  quota?: Quota;
  retryAfterS?: number;
  method?: string;
}

/** A refused or failed call to the API, from its RFC 9457 body where there is one. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly requestId: string | undefined;
  readonly errors: FieldError[];
  readonly quota: Quota | undefined;
  readonly retryAfterS: number | undefined;
  readonly method: string;

  constructor(init: ProblemInit) {
    super(init.detail || init.title);
    this.name = "Problem";
    this.status = init.status;
    this.code = init.code;
    this.title = init.title;
    this.detail = init.detail ?? "";
    this.requestId = init.requestId;
    this.errors = init.errors ?? [];
    this.quota = init.quota;
    this.retryAfterS = init.retryAfterS;
    this.method = init.method ?? "GET";
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

const text = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;

function fieldErrors(value: unknown): FieldError[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isRecord).map((entry) => ({
    pointer: text(entry.pointer) ?? "",
    detail: text(entry.detail) ?? text(entry.title) ?? "is not valid",
  }));
}

function quotaOf(value: unknown): Quota | undefined {
  if (!isRecord(value)) return undefined;
  const { name, limit, used } = value;
  if (typeof name !== "string" || typeof limit !== "number" || typeof used !== "number") {
    return undefined;
  }
  return { name, limit, used };
}

/** Makes a `Problem` of an answer that is not ok, whatever its body is. */
export function problemOf(response: Response, body: unknown, method = "GET"): Problem {
  const fields = isRecord(body) ? body : {};
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new Problem({
    status: response.status,
    code: text(fields.code) ?? `http_${String(response.status)}`,
    title: text(fields.title) ?? titleOf(response.status),
    detail: text(fields.detail),
    requestId: text(fields.request_id) ?? response.headers.get("x-request-id") ?? undefined,
    errors: fieldErrors(fields.errors),
    quota: quotaOf(fields.quota),
    retryAfterS: Number.isFinite(retryAfter) ? retryAfter : undefined,
    method,
  });
}

/** Makes a `Problem` of a request that got no answer at all. */
export function unreachable(method: string): Problem {
  return new Problem({
    status: 0,
    code: "unreachable",
    title: "The console could not reach its server",
    method,
  });
}

function titleOf(status: number): string {
  if (status === 404) return "There is nothing at this address";
  if (status === 429) return "Too many requests";
  if (status >= 500) return "The server failed to answer";
  return "The request was refused";
}

/** The explanation of an error: what happened, what was not lost, what to do, the request's id. */
export interface Explanation {
  happened: string;
  kept: string;
  next: string;
  requestId: string | undefined;
}

/** Explains any error of a query or a mutation. */
export function explain(error: unknown): Explanation {
  if (!(error instanceof Problem)) {
    return {
      happened: error instanceof Error ? error.message : "The page failed to show this.",
      kept: "Nothing was changed on the service.",
      next: "Reload the page. If it happens again, report the text above.",
      requestId: undefined,
    };
  }
  return {
    happened: happenedOf(error),
    kept: keptOf(error),
    next: nextOf(error),
    requestId: error.requestId,
  };
}

function happenedOf(problem: Problem): string {
  const sentence = problem.detail || problem.title;
  const lines = problem.errors.map((e) => `${fieldName(e.pointer)}: ${e.detail}`);
  if (problem.quota) {
    const { name, used, limit } = problem.quota;
    lines.push(`The limit ${name} is ${String(limit)}, and ${String(used)} are in use`);
  }
  return [sentence, ...lines].map((line) => line.replace(/\.?$/, ".")).join(" ");
}

/**
 * Returns the words of a JSON pointer: `/spec/idle_timeout_s` → `idle timeout s`. An empty pointer
 * gives `the request`.
 */
export function fieldName(pointer: string): string {
  const last = pointer.split("/").filter(Boolean).pop();
  return last ? last.replaceAll("_", " ") : "The request";
}

/** Returns errors by field, for a form whose fields have the names of the request's members. */
export function formErrors(error: unknown): Record<string, string> {
  if (!(error instanceof Problem)) return {};
  const entries = error.errors.map((e): [string, string] => [
    e.pointer.split("/").filter(Boolean).join("."),
    e.detail,
  ]);
  return Object.fromEntries(entries.filter(([name]) => name !== ""));
}
