import { expect, test } from "vitest";
import type { ClientQuota } from "@/lib/api/types";
import { entityWords, kindOf, limitsAnything, NOTHING, quotaOf } from "./entities";
import { formatRate, parseRate, writeRate } from "./rates";

test("rates are read with and without units", () => {
  expect(parseRate("")).toBeNull();
  expect(parseRate("1000000")).toBe(1_000_000);
  expect(parseRate(" 10 MiB ")).toBe(10_485_760);
  expect(parseRate("2.5GB/s")).toBe(2_500_000_000);
  expect(parseRate("1,5 kib")).toBe(1536);
  for (const wrong of ["fast", "10 parsecs", "-1", "0", "1e9", "1 2"]) {
    expect(parseRate(wrong), wrong).toBeUndefined();
  }
});

test("a rate is written so that it is read as the same again", () => {
  for (const bytes of [1, 1023, 1024, 1536, 1_000_000, 10_485_760, 2_684_354_560]) {
    expect(parseRate(writeRate(bytes))).toBe(bytes);
  }
  expect(writeRate(10_485_760)).toBe("10 MiB");
  expect(writeRate(1_000_000)).toBe("1000000");
  expect(writeRate(null)).toBe("");
  expect(formatRate(1_572_864)).toBe("1.5 MiB/s");
});

const quota = (entity: Partial<ClientQuota>): ClientQuota => ({
  id: "qta_a",
  user: null,
  client_id: null,
  ip: null,
  produce_bytes_per_second: null,
  fetch_bytes_per_second: null,
  request_percentage: null,
  connections: null,
  connections_per_second: null,
  ...entity,
});

test("whom quotas are of is said in words", () => {
  const names = new Map([["cred_a", "web-shop"]]);
  const words = (entity: Partial<ClientQuota>): string => entityWords(quota(entity), names);
  expect(words({ user: "cred_a" })).toBe("web-shop");
  expect(words({ user: "cred_b" })).toBe("cred_b");
  expect(words({ user: "" })).toBe("every other credential");
  expect(words({ client_id: "etl" })).toBe("client id etl");
  expect(words({ user: "cred_a", client_id: "" })).toBe("every other client id of web-shop");
  expect(words({ ip: "" })).toBe("every other address");
  expect(words({ ip: "192.0.2.7" })).toBe("address 192.0.2.7");
  expect(kindOf(quota({ user: "", client_id: "etl" }))).toBe("both");
});

test("what is typed becomes a request of that kind alone", () => {
  const typed = { ...NOTHING, user: "cred_a", client: "etl", ip: "192.0.2.7", produce: "1 MiB" };
  expect(quotaOf({ ...typed, connections: 10 })).toEqual({
    user: "cred_a",
    client_id: null,
    ip: null,
    produce_bytes_per_second: 1_048_576,
    fetch_bytes_per_second: null,
    request_percentage: null,
    connections: 10,
  });
  expect(quotaOf({ ...typed, kind: "both", connections: 10 })).not.toHaveProperty("connections");
  expect(quotaOf({ ...typed, kind: "ip", attempts: 5 })).toEqual({
    user: null,
    client_id: null,
    ip: "192.0.2.7",
    connections_per_second: 5,
  });
  expect(limitsAnything(quotaOf(typed))).toBe(true);
  expect(limitsAnything(quotaOf({ ...typed, produce: "" }))).toBe(false);
});
