import type { Problem } from "./problem";

/** What a person can do about a problem, and whether the change that failed was made. */
interface Hint {
  next: string | ((problem: Problem) => string);
  /** True where the service refused before it changed anything, although the status is 5xx. */
  unchanged?: true;
}

/** Returns how long to wait, where the service said it. */
function waiting(problem: Problem): string {
  return problem.retryAfterS
    ? `Try again in ${String(problem.retryAfterS)} s.`
    : "Wait a moment, then try again.";
}

/**
 * The hint of each code that the API's description lists (`x-codes`), by the code. A new code needs
 * a line here: `hints.test.ts` compares the two.
 */
export const HINTS: Readonly<Record<string, Hint>> = {
  // Every endpoint may answer these.
  ambiguous_length: {
    next: "Send one of the headers Content-Length and Transfer-Encoding, not both.",
  },
  bad_request: { next: "Change the request as the text above says, then try again." },
  body_too_large: { next: "Send less at once, in several requests." },
  conflict: { next: "Reload the page to see how it is now, then decide anew." },
  idempotency_key_reused: { next: "Use a new Idempotency-Key for another request." },
  idempotency_request_in_progress: {
    next: "The first request with this key still runs. Repeat it in some seconds for its answer.",
  },
  internal_error: { next: "Try again. If it lasts, report the request id." },
  limit_reached: {
    next: "Remove what is not needed any more, or ask for a higher limit under Limits.",
  },
  malformed_request: { next: "Reload the page, then try again. A program must send valid JSON." },
  method_not_allowed: {
    next: "Reload the page: it may be older than the service that it asks.",
  },
  name_not_confirmed: { next: "Type the name exactly as it is shown." },
  name_taken: { next: "Choose another name." },
  not_acceptable: { next: "Ask for JSON: the service answers nothing else here." },
  not_authenticated: { next: "Sign in again." },
  not_found: { next: "It may have been deleted. Go back to the list." },
  permission_denied: {
    next: "Ask an owner or admin of the organization to do it, or for a role that allows it.",
  },
  precondition_failed: { next: "Somebody changed it meanwhile. Reload, then try again." },
  rate_limited: {
    next: (problem) => `The requests of the whole organization count. ${waiting(problem)}`,
  },
  too_many_at_once: { next: "Wait until one of the running requests has ended, then try again." },
  too_many_requests: { next: waiting },
  unavailable: {
    next: "Try again in some seconds. If it lasts, look at the open incidents.",
  },
  unsupported_media_type: { next: "Send the body as JSON." },
  validation_failed: { next: "Correct what is named above, then try again." },

  // Sign-in, people and keys.
  account_exists: { next: "Sign in with this address, then open the invitation's link again." },
  address_not_allowed: {
    next: "Come from one of the allowed networks, or have an admin add yours.",
  },
  already_bound: { next: "There is nothing to do: the role is there already." },
  already_invited: { next: "Send the pending invitation again, or revoke it first." },
  already_member: { next: "Change their role in the list of members, if it should be another." },
  code_required: { next: "Enter the code that your authenticator app shows, or a recovery code." },
  code_wrong: { next: "Enter the app's next code, or a recovery code." },
  current_password_wrong: { next: "Type the password that you sign in with at present." },
  default_project: { next: "The default project can be renamed, and others can be deleted." },
  email_taken: { next: "Look into its mail: there is a link to set a new password. Or sign in." },
  expiry_in_the_past: { next: "Choose an expiry in the future." },
  invalid_credentials: { next: "Check both, then try again." },
  invitation_closed: { next: "Ask for a new invitation." },
  invitation_expired: { next: "Ask whoever invited you to send the invitation again." },
  invitation_invalid: { next: "Open the whole link of the mail, or ask for another invitation." },
  invited_another_address: { next: "Sign out, then sign in with the invited address." },
  key_not_active: { next: "Create a new key in place of this one." },
  last_owner: { next: "Make another member an owner first." },
  mail_token_required: {
    next: "Look where `make up` runs: its last lines have the link.",
  },
  not_verified: {
    next: "Open the link of the mail that you got at sign-up, or have another one sent.",
  },
  organization_closed: {
    next: "What it has can still be read. Only support can open it again.",
  },
  person_required: { next: "Sign in to the console and do it there, without an API key." },
  project_not_empty: {
    next: "Move its clusters to another project or delete them, then delete the project.",
  },
  reset_token_invalid: { next: "Have another link sent, and open the newest mail." },
  sign_up_not_shown: {
    next: "Type that password. If you did not sign up, set a new password by mail.",
  },
  role_too_high: { next: "Ask somebody whose role has all of these rights." },
  second_factor_exists: { next: "Remove the second factor that there is, then add another one." },
  second_factor_missing: { next: "Begin to add a second factor first." },
  second_factor_required: { next: "Add a second factor, then sign in again with its code." },
  two_keys_already: { next: "Revoke one of its two keys, then create the new one." },
  unknown_principal: { next: "Choose a member or a service account of this organization." },
  unknown_project: { next: "Choose another project: this one is gone, or hidden from your role." },
  unknown_service_account: { next: "Choose another service account: this one is gone." },
  verification_token_expired: { next: "Have a new link sent: the old one was valid once." },
  verification_token_invalid: { next: "Open the link of the newest mail, or have another sent." },
  would_lock_out: {
    next: "Add your own network, or sign in with a second factor, then save it again.",
  },

  // Clusters and what is in them.
  cluster_asleep: {
    next: "Wake the cluster, then try again: it takes some seconds. Its records are all there.",
  },
  cluster_deleted: { next: "Restore the cluster first." },
  cluster_never_sleeps: {
    next: "Set its least number of brokers to 0, or wait until its schedule lets it sleep.",
  },
  cluster_not_deleted: { next: "There is nothing to restore: reload the list of clusters." },
  cluster_not_suspended: { next: "There is nothing to resume: reload the cluster's page." },
  cluster_starting: {
    next: (problem) => `The cluster is waking, which takes some seconds. ${waiting(problem)}`,
    unchanged: true,
  },
  cluster_suspended: {
    next: "Resume the cluster first, or settle why the organization is suspended.",
  },
  credential_replaced: { next: "Change the credential that replaced it." },
  deletion_protected: { next: "Switch its deletion protection off first, in its settings." },
  deletions_held: {
    next: "Brokers of the service are unhealthy. Delete it once the incident is closed.",
  },
  fetch_suspended: {
    next: "Records are kept. To read them, raise or remove the budget, or settle what is unpaid.",
  },
  group_active: {
    next: "Stop the group's consumers and wait until its state is Empty, then try again.",
  },
  kafka_refused: { next: "Change the request so that Kafka takes it: its reason is above." },
  kafka_unreadable: {
    next: "Read from an offset behind these records, or skip the damaged batch in its partition.",
    unchanged: true,
  },
  no_capacity: { next: "Try again later, or choose another region.", unchanged: true },
  not_damaged: {
    next: "There is nothing to skip here: read the partition again from this offset.",
  },
  operation_in_progress: {
    next: "Wait until the other operation has ended: the cluster's page shows it.",
  },
  outcome_unknown: { next: "Reload to see whether the change was made before you repeat it." },
  produce_suspended: {
    next: "Raise or remove the budget that stops it, if one does, or settle what is unpaid.",
  },
  quota_used_up: {
    next: (problem) => `A quota of the cluster slows this down. ${waiting(problem)}`,
  },
  rotation_in_progress: { next: "Delete the older credential, or wait until it has expired." },
  too_large: { next: "Make it smaller: fewer entries, or shorter values." },
  too_many_streams: { next: "Close a live tail in another window, then start this one again." },
  unknown_region: { next: "Choose one of the regions that are offered." },

  // Limits, usage and money.
  already_void: { next: "There is nothing to take back: reload the list of invoices." },
  day_not_over: { next: "Wait until the day is over in UTC." },
  day_not_rolled_up: { next: "Wait until the day's usage is rolled up." },
  document_damaged: { next: "Report the request id: the document must be made anew." },
  document_pending: { next: "The document is being made. Ask for it again in some seconds." },
  document_refers_outside: { next: "Report the request id: a person must look at the document." },
  limit_not_higher: { next: "Ask for more than the limit is at present." },
  limit_not_raisable: { next: "Stay within this limit: it is the same for everybody." },
  limit_request_answered: { next: "Reload the list of requests to see the answer." },
  limit_request_open: { next: "Wait for the answer to the request that is open under Limits." },
  month_open: { next: "Wait until the month's usage is complete, or close it early for a reason." },
  cards_not_taken: { next: "Invoices are not paid by card here; see the invoice for how to pay." },
  no_payment_method: { next: "Add a card first." },
  below_card_minimum: { next: "Wait for the next invoice, which is charged together with it." },
  payment_in_progress: { next: "Wait a minute, then look at the invoice again." },
  not_issued: { next: "Wait until the invoice is issued." },
  nothing_open: { next: "Reload the invoice: it is paid or void." },
  numbers_diverged: { next: "No invoice is issued until a person has looked at it: report this." },
  payment_conflict: { next: "Compare the amount and the id with what was entered before." },
  publish_refused: { next: "Look at the check that failed, which is named above." },
  reconcile_busy: { next: "Wait until the other comparison of this day has ended." },
  refund_too_large: { next: "Give back at most what is left of the payment." },
  rollup_busy: { next: "Wait until the other roll-up of this day has ended." },
  rollup_failed: { next: "Nothing was published. Report the request id." },
  unknown_cell: { next: "Choose a cell that the control plane has." },
  unknown_organization: { next: "Check the organization's id, and when it was created." },
  usage_changed: { next: "Try again in a minute, once the usage is published." },
};

/** The hint of a code that the table lacks: the service may be newer than the page. */
function hintOfStatus(problem: Problem): string {
  const { status } = problem;
  if (status === 0) return "Check that the service runs; this page tries again by itself.";
  if (status === 401) return "Sign in again.";
  if (status === 404) return "It may have been deleted. Go back to the list.";
  if (status === 409) return "Reload the page to see what the text above names, then try again.";
  if (status === 412) return "Somebody changed it meanwhile. Reload, then try again.";
  if (status === 429) return waiting(problem);
  if (status >= 500) return "Try again. If it lasts, report the request id.";
  return "Correct what is named above, then try again.";
}

/** Returns the hint in the table of a problem's code, if it has one. */
function hintOf({ code }: Problem): Hint | undefined {
  return Object.hasOwn(HINTS, code) ? HINTS[code] : undefined;
}

/** Returns what the reader of a problem can do. */
export function nextOf(problem: Problem): string {
  const next = hintOf(problem)?.next ?? hintOfStatus;
  return typeof next === "string" ? next : next(problem);
}

/** Returns what was not lost, and whether a change was made. */
export function keptOf(problem: Problem): string {
  if (problem.method === "GET") return "This was only a read: nothing was changed.";
  const refused = problem.status >= 400 && problem.status < 500;
  if (refused || hintOf(problem)?.unchanged) return "Nothing was changed.";
  return "Records and clients are not affected. The change itself may or may not have been made.";
}
