/** The resources of the API by the names that the console uses for them. */

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

export type Phase =
  | "provisioning"
  | "running"
  | "asleep"
  | "suspended"
  | "deleting"
  | "deleted"
  | "failed"
  | "unknown";

export type ListenerName = "SASL_PLAINTEXT" | "SASL_SSL";

export interface Endpoint {
  listener: ListenerName;
  bootstrap_servers: string;
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  since?: string;
}

export interface Cluster {
  id: string;
  name: string;
  region: string;
  labels: Record<string, string>;
  generation: number;
  created_at: string;
  spec: { idle_timeout_s: number; scale: { min: number; max: number } };
  bootstrap_servers: string;
  endpoints: Endpoint[];
  status: {
    phase: Phase;
    since: string | null;
    observed_generation: number;
    conditions: Condition[];
  };
}

export interface Operation {
  id: string;
  type: string;
  resource_id: string;
  state: "queued" | "running" | "succeeded" | "failed" | "cancelled";
  progress: number | null;
  error: { code: string; detail: string } | null;
}

export interface ConfigEntry {
  name: string;
  value: string | null;
  default: string | null;
  source: string;
  doc: string;
}

export interface Topic {
  name: string;
  partitions: number;
  configs: Record<string, string>;
}

export interface PartitionRange {
  partition: number;
  earliest: number | null;
  end: number | null;
}

/** A topic with `view=full`: every config with its default, source and meaning. */
export interface TopicDetail {
  name: string;
  partitions: number;
  configs: ConfigEntry[];
  offsets: PartitionRange[];
}

/** Bytes of a record; `text` where they are UTF-8. Of longer ones the first 64 KiB. */
export interface RecordBytes {
  base64: string;
  text: string | null;
  size: number;
  truncated: boolean;
}

export interface Header {
  key: string;
  value: RecordBytes | null;
}

export interface Message {
  partition: number;
  offset: number;
  timestamp_ms: number | null;
  timestamp_type: string | null;
  key: RecordBytes | null;
  value: RecordBytes | null;
  headers: Header[];
  size: number;
}

export interface MessagePage extends Page<Message> {
  stopped: string;
}

export interface GroupListing {
  members: GroupMember[];
  group: string;
  state: string;
  type: string;
  lag: number | null;
  lag_seconds: number | null;
}

export interface GroupMember {
  member_id: string;
  client_id: string;
  host: string;
  instance_id: string | null;
  assignments: { topic: string; partition: number }[];
}

export interface GroupPartition {
  topic: string;
  partition: number;
  committed: number | null;
  end: number | null;
  lag: number | null;
  lag_seconds: number | null;
}

export interface Group extends GroupListing {
  protocol: string;
  partitions: GroupPartition[];
}

export interface PlannedOffset {
  topic: string;
  partition: number;
  current: number | null;
  target: number;
  lag_after: number;
}

export type CredentialRole = "full" | "producer" | "consumer" | "none";

export interface Credential {
  id: string;
  name: string;
  username: string;
  role: CredentialRole;
  mechanism: string;
  created_at: string;
}

export interface CredentialSecret extends Credential {
  password: string;
}

export interface Acl {
  principal: string;
  resource_type: string;
  resource_name: string;
  pattern_type: string;
  operation: string;
  permission: string;
}

export type ApiKeyRole = "owner" | "admin" | "developer" | "billing" | "viewer";

export interface ApiKey {
  id: string;
  name: string;
  role: ApiKeyRole;
  revoked_at?: string | null;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
}

export interface ApiKeySecret extends ApiKey {
  secret: string;
}

export interface Organization {
  id: string;
  name: string;
}

export interface Session {
  user: { id: string; email: string; email_verified: boolean } | null;
  organizations: Organization[];
  organization: Organization | null;
  csrf_token: string;
}

export interface Region {
  id: string;
  name: string;
}

export interface LocalMail {
  id: string;
  to: string;
  subject: string;
  sent_at: string;
  text: string;
}

/** Where a produced record went. */
export interface Produced {
  partition: number;
  offset: number;
  timestamp_ms: number | null;
}
