import { describe, expect, test } from "vitest";
import { explain, formErrors, problemOf, unreachable } from "./problem";

function refusal(status: number, headers: Record<string, string> = {}): Response {
  return new Response(null, { status, headers });
}

describe("a problem document", () => {
  test("says which field, which limit and which request", () => {
    const body = {
      title: "Not valid",
      detail: "The topic was refused",
      code: "invalid",
      request_id: "req_1",
      errors: [{ pointer: "/configs/retention.ms", detail: "must be a whole number" }],
      quota: { name: "partitions", limit: 100, used: 100 },
    };
    const problem = problemOf(refusal(422), body, "POST");
    const { happened, kept, requestId } = explain(problem);
    expect(happened).toBe(
      "The topic was refused. retention.ms: must be a whole number. " +
        "The limit partitions is 100, and 100 are in use.",
    );
    expect(kept).toBe("Nothing was changed.");
    expect(requestId).toBe("req_1");
    expect(formErrors(problem)).toEqual({ "configs.retention.ms": "must be a whole number" });
  });

  test("may be missing: a proxy's page still makes a sentence", () => {
    const problem = problemOf(refusal(502, { "x-request-id": "r2" }), undefined);
    expect(problem.code).toBe("http_502");
    expect(explain(problem).happened).toBe("The server failed to answer.");
    expect(explain(problem).requestId).toBe("r2");
  });

  test("says how long to wait", () => {
    const problem = problemOf(refusal(429, { "retry-after": "7" }), { title: "Slow down" });
    expect(explain(problem).next).toBe("Try again in 7 s.");
  });
});

test("a write without an answer does not claim that nothing happened", () => {
  expect(explain(unreachable("POST")).kept).toContain("may or may not have been made");
  expect(explain(unreachable("GET")).kept).toContain("nothing was changed");
});
