import { useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { projectListQuery } from "./api/projects";
import { sessionQuery } from "./api/session";
import type { Project, Role } from "./api/types";

/** A permission that an endpoint requires, as `x-permission` of the OpenAPI file names it. */
export type Permission = "read" | "data.read" | "write" | "manage" | "own" | "billing";

const GRANTS: Partial<Record<Role, readonly Permission[]>> = {
  owner: ["read", "data.read", "write", "manage", "own", "billing"],
  admin: ["read", "data.read", "write", "manage", "billing"],
  developer: ["read", "data.read", "write"],
  billing: ["read", "billing"],
  reader: ["read", "data.read"],
  viewer: ["read"],
};

/** The roles that have a permission, as the subject of a sentence. */
const WHO: Record<Permission, string> = {
  read: "Members with a role",
  "data.read": "Owners, admins, developers and readers",
  write: "Owners, admins and developers",
  manage: "Owners and admins",
  own: "Owners",
  billing: "Owners, admins and billing",
};

const MAY: Record<Permission, string> = {
  read: "see this",
  "data.read": "read records",
  write: "change clusters and what is in them",
  manage: "manage the organization and its access",
  own: "do this",
  billing: "see and change what has to do with money",
};

/** Returns whether a role grants a permission. */
export function grants(role: Role | undefined, permission: Permission): boolean {
  return role !== undefined && (GRANTS[role]?.includes(permission) ?? false);
}

/** Returns whether a role grants all permissions of another one. */
export function grantsAll(role: Role | undefined, other: Role): boolean {
  return (GRANTS[other] ?? []).every((permission) => grants(role, permission));
}

/** Returns a sentence on why a role lacks a permission; undefined where it has it. */
export function refusalOf(role: Role | undefined, permission: Permission): string | undefined {
  if (grants(role, permission)) return undefined;
  const yours = role === undefined ? "you have none here" : `yours is ${role}`;
  return `${WHO[permission]} may ${MAY[permission]}; ${yours}. Ask an owner for another role.`;
}

/**
 * Returns a sentence on why the person lacks a permission; undefined where they have it. The server
 * checks it again: this only keeps people from pressing a button that would be refused. Nothing is
 * refused until the session is read, so that no button changes its state on the way.
 */
export function useRefusal(permission: Permission): string | undefined {
  const { data: session } = useQuery(sessionQuery);
  if (!session) return undefined;
  return refusalOf(session.organization?.role, permission);
}

/**
 * Returns a function that says why the person may not change or end what has a role, such as a key
 * or a member; it returns undefined where they may. The server also counts roles in projects.
 */
export function useRefusalOver(): (other: Role) => string | undefined {
  const manage = useRefusal("manage");
  const { data: session } = useQuery(sessionQuery);
  const own = session?.organization?.role;
  return useCallback(
    (other) => {
      if (manage !== undefined || own === undefined || grantsAll(own, other)) return manage;
      return `The role ${other} is above yours, which is ${own}. Ask somebody who has it.`;
    },
    [manage, own],
  );
}

/** Returns the projects in which the person has a permission; undefined until they are read. */
export function useProjectsFor(permission: Permission): Project[] | undefined {
  const { data: projects } = useQuery(projectListQuery);
  return projects?.filter(({ permissions }) => permissions.includes(permission));
}

/** Returns why the person has a permission in no project; undefined where they have it in one. */
export function useRefusalEverywhere(permission: Permission): string | undefined {
  const refused = useRefusal(permission);
  const projects = useProjectsFor(permission);
  return projects !== undefined && projects.length > 0 ? undefined : refused;
}

/**
 * Returns why the person lacks a permission in a project, by their roles in the organization and in
 * the project.
 */
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
