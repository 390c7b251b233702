import { expect, test } from "vitest";
import { aclWords, templateAcls } from "./templates";

const input = { principal: "User:app", topic: "orders", group: "app", prefixed: false };

test("a consumer reads its topic and its group, and nothing else", () => {
  expect(templateAcls("consume", input).map(aclWords)).toEqual([
    "allow READ on topic orders",
    "allow DESCRIBE on topic orders",
    "allow READ on group app",
  ]);
});

test("prefixes cover what follows, but a star stays a star", () => {
  const rules = templateAcls("produce", { ...input, prefixed: true });
  expect(rules.map((acl) => acl.pattern_type)).toEqual(["PREFIXED", "PREFIXED"]);
  const all = templateAcls("produce", { ...input, topic: "", prefixed: true });
  expect(all[0]).toMatchObject({ resource_name: "*", pattern_type: "LITERAL" });
});

test("a Streams application owns what begins with its id", () => {
  const own = templateAcls("streams", input).filter((acl) => acl.resource_name === "app");
  expect(own.map((acl) => acl.pattern_type)).toEqual(["PREFIXED", "PREFIXED", "PREFIXED"]);
});
