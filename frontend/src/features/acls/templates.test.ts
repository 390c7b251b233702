import { describe, expect, it } from "vitest";
import type { AclTemplate } from "@/lib/api/types";
import { aclWords, templateAcls, templateRequest } from "./templates";

const input = {
  principal: "User:app",
  topic: "orders",
  group: "app",
  transactionalId: "",
  prefixed: false,
};

const PRODUCER: AclTemplate = {
  template: "producer",
  description: "Writes to topics.",
  needs: [],
  takes: ["transactional_id"],
  entries: [
    { resource_type: "TOPIC", resource_name: "topic", pattern_type: null, operation: "WRITE" },
    {
      resource_type: "TRANSACTIONAL_ID",
      resource_name: "transactional_id",
      pattern_type: "LITERAL",
      operation: "WRITE",
    },
  ],
};

describe("a template's request", () => {
  it("names all where nothing is typed, and never a prefix of all", () => {
    expect(
      templateRequest("consumer", { ...input, topic: " ", group: "", prefixed: true }),
    ).toEqual({
      template: "consumer",
      principal: "User:app",
      topic: "*",
      pattern_type: "LITERAL",
      group: "*",
    });
  });

  it("says only what its template takes", () => {
    const typed = { ...input, transactionalId: "app-1" };
    expect(templateRequest("producer", typed)).not.toHaveProperty("group");
    expect(templateRequest("producer", typed)).toHaveProperty("transactional_id", "app-1");
    expect(templateRequest("consumer", typed)).not.toHaveProperty("transactional_id");
  });
});

describe("a template's rules", () => {
  it("are those whose names are given, the topic's with its own pattern", () => {
    const request = templateRequest("producer", { ...input, prefixed: true });
    expect(templateAcls(PRODUCER, request).map(aclWords)).toEqual(["allow WRITE on topic orders*"]);
  });

  it("include what was given besides", () => {
    const request = templateRequest("producer", { ...input, transactionalId: "app-1" });
    expect(templateAcls(PRODUCER, request).map(aclWords)).toEqual([
      "allow WRITE on topic orders",
      "allow WRITE on transactional id app-1",
    ]);
  });
});
