import type { Acl, AclDraft, AclTemplate, TemplateName, TemplateRequest } from "@/lib/api/types";

export type Choice = TemplateName | "custom";

/** What an application of a kind needs, in the order in which people ask for it. */
export const CHOICES: { value: Choice; label: string; grants: string }[] = [
  { value: "producer", label: "Produce", grants: "Write to topics, also in transactions" },
  { value: "consumer", label: "Consume", grants: "Read topics and commit in a group" },
  { value: "streams", label: "Kafka Streams", grants: "All that an application id needs" },
  { value: "custom", label: "One rule", grants: "Any operation, allowed or denied" },
];

export interface TemplateInput {
  /** `User:…` */
  principal: string;
  /** Empty for all. */
  topic: string;
  /** A group, or the application id of Kafka Streams. */
  group: string;
  transactionalId: string;
  /** Names are prefixes: `orders` also covers `orders-eu`. */
  prefixed: boolean;
}

const nameOf = (typed: string): string => typed.trim() || "*";

/** How a name is meant: a star is never a prefix. */
export function patternOf(name: string, prefixed: boolean): "LITERAL" | "PREFIXED" {
  return prefixed && name !== "*" ? "PREFIXED" : "LITERAL";
}

/** What is sent to have a template's rules made. */
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

/** The rules that a template will make, as the service says what is in it. */
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
export function aclWords(acl: AclDraft): string {
  const star = acl.pattern_type === "PREFIXED" ? "*" : "";
  const resource = acl.resource_type.toLowerCase().replaceAll("_", " ");
  const name = `${acl.resource_name}${star}`;
  return `${acl.permission.toLowerCase()} ${acl.operation} on ${resource} ${name}`;
}
