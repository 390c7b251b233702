import { expect, test } from "vitest";
import {
  answerComplaint,
  exampleOf,
  operationAt,
  operationNames,
  requestComplaint,
  statusOf,
} from "./contract";

test("what every operation answers here is what its description says", () => {
  expect(operationNames.length).toBeGreaterThan(100);
  for (const name of operationNames) {
    expect(answerComplaint(name, statusOf(name), exampleOf(name))).toBeUndefined();
  }
});

test("an answer of another shape is a complaint", () => {
  const page = exampleOf("GET /api/v1/clusters");
  const name = "GET /api/v1/clusters";
  expect(answerComplaint(name, 200, { ...page, items: [{}] })).toContain("required property");
  expect(answerComplaint(name, 200, { ...page, next_cursor: 7 })).toContain("next_cursor");
  expect(answerComplaint(name, 418, page)).toContain("answers no 418");
  expect(answerComplaint(name, 403, { detail: "no" })).toContain("required property");
  expect(answerComplaint("DELETE /api/v1/alerts/{id}", 204, {})).toContain("without a body");
});

test("a request of another shape is a complaint", () => {
  const create = "POST /api/v1/budgets";
  const body = { name: "Team", amount_minor: 5000, thresholds: [50], action: "notify" };
  const none = new URLSearchParams();
  expect(requestComplaint(create, none, body)).toBeUndefined();
  expect(requestComplaint(create, none, { ...body, amount_minor: "50" })).toContain("integer");
  expect(requestComplaint(create, none, undefined)).toContain("nothing was sent");
  const list = "GET /api/v1/budgets";
  expect(requestComplaint(list, new URLSearchParams("limit=10"), undefined)).toBeUndefined();
  expect(requestComplaint(list, new URLSearchParams("limit=ten"), undefined)).toContain("limit");
  expect(requestComplaint(list, new URLSearchParams("colour=red"), undefined)).toContain("colour");
});

test("an action is not an id, and an unknown address is nobody's", () => {
  const accept = "POST /api/v1/invitations/accept";
  expect(operationAt("POST", "/api/v1/invitations/accept")).toBe(accept);
  expect(operationAt("POST", "/api/v1/clusters/cl_a:wake")).toBe("POST /api/v1/clusters/{id}:wake");
  expect(operationAt("GET", "/api/v1/clusters/cl_a")).toBe("GET /api/v1/clusters/{id}");
  expect(operationAt("GET", "/api/v1/clusterz")).toBeUndefined();
  expect(operationAt("PATCH", "/api/v1/prices")).toBeUndefined();
});

test("an example is a copy of one's own, and is found by its title", () => {
  const first = exampleOf("GET /api/v1/clusters/{id}");
  first.name = "changed";
  expect(exampleOf("GET /api/v1/clusters/{id}").name).toBe("orders");
  expect(exampleOf("GET /api/v1/usage", "ASumByCluster").items[0]?.id).toBeNull();
  expect(() => exampleOf("GET /api/v1/usage", "None")).toThrow("has no example None");
});
