import { useLocation } from "@tanstack/react-router";

/**
 * The secret behind `#` in a mail's link; empty without one. A browser sends that part of an
 * address to no server, so it is in no log.
 */
export function useLinkToken(): string {
  return useLocation().hash;
}
