import type { ClientQuota, ClientQuotaValues } from "@/lib/api/types";
import { parseRate } from "./rates";

/**
 * The entity of quotas. A null name is not a part of the entity; an empty name means every one
 * that has no quotas of its own.
 */
export type Entity = Pick<ClientQuota, "user" | "client_id" | "ip">;

export type Kind = "user" | "client" | "both" | "ip";

export const KINDS: { value: Kind; label: string; what: string }[] = [
  { value: "user", label: "Credential", what: "All of its clients together" },
  { value: "client", label: "Client id", what: "What clients call themselves (client.id)" },
  { value: "both", label: "Client id of a credential", what: "Stronger than either alone" },
  { value: "ip", label: "Address", what: "New connections from one IP address" },
];

export function kindOf({ user, client_id, ip }: Entity): Kind {
  if (ip !== null) return "ip";
  if (user !== null && client_id !== null) return "both";
  return user !== null ? "user" : "client";
}

/** The names of credentials by Kafka user name. */
export type Names = ReadonlyMap<string, string>;

/** Returns an entity in words. */
export function entityWords(entity: Entity, names: Names): string {
  const { user, client_id, ip } = entity;
  if (ip !== null) return ip === "" ? "every other address" : `address ${ip}`;
  const by = user === "" ? "every other credential" : (names.get(user ?? "") ?? user ?? "");
  const client = client_id === "" ? "every other client id" : `client id ${client_id ?? ""}`;
  if (user !== null && client_id !== null) return `${client} of ${by}`;
  return user !== null ? by : client;
}

/** The values of the form, as typed. */
export interface Typed {
  kind: Kind;
  user: string;
  client: string;
  ip: string;
  produce: string;
  fetch: string;
  request: number | string;
  connections: number | string;
  attempts: number | string;
}

export const NOTHING: Typed = {
  kind: "user",
  user: "",
  client: "",
  ip: "",
  produce: "",
  fetch: "",
  request: "",
  connections: "",
  attempts: "",
};

const given = (value: number | string): number | null => (value === "" ? null : Number(value));

/**
 * Returns the request for the values of the form. Quotas that this kind of entity cannot have are
 * left out.
 */
export function quotaOf(typed: Typed): ClientQuotaValues {
  const { kind } = typed;
  const names = {
    user: kind === "user" || kind === "both" ? typed.user : null,
    client_id: kind === "client" || kind === "both" ? typed.client : null,
    ip: kind === "ip" ? typed.ip.trim() : null,
  };
  if (kind === "ip") return { ...names, connections_per_second: given(typed.attempts) };
  return {
    ...names,
    produce_bytes_per_second: parseRate(typed.produce) ?? null,
    fetch_bytes_per_second: parseRate(typed.fetch) ?? null,
    request_percentage: given(typed.request),
    ...(kind === "user" && { connections: given(typed.connections) }),
  };
}

/** Returns whether a request has any quota. */
export function limitsAnything(quota: ClientQuotaValues): boolean {
  return [
    quota.produce_bytes_per_second,
    quota.fetch_bytes_per_second,
    quota.request_percentage,
    quota.connections,
    quota.connections_per_second,
  ].some((value) => value !== null && value !== undefined);
}

/** Returns the request that sets the present quotas again, to undo their removal. */
export function valuesOf(quota: ClientQuota): ClientQuotaValues {
  return {
    user: quota.user,
    client_id: quota.client_id,
    ip: quota.ip,
    produce_bytes_per_second: quota.produce_bytes_per_second,
    fetch_bytes_per_second: quota.fetch_bytes_per_second,
    request_percentage: quota.request_percentage,
    connections: quota.connections,
    connections_per_second: quota.connections_per_second,
  };
}
