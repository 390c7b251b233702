import type { Acl } from "@/lib/api/types";

export type Template = "produce" | "consume" | "streams" | "custom";

export const TEMPLATES: { value: Template; label: string; grants: string }[] = [
  { value: "produce", label: "Produce", grants: "Write to topics, idempotently if it likes" },
  { value: "consume", label: "Consume", grants: "Read topics and commit in a group" },
  { value: "streams", label: "Kafka Streams", grants: "All that an application id needs" },
  { value: "custom", label: "One rule", grants: "Any operation, allowed or denied" },
];

export interface TemplateInput {
  /** `User:…` */
  principal: string;
  topic: string;
  group: string;
  /** Names are prefixes: `orders` also covers `orders-eu`. */
  prefixed: boolean;
}

/** The rules that Kafka's own tools would add for a producer, a consumer, a Streams application. */
export function templateAcls(template: Exclude<Template, "custom">, input: TemplateInput): Acl[] {
  const topic = input.topic || "*";
  const group = input.group || "*";
  const pattern = (name: string): Acl["pattern_type"] =>
    input.prefixed && name !== "*" ? "PREFIXED" : "LITERAL";
  const allow = (
    type: Acl["resource_type"],
    name: string,
    operation: Acl["operation"],
    kind = pattern(name),
  ): Acl => ({
    principal: input.principal,
    resource_type: type,
    resource_name: name,
    pattern_type: kind,
    operation,
    permission: "ALLOW",
    host: "*",
  });
  if (template === "produce") {
    return [allow("TOPIC", topic, "WRITE"), allow("TOPIC", topic, "DESCRIBE")];
  }
  if (template === "consume") {
    return [
      allow("TOPIC", topic, "READ"),
      allow("TOPIC", topic, "DESCRIBE"),
      allow("GROUP", group, "READ"),
    ];
  }
  // A Streams application owns every topic, group and transaction that begins with its id.
  return [
    allow("TOPIC", topic, "READ"),
    allow("TOPIC", topic, "WRITE"),
    allow("TOPIC", topic, "DESCRIBE"),
    allow("TOPIC", group, "ALL", group === "*" ? "LITERAL" : "PREFIXED"),
    allow("GROUP", group, "ALL", group === "*" ? "LITERAL" : "PREFIXED"),
    allow("TRANSACTIONAL_ID", group, "ALL", group === "*" ? "LITERAL" : "PREFIXED"),
  ];
}

/** Which operations Kafka knows for a kind of resource. */
export const OPERATIONS: Partial<Record<Acl["resource_type"], readonly Acl["operation"][]>> = {
  TOPIC: [
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
  ],
  GROUP: ["ALL", "READ", "DESCRIBE", "DELETE"],
  CLUSTER: ["ALL", "CREATE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"],
  TRANSACTIONAL_ID: ["ALL", "WRITE", "DESCRIBE"],
};

/** A rule in one line: `allow READ on topic orders*`. */
export function aclWords(acl: Acl): string {
  const star = acl.pattern_type === "PREFIXED" ? "*" : "";
  const resource = acl.resource_type.toLowerCase().replaceAll("_", " ");
  const name = `${acl.resource_name}${star}`;
  return `${acl.permission.toLowerCase()} ${acl.operation} on ${resource} ${name}`;
}

/** What makes a rule itself: two with the same id are the same rule. */
export function aclId(acl: Acl): string {
  return [
    acl.principal,
    acl.resource_type,
    acl.resource_name,
    acl.pattern_type,
    acl.operation,
    acl.permission,
    acl.host,
  ].join(" ");
}
