/** Written by hand until the committed OpenAPI description has these paths. */
import type {
  Acl,
  ApiKey,
  ApiKeyRole,
  ApiKeySecret,
  Cluster,
  Credential,
  CredentialRole,
  CredentialSecret,
  Group,
  LocalMail,
  MessagePage,
  Operation,
  Page,
  PlannedOffset,
  Produced,
  Region,
  Session,
  Topic,
  TopicDetail,
} from "./types";

interface Answer<T> {
  headers: Record<string, unknown>;
  content: { "application/json": T };
}

type WithBody<Body> = Body extends undefined
  ? { requestBody?: never }
  : { requestBody: { content: { "application/json": Body } } };

type Call<Path, Query, Body, Result> = WithBody<Body> & {
  parameters: { query?: Query; path: Path; header?: never; cookie?: never };
  responses: { 200: Answer<Result> };
};

type OpenCall<Query, Body, Result> = WithBody<Body> & {
  parameters: { query?: Query; path?: never; header?: never; cookie?: never };
  responses: { 200: Answer<Result> };
};

interface InCluster {
  cluster_id: string;
}
interface InTopic extends InCluster {
  name: string;
}
interface InGroup extends InCluster {
  group: string;
}

export interface MessageQuery {
  from: "newest" | "oldest" | "offset" | "timestamp";
  partition?: number;
  offset?: number;
  timestamp?: string;
  limit?: number;
  cursor?: string;
}

export interface ProduceBody {
  key: string | null;
  value: string | null;
  headers: { key: string; value: string }[];
  partition?: number;
}

export interface ResetBody {
  to: "earliest" | "latest" | "offset" | "timestamp" | "shift";
  value?: number;
  topics?: string[];
  dry_run: boolean;
}

export interface paths {
  "/api/v1/session": {
    get: OpenCall<undefined, undefined, Session>;
    post: OpenCall<undefined, { email: string; password: string }, Session>;
    delete: OpenCall<undefined, undefined, undefined>;
  };
  "/api/v1/signup": {
    post: OpenCall<
      undefined,
      { email: string; password: string; organization_name: string; session: boolean },
      { organization: { id: string } }
    >;
  };
  "/api/v1/signup/verify": { post: OpenCall<undefined, { token: string }, undefined> };
  "/api/v1/regions": { get: OpenCall<undefined, undefined, Page<Region>> };
  "/api/v1/local-mail": { get: OpenCall<undefined, undefined, Page<LocalMail>> };
  "/api/v1/api-keys": {
    get: OpenCall<{ cursor?: string }, undefined, Page<ApiKey>>;
    post: OpenCall<undefined, { name: string; role: ApiKeyRole }, ApiKeySecret>;
  };
  "/api/v1/api-keys/{id}": { delete: Call<{ id: string }, undefined, undefined, undefined> };
  "/api/v1/operations/{id}": { get: Call<{ id: string }, { wait?: number }, undefined, Operation> };
  "/api/v1/clusters": {
    get: OpenCall<{ cursor?: string }, undefined, Page<Cluster>>;
    post: OpenCall<undefined, { name: string; region: string }, Operation>;
  };
  "/api/v1/clusters/{cluster_id}": {
    get: Call<InCluster, undefined, undefined, Cluster>;
    patch: Call<InCluster, undefined, { name?: string; idle_timeout_s?: number }, Cluster>;
    delete: Call<InCluster, { name: string }, undefined, Operation>;
  };
  "/api/v1/clusters/{cluster_id}:wake": { post: Call<InCluster, undefined, undefined, Operation> };
  "/api/v1/clusters/{cluster_id}:sleep": { post: Call<InCluster, undefined, undefined, Operation> };
  "/api/v1/clusters/{cluster_id}/topics": {
    get: Call<InCluster, { view?: "full"; cursor?: string }, undefined, Page<Topic>>;
    post: Call<
      InCluster,
      undefined,
      { name: string; partitions: number; configs: Record<string, string> },
      Topic
    >;
  };
  "/api/v1/clusters/{cluster_id}/topics/{name}": {
    get: Call<InTopic, { view?: "full" }, undefined, TopicDetail>;
    patch: Call<InTopic, undefined, { configs: Record<string, string | null> }, Topic>;
    delete: Call<InTopic, undefined, undefined, undefined>;
  };
  "/api/v1/clusters/{cluster_id}/topics/{name}/partitions": {
    post: Call<InTopic, undefined, { count: number }, Topic>;
  };
  "/api/v1/clusters/{cluster_id}/topics/{name}/messages": {
    get: Call<InTopic, MessageQuery, undefined, MessagePage>;
    post: Call<InTopic, undefined, ProduceBody, Produced>;
  };
  "/api/v1/clusters/{cluster_id}/credentials": {
    get: Call<InCluster, { cursor?: string }, undefined, Page<Credential>>;
    post: Call<InCluster, undefined, { name: string; role: CredentialRole }, CredentialSecret>;
  };
  "/api/v1/clusters/{cluster_id}/credentials/{id}": {
    delete: Call<InCluster & { id: string }, undefined, undefined, undefined>;
  };
  "/api/v1/clusters/{cluster_id}/acls": {
    get: Call<InCluster, { cursor?: string }, undefined, Page<Acl>>;
    post: Call<InCluster, undefined, { items: Acl[] }, Page<Acl>>;
    delete: Call<InCluster, Acl, undefined, undefined>;
  };
  "/api/v1/clusters/{cluster_id}/groups": {
    get: Call<InCluster, { cursor?: string }, undefined, Page<Group>>;
  };
  "/api/v1/clusters/{cluster_id}/groups/{group}": {
    get: Call<InGroup, undefined, undefined, Group>;
  };
  "/api/v1/clusters/{cluster_id}/groups/{group}/reset-offsets": {
    post: Call<InGroup, undefined, ResetBody, { items: PlannedOffset[] }>;
  };
}
