import type { CredentialCreated, CredentialRole } from "@/lib/api/types";

export const ROLES: { value: CredentialRole; label: string; grants: string }[] = [
  { value: "full", label: "Full", grants: "Reads, writes and manages every topic and group" },
  { value: "producer", label: "Producer", grants: "Writes to every topic" },
  { value: "consumer", label: "Consumer", grants: "Reads every topic, in any group" },
  { value: "none", label: "None", grants: "Nothing until you add ACLs for it" },
];

/** Returns the name of a role for people. */
export function roleLabel(role: CredentialRole): string {
  return ROLES.find(({ value }) => value === role)?.label ?? role;
}

/** Returns the values of a new credential that a client needs, with their labels. */
export function secretsOf(created: CredentialCreated): [string, string][] {
  return [
    ["User name", created.username],
    ["Password", created.password],
    ["Mechanism", created.mechanism],
  ];
}
