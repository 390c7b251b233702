import type { Acl, AclDraft, AclTemplate, TemplateName, TemplateRequest } from "@/lib/api/types";

export type Choice = TemplateName | "custom";

/** The choices of the form: templates in the order of their use, and a rule by hand. */
export const CHOICES: { value: Choice; label: string; grants: string }[] = [
  { value: "producer", label: "Produce", grants: "Write to topics, also in transactions" },
  { value: "consumer", label: "Consume", grants: "Read topics and commit in a group" },
  { value: "streams", label: "Kafka Streams", grants: "All that an application id needs" },
  { value: "custom", label: "One rule", grants: "Any operation, allowed or denied" },
];

export interface TemplateInput {
  /** The principal, such as `User:…`. */
  principal: string;
  /** The topic's name; empty for all topics. */
  topic: string;
  /** The consumer group, or the application id of Kafka Streams. */
  group: string;
  transactionalId: string;
  /** Whether names are prefixes: `orders` also covers `orders-eu`. */
  prefixed: boolean;
}

const nameOf = (typed: string): string => typed.trim() || "*";

/** Returns the pattern type of a name. `*` is never a prefix. */
export function patternOf(name: string, prefixed: boolean): "LITERAL" | "PREFIXED" {
  return prefixed && name !== "*" ? "PREFIXED" : "LITERAL";
}

/** Returns the request that adds the rules of a template. */
export function templateRequest(template: TemplateName, input: TemplateInput): TemplateRequest {
  const topic = nameOf(input.topic);
  const request: TemplateRequest = {
    template,
    principal: input.principal,
    topic,
    pattern_type: patternOf(topic, input.prefixed),
  };
  if (template !== "producer") request.group = nameOf(input.group);
  const transactionalId = input.transactionalId.trim();
  if (template !== "consumer" && transactionalId) request.transactional_id = transactionalId;
  return request;
}

/** Returns the rules that a template will add, from the service's description of it. */
export function templateAcls(template: AclTemplate, request: TemplateRequest): AclDraft[] {
  const given = request as unknown as Record<string, string | undefined>;
  return template.entries.flatMap((entry) => {
    const name = given[entry.resource_name];
    if (name === undefined) return [];
    return [
      {
        principal: request.principal,
        resource_type: entry.resource_type,
        resource_name: name,
        pattern_type: (entry.pattern_type ??
          request.pattern_type ??
          "LITERAL") as Acl["pattern_type"],
        operation: entry.operation,
        permission: "ALLOW" as const,
        host: "*",
      },
    ];
  });
}

/** The operations that Kafka has for each type of resource. */
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

/** Returns a rule as one line: `allow READ on topic orders*`. */
export function aclWords(acl: AclDraft): string {
  const star = acl.pattern_type === "PREFIXED" ? "*" : "";
  const resource = acl.resource_type.toLowerCase().replaceAll("_", " ");
  const name = `${acl.resource_name}${star}`;
  return `${acl.permission.toLowerCase()} ${acl.operation} on ${resource} ${name}`;
}
