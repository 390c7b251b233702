export const PASSWORD_MIN = 10;

/** What is wrong with a new password before the service says so; null when nothing is. */
export function passwordComplaint(password: string): string | null {
  return password.length >= PASSWORD_MIN ? null : `At least ${String(PASSWORD_MIN)} characters`;
}
