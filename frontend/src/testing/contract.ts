import Ajv2020, { type ValidateFunction } from "ajv/dist/2020";
import addFormats from "ajv-formats";
import text from "../../../docs/reference/openapi.json?raw";
import type { components, paths } from "@/lib/api/schema";

type Method = "get" | "post" | "put" | "patch" | "delete";
type Path = keyof paths & string;

/** An operation of the API by method and path, such as `GET /api/v1/clusters/{id}`. */
export type OperationName = {
  [P in Path]: {
    [M in Method]: paths[P][M] extends { responses: unknown } ? `${Uppercase<M>} ${P}` : never;
  }[Method];
}[Path];

type Described<Name extends OperationName> = Name extends `${infer M} ${infer P extends Path}`
  ? Lowercase<M> extends infer L extends Method
    ? paths[P][L]
    : never
  : never;

type Content<T> = T extends { content: { "application/json": infer Body } } ? Body : never;

type Success<T> = T extends { responses: infer R }
  ? { [Status in keyof R]: Status extends 200 | 201 | 202 ? Content<R[Status]> : never }[keyof R]
  : never;

/** The body of an operation's successful answer. */
export type AnswerOf<Name extends OperationName> = Exclude<
  Success<Described<Name>>,
  components["schemas"]["Validated"]
>;

/** A problem+json body. */
export type ProblemBody = components["schemas"]["Problem"];

interface Media {
  schema: object;
  examples?: Record<string, { value: unknown }>;
}

interface Operation {
  parameters?: { name: string; in: string; schema: object; required?: boolean }[];
  requestBody?: { content: Partial<Record<string, Media>>; required?: boolean };
  responses: Record<string, { content?: Partial<Record<string, Media>> }>;
}

/** What the description says of a code of problems. */
interface KnownCode {
  title: string;
  statuses: number[];
}

interface Description {
  paths: Record<string, Partial<Record<Method, Operation>>>;
  components: {
    schemas: { Problem: { properties: { code: { "x-codes": Record<string, KnownCode> } } } };
  };
}

const description = JSON.parse(text) as Description;

/** The API's own list of the codes of problems. */
export function problemCodes(): Record<string, KnownCode> {
  return description.components.schemas.Problem.properties.code["x-codes"];
}

const METHODS: readonly Method[] = ["get", "post", "put", "patch", "delete"];

interface Entry {
  name: OperationName;
  method: string;
  pattern: RegExp;
  operation: Operation;
}

/**
 * Returns a regular expression for the addresses of a path. No part of an address has a bare colon.
 */
function patternOf(path: string): RegExp {
  const literal = path.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^${literal.replace(/\{[^}]+\}/g, "([^/:]+)")}$`);
}

const entries: Entry[] = Object.entries(description.paths)
  .flatMap(([path, item]) =>
    METHODS.flatMap((method): Entry[] => {
      const operation = item[method];
      const name = `${method.toUpperCase()} ${path}` as OperationName;
      const pattern = patternOf(path);
      return operation ? [{ name, method: method.toUpperCase(), pattern, operation }] : [];
    }),
  )
  // Of two matching paths the one with fewer parameters is meant: `accept` is no invitation's id.
  .sort((a, b) => a.name.split("{").length - b.name.split("{").length);

/** The names of all operations. */
export const operationNames: readonly OperationName[] = entries.map(({ name }) => name);

/** Returns the operation of a method at an address; undefined where there is none. */
export function operationAt(method: string, pathname: string): OperationName | undefined {
  return entries.find((entry) => entry.method === method && entry.pattern.test(pathname))?.name;
}

function operationOf(name: OperationName): Operation {
  const entry = entries.find((one) => one.name === name);
  if (!entry) throw new Error(`docs/reference/openapi.json has no operation ${name}`);
  return entry.operation;
}

/**
 * The status of an operation's success; of several, the one with an example, or the one without a
 * body. What is left is the answer to a request that is only checked.
 */
export function statusOf(name: OperationName): number {
  const { responses } = operationOf(name);
  const rank = (status: string): number => {
    if (examplesOf(name, Number(status))) return 0;
    return responses[status]?.content ? 2 : 1;
  };
  const successes = Object.keys(responses).filter((status) => status < "3");
  const [first] = successes.sort((one, other) => rank(one) - rank(other));
  return Number(first);
}

function examplesOf(name: OperationName, status: number): Media["examples"] {
  const content = operationOf(name).responses[String(status)]?.content;
  return content?.["application/json"]?.examples;
}

/**
 * An example of what an operation answers, a copy of one's own. Without a title it is the first;
 * undefined where the operation answers without a body, as a deletion does.
 */
export function exampleOf<Name extends OperationName>(name: Name, title?: string): AnswerOf<Name> {
  const examples = examplesOf(name, statusOf(name)) ?? {};
  const example = title === undefined ? Object.values(examples)[0] : examples[title];
  if (title !== undefined && !example) throw new Error(`${name} has no example ${title}`);
  return structuredClone(example?.value) as AnswerOf<Name>;
}

const ajv = new Ajv2020({ strict: false, allErrors: true, coerceTypes: false });
addFormats(ajv);
// Formats that do not restrict a text.
ajv.addFormat("decimal", true);
const queryAjv = new Ajv2020({ strict: false, coerceTypes: true });
addFormats(queryAjv);

const compiled = new Map<string, ValidateFunction>();
ajv.addSchema({ $id: "api", ...description });

/** Returns how a value breaks a schema of the OpenAPI file; undefined where it does not. */
function complaintOf(key: string, schema: object, value: unknown): string | undefined {
  let validate = compiled.get(key);
  if (!validate) {
    const rooted = JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"api#/');
    validate = ajv.compile(JSON.parse(rooted) as object);
    compiled.set(key, validate);
  }
  return validate(value) ? undefined : `${key}: ${ajv.errorsText(validate.errors)}`;
}

/** Returns how an operation's answer breaks the OpenAPI file; undefined where it does not. */
export function answerComplaint(
  name: OperationName,
  status: number,
  body: unknown,
): string | undefined {
  const described = operationOf(name).responses[String(status)];
  if (!described) return `${name}: answers no ${String(status)}`;
  if (status >= 400) {
    return complaintOf("Problem", { $ref: "#/components/schemas/Problem" }, body);
  }
  const schema = described.content?.["application/json"]?.schema;
  if (!schema) return body === undefined ? undefined : `${name}: answers without a body`;
  return complaintOf(`${name} ${String(status)}`, schema, body);
}

// Lists of a cluster allow longer pages than the bound of lists in the OpenAPI file.
const CLUSTER_LIST = /^GET .*\/(topics|partitions|deleted-topics|orphaned-topics|acls|quotas)$/;
const CLUSTER_LIST_MAX = 2_000;

/** Returns how a request to an operation breaks the OpenAPI file; undefined where it does not. */
export function requestComplaint(
  name: OperationName,
  query: URLSearchParams,
  body: unknown,
): string | undefined {
  const { parameters = [], requestBody } = operationOf(name);
  for (const [key, value] of query) {
    const parameter = parameters.find((one) => one.in === "query" && one.name === key);
    if (!parameter) return `${name}: takes no ${key} in its query`;
    const holder: Record<string, unknown> = { value };
    const longer = key === "limit" && CLUSTER_LIST.test(name);
    const bounded = { ...parameter.schema, ...(longer && { maximum: CLUSTER_LIST_MAX }) };
    const schema = { type: "object", properties: { value: bounded } };
    if (!queryAjv.validate(schema, holder)) return `${name}: ${key}: ${queryAjv.errorsText()}`;
  }
  const schema = requestBody?.content["application/json"]?.schema;
  if (body === undefined) {
    return requestBody?.required ? `${name}: nothing was sent` : undefined;
  }
  return schema ? complaintOf(`${name} request`, schema, body) : `${name}: takes no body`;
}
