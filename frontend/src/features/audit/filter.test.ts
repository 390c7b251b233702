import { describe, expect, it } from "vitest";
import { actionWords, auditQuery, exportPath } from "./filter";

const NOW = new Date("2026-11-21T15:04:05.123Z");

describe("the audit log's filter", () => {
  it("asks for nothing where nothing is chosen", () => {
    expect(auditQuery({}, NOW)).toEqual({});
  });

  it("goes back by hours from the minute, so that two looks in it are one query", () => {
    const later = new Date("2026-11-21T15:04:48Z");
    expect(auditQuery({ since: "24h" }, NOW)).toEqual({ from: "2026-11-20T15:04:00.000Z" });
    expect(auditQuery({ since: "24h" }, later)).toEqual(auditQuery({ since: "24h" }, NOW));
  });

  it("names actor, action and target as the API does", () => {
    expect(
      auditQuery({ actor: "key_1", action: "topic.create", type: "topic", target: "cl_1/a" }, NOW),
    ).toEqual({
      actor: "key_1",
      action: "topic.create",
      target_type: "topic",
      target_id: "cl_1/a",
    });
  });

  it("is the file's filter too", () => {
    expect(exportPath({ action: "topic.create", target_id: "cl_1/a b" }, "csv")).toBe(
      "/api/v1/audit-log/export?format=csv&action=topic.create&target_id=cl_1%2Fa+b",
    );
  });
});

describe("an entry", () => {
  it("reads as words", () => {
    expect(actionWords("api_key.create")).toBe("API key: create");
    expect(actionWords("signup")).toBe("Signup");
  });
});
