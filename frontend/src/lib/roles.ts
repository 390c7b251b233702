import type { Role } from "./api/types";
import { grantsAll } from "./permissions";

/** All roles in words, those with most permissions first. */
export const ROLES: { value: Role; label: string; grants: string }[] = [
  { value: "owner", label: "Owner", grants: "Everything, also making owners and closing" },
  { value: "admin", label: "Admin", grants: "Everything but what only owners do" },
  { value: "developer", label: "Developer", grants: "Clusters and all that is in them" },
  { value: "billing", label: "Billing", grants: "Sees all but records; invoices and budgets" },
  { value: "reader", label: "Reader", grants: "Sees all but money and access; reads records" },
  { value: "viewer", label: "Viewer", grants: "Sees all but records, money and access" },
  { value: "member", label: "Member", grants: "Only the projects where a role says more" },
];

/** Returns the name of a role for people. */
export function roleLabel(role: Role): string {
  return ROLES.find(({ value }) => value === role)?.label ?? role;
}

/** Returns the roles that a person may give: those that grant no more than their own. */
export function rolesUpTo(own: Role | undefined): { value: Role; label: string }[] {
  return ROLES.filter(({ value }) => grantsAll(own, value)).map(({ value, label, grants }) => ({
    value,
    label: `${label}: ${grants.charAt(0).toLowerCase()}${grants.slice(1)}`,
  }));
}
