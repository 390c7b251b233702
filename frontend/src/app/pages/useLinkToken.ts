import { useLocation } from "@tanstack/react-router";

/**
 * The secret behind `#` in a mail's link; empty without one. What stands there is sent to no
 * server, so it is in no log.
 */
export function useLinkToken(): string {
  return useLocation().hash;
}
