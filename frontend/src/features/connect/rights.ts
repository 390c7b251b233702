import type { Acl, AclDraft } from "@/lib/api/types";
import { LANGUAGES } from "./snippets";

/** Returns the access rules that the snippets need for a topic, and no others. */
export function rightsOfSnippets(principal: string, topic: string): AclDraft[] {
  const rule = (
    resource_type: Acl["resource_type"],
    resource_name: string,
    operation: Acl["operation"],
  ): AclDraft => ({
    principal,
    resource_type,
    resource_name,
    pattern_type: "LITERAL",
    operation,
    permission: "ALLOW",
    host: "*",
  });
  return [
    // Either implies DESCRIBE, and WRITE of any topic lets a producer be idempotent.
    rule("TOPIC", topic, "WRITE"),
    rule("TOPIC", topic, "READ"),
    ...LANGUAGES.map(({ group }) => rule("GROUP", group, "READ")),
  ];
}

/** Returns those of the rules that no rule of the same principal grants already. */
export function missingRights(needed: readonly AclDraft[], given: readonly Acl[]): AclDraft[] {
  return needed.filter((rule) => !given.some((acl) => isGrantedBy(rule, acl)));
}

function isGrantedBy(rule: AclDraft, acl: Acl): boolean {
  return (
    acl.permission === "ALLOW" &&
    acl.host === "*" &&
    acl.resource_type === rule.resource_type &&
    (acl.operation === "ALL" || acl.operation === rule.operation) &&
    isNamedBy(rule.resource_name, acl)
  );
}

function isNamedBy(name: string, { pattern_type, resource_name }: Acl): boolean {
  return pattern_type === "PREFIXED"
    ? name.startsWith(resource_name)
    : resource_name === "*" || resource_name === name;
}
