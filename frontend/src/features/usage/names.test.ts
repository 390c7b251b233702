import { expect, test } from "vitest";
import type { UsageItem } from "@/lib/api/types";
import { groupNames, type Names, principalName } from "./names";

const NAMES: Names = { clusters: new Map(), credentials: { "User:cred_a": "writer" } };

function item(principal: string, principal_name: string | null): UsageItem {
  return {
    id: null,
    meter: "egress_bytes",
    unit: "byte",
    quantity: "1",
    window_start: "2026-11-20T00:00:00Z",
    window_end: "2026-11-21T00:00:00Z",
    provisional: true,
    billed: true,
    cluster_id: "cl_a",
    topic_id: null,
    topic: null,
    principal,
    principal_name,
  };
}

test("keys and members have the names that came with their usage", () => {
  const items = [
    item("ApiKey:key_a", "deploys"),
    item("Member:usr_a", null),
    item("User:bob", null),
  ];
  const nameOf = groupNames(items, "principal", NAMES);
  expect(nameOf("ApiKey:key_a")).toBe("deploys");
  expect(nameOf("Member:usr_a")).toBe("Member:usr_a");
  expect(nameOf("User:bob")).toBe("User:bob");
  expect(nameOf("")).toBe("No credential");
});

test("a credential keeps its name, and the service is called by ours", () => {
  expect(principalName("User:cred_a", NAMES)).toBe("writer");
  expect(principalName("User:__freshet", NAMES, "Freshet itself")).toBe("Freshet itself");
  expect(principalName(null, NAMES)).toBe("–");
});
