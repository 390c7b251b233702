import { describe, expect, test } from "vitest";
import type { Acl } from "@/lib/api/types";
import { LESSON } from "@/testing/lesson";
import { connectionOf } from "./connection";
import { missingRights, rightsOfSnippets } from "./rights";
import { type Connection, LANGUAGES } from "./snippets";

const plain: Connection = {
  listener: "SASL_PLAINTEXT",
  bootstrapServers: "127.0.0.1:9092,127.0.0.1:9093",
  username: "console-k3",
  password: `p'a"s\\s`,
  mechanism: "SCRAM-SHA-512",
  topic: "orders",
  caPath: "my folder/ca.pem",
};

function textOf(id: string, connection: Connection): string {
  const language = LANGUAGES.find((entry) => entry.id === id);
  if (!language) throw new Error(`no language ${id}`);
  return language
    .blocks(connection)
    .map((block) => block.code)
    .join("\n");
}

describe.each(LANGUAGES.map(({ id }) => id))("%s", (id) => {
  test("names the brokers, the topic and the user", () => {
    const text = textOf(id, plain);
    for (const name of ["127.0.0.1:9092", "127.0.0.1:9093", "orders", "console-k3"]) {
      expect(text).toContain(name);
    }
  });

  test("names the authority with TLS only", () => {
    expect(textOf(id, plain)).not.toContain("ca.pem");
    expect(textOf(id, { ...plain, listener: "SASL_SSL" })).toContain("my folder/ca.pem");
  });
});

test("the tutorial has the console's program, and the commands around it", () => {
  const connection: Connection = {
    ...plain,
    bootstrapServers: "127.0.0.1:9092",
    username: "USERNAME",
    password: "PASSWORD",
    topic: "hello-freshet",
  };
  const [first] = LANGUAGES;
  expect(first?.label).toBe("Python");
  const blocks = [...LESSON.matchAll(/^```(?:python)?\n(.*?)^```$/gms)].map(([, code]) => code);
  for (const { code } of first?.blocks(connection) ?? []) {
    expect(blocks).toContain(code.endsWith("\n") ? code : `${code}\n`);
  }
});

test("each snippet reads in the group that it names", () => {
  for (const { id, group } of LANGUAGES) expect(textOf(id, plain)).toContain(group);
});

describe("the rights of the snippets", () => {
  const needed = rightsOfSnippets("User:u", "orders");
  const acl = (change: Partial<Acl>): Acl => ({
    id: "acl_1",
    principal: "User:u",
    resource_type: "TOPIC",
    resource_name: "*",
    pattern_type: "LITERAL",
    operation: "ALL",
    permission: "ALLOW",
    host: "*",
    ...change,
  });
  const words = (rights: ReturnType<typeof missingRights>): string[] =>
    rights.map((right) => `${right.operation} ${right.resource_type} ${right.resource_name}`);

  test("are those of one topic and of the snippets' groups", () => {
    expect(words(needed)).toEqual([
      "WRITE TOPIC orders",
      "READ TOPIC orders",
      "READ GROUP python-group",
      "READ GROUP java-group",
      "READ GROUP node-group",
      "READ GROUP go-group",
      "READ GROUP kcat-group",
    ]);
  });

  test("are missing where no rule grants them", () => {
    expect(missingRights(needed, [])).toEqual(needed);
    const groups = acl({ resource_type: "GROUP" });
    expect(missingRights(needed, [acl({}), groups])).toEqual([]);
    const ofAnother = acl({ resource_name: "order" });
    const denied = acl({ permission: "DENY" });
    const elsewhere = acl({ host: "10.0.0.1" });
    for (const rule of [ofAnother, denied, elsewhere]) {
      expect(words(missingRights(needed, [rule, groups]))).toEqual([
        "WRITE TOPIC orders",
        "READ TOPIC orders",
      ]);
    }
    const prefixed = acl({ resource_name: "order", pattern_type: "PREFIXED", operation: "READ" });
    expect(words(missingRights(needed, [prefixed, groups]))).toEqual(["WRITE TOPIC orders"]);
  });
});

test("passwords are quoted as each language wants it", () => {
  expect(textOf("kcat", plain)).toContain(`sasl.password='p'\\''a"s\\s'`);
  expect(textOf("python", plain)).toContain(`"sasl.password": "p'a\\"s\\\\s"`);
  expect(textOf("java", plain)).toContain(`password="p'a\\"s\\\\s";`);
});

test("each mechanism has its own login", () => {
  const simple = { ...plain, mechanism: "PLAIN" };
  expect(textOf("java", simple)).toContain("plain.PlainLoginModule");
  expect(textOf("go", simple)).toContain("plain.Auth");
  expect(textOf("go", { ...plain, mechanism: "SCRAM-SHA-256" })).toContain("AsSha256Mechanism");
  expect(textOf("node", plain)).toContain('mechanism: "scram-sha-512"');
});

describe("a connection", () => {
  const cluster = {
    bootstrap_servers: "127.0.0.1:9092",
    endpoints: [
      { listener: "SASL_PLAINTEXT" as const, bootstrap_servers: "127.0.0.1:9092" },
      { listener: "SASL_SSL" as const, bootstrap_servers: "a.kafka.localhost:9443" },
    ],
  };

  test("is the first endpoint's until another is chosen", () => {
    const first = connectionOf(cluster, ["t"], { caPath: "ca.pem" }, undefined);
    expect([first.bootstrapServers, first.topic, first.password]).toEqual([
      "127.0.0.1:9092",
      "t",
      "PASSWORD",
    ]);
    const tls = connectionOf(cluster, [], { caPath: "ca.pem", listener: "SASL_SSL" }, undefined);
    expect(tls.bootstrapServers).toBe("a.kafka.localhost:9443");
  });

  test("has the credential that was just made", () => {
    const fresh = { username: "u", password: "p", mechanism: "PLAIN" };
    const { username, password, mechanism } = connectionOf(
      cluster,
      [],
      { caPath: "ca.pem" },
      fresh,
    );
    expect({ username, password, mechanism }).toEqual(fresh);
  });
});
