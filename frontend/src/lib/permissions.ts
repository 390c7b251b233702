import { useQuery } from "@tanstack/react-query";
import { projectListQuery } from "./api/projects";
import { sessionQuery } from "./api/session";
import type { Project, Role } from "./api/types";

/** What an endpoint asks for, as the API names it in `x-permission`. */
export type Permission = "read" | "write" | "manage" | "own" | "billing";

const GRANTS: Partial<Record<Role, readonly Permission[]>> = {
  owner: ["read", "write", "manage", "own", "billing"],
  admin: ["read", "write", "manage", "billing"],
  developer: ["read", "write"],
  billing: ["read", "billing"],
  viewer: ["read"],
};

/** Who may, in the words of a sentence's subject. */
const WHO: Record<Permission, string> = {
  read: "Members with a role",
  write: "Owners, admins and developers",
  manage: "Owners and admins",
  own: "Owners",
  billing: "Owners, admins and billing",
};

const MAY: Record<Permission, string> = {
  read: "see this",
  write: "change clusters and what is in them",
  manage: "manage the organization and its access",
  own: "do this",
  billing: "see and change what has to do with money",
};

/** Tells whether a role grants a permission. */
export function grants(role: Role | undefined, permission: Permission): boolean {
  return role !== undefined && (GRANTS[role]?.includes(permission) ?? false);
}

/** Tells whether a role grants all that another one does. */
export function grantsAll(role: Role | undefined, other: Role): boolean {
  return (GRANTS[other] ?? []).every((permission) => grants(role, permission));
}

/** Why a role may not, in a sentence; undefined where it may. */
export function refusalOf(role: Role | undefined, permission: Permission): string | undefined {
  if (grants(role, permission)) return undefined;
  const yours = role === undefined ? "you have none here" : `yours is ${role}`;
  return `${WHO[permission]} may ${MAY[permission]}; ${yours}. Ask an owner for another role.`;
}

/**
 * Why the person at this page may not, in a sentence; undefined where they may. The server checks
 * again: this spares people a button that is refused. While the session is not read, nothing is
 * refused, so that no button blinks.
 */
export function useRefusal(permission: Permission): string | undefined {
  const { data: session } = useQuery(sessionQuery);
  if (!session) return undefined;
  return refusalOf(session.organization?.role, permission);
}

/** The projects in which the person at this page may; undefined while they are not read. */
export function useProjectsFor(permission: Permission): Project[] | undefined {
  const { data: projects } = useQuery(projectListQuery);
  return projects?.filter(({ permissions }) => permissions.includes(permission));
}

/** Why they may nowhere, in no project either; undefined where they may. */
export function useRefusalEverywhere(permission: Permission): string | undefined {
  const refused = useRefusal(permission);
  const projects = useProjectsFor(permission);
  return projects !== undefined && projects.length > 0 ? undefined : refused;
}

/** The same in a project: what the organization's role does not grant, a role in it may. */
export function useProjectRefusal(
  permission: Permission,
  projectId: string | undefined,
): string | undefined {
  const refused = useRefusal(permission);
  const { data: projects } = useQuery(projectListQuery);
  if (refused === undefined || projectId === undefined) return refused;
  const granted = projects?.find(({ id }) => id === projectId)?.permissions;
  return granted?.includes(permission) ? undefined : refused;
}
