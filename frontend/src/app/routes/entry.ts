import { createRoute } from "@tanstack/react-router";
import { text } from "../search";
import { root } from "./frame";
import { page } from "./page";

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/signin",
  validateSearch: (search: Record<string, unknown>): { next?: string } => ({
    next: localPath(search.next),
  }),
  component: page(() => import("../pages/SignInPage"), "SignInPage"),
});

/** Returns a path of this console, or undefined for anything else: otherwise a link could lead to
 * another site after the sign-in. */
function localPath(value: unknown): string | undefined {
  const path = text(value);
  return path && /^\/(?![/\\])/.test(path) ? path : undefined;
}

const signUp = createRoute({
  getParentRoute: () => root,
  path: "/signup",
  component: page(() => import("../pages/SignUpPage"), "SignUpPage"),
});

const verify = createRoute({
  getParentRoute: () => root,
  path: "/verify",
  validateSearch: (search: Record<string, unknown>): { token?: string } => ({
    token: text(search.token),
  }),
  component: page(() => import("../pages/VerifyPage"), "VerifyPage"),
});

const forgotten = createRoute({
  getParentRoute: () => root,
  path: "/forgotten",
  component: page(() => import("../pages/ForgottenPage"), "ForgottenPage"),
});

const passwordReset = createRoute({
  getParentRoute: () => root,
  path: "/password-reset",
  component: page(() => import("../pages/PasswordResetPage"), "PasswordResetPage"),
});

const invitation = createRoute({
  getParentRoute: () => root,
  path: "/invitation",
  component: page(() => import("../pages/InvitationPage"), "InvitationPage"),
});

/** The routes of pages for people who are not signed in. */
export const entryRoutes = [signIn, signUp, verify, forgotten, passwordReset, invitation];
