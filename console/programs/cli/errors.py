"""Errors that end a command: sentences for people, and exit codes for scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REFUSED = 1
USAGE = 2
NOT_ALLOWED = 3
NOT_FOUND = 4
CONFLICT = 5
INVALID = 6
LIMITED = 7
UNAVAILABLE = 8
OPERATION_FAILED = 9
INTERRUPTED = 130

# The meaning of each, for the reference page.
EXIT_CODES = {
    0: "Done.",
    REFUSED: "The request was refused for a reason that is not listed below.",
    USAGE: "The command line or the configuration is wrong; nothing was sent.",
    NOT_ALLOWED: "There is no API key, it has ended, or its role does not allow this (401, 403).",
    NOT_FOUND: "It does not exist, or belongs to another organization (404).",
    CONFLICT: "The resource's state does not allow it now (409, 412).",
    INVALID: "A value is not valid (400, 422).",
    LIMITED: "A limit is reached (`quota`, 429).",
    UNAVAILABLE: "Freshet could not be reached, or does not work at the moment (5xx).",
    OPERATION_FAILED: "The operation that was waited for failed, or took longer than `--timeout`.",
    INTERRUPTED: "Ctrl-C was pressed.",
}

_BY_STATUS = {
    400: INVALID,
    401: NOT_ALLOWED,
    403: NOT_ALLOWED,
    404: NOT_FOUND,
    409: CONFLICT,
    412: CONFLICT,
    422: INVALID,
    429: LIMITED,
}

# What to do about a problem, by its code: the service's own sentence cannot name these commands.
_ADVICE = {
    "not_authenticated": "Sign in with `freshet login`, or set FRESHET_API_KEY.",
    "cluster_asleep": "Add --wake, or wake it first: freshet cluster wake CLUSTER --wait",
    "cluster_suspended": "Resume it first: freshet cluster resume CLUSTER --wait",
    "cluster_deleted": "Bring it back first: freshet cluster undelete CLUSTER --wait",
    "cluster_starting": "Try again in a moment.",
    "operation_in_progress": "Wait for it first: freshet operation wait OPERATION",
    "deletion_protected": (
        "Switch the protection off first: freshet cluster update CLUSTER --no-deletion-protection"
    ),
    "limit_reached": (
        "See `freshet limit list`; ask for more with `freshet limit-request create`."
    ),
    "too_many_requests": "Wait a little; `freshet limit list` shows how many are allowed.",
    "name_taken": "Choose another name with --name.",
    "two_keys_already": "Revoke one first: freshet api-key delete KEY",
    "project_not_empty": (
        "Move its clusters first: freshet cluster update CLUSTER --project PROJECT"
    ),
    "would_lock_out": "Add --force if you are sure that you can still reach the organization.",
    "person_required": "Do this in the console: an API key may not.",
}


class CommandError(Exception):
    """A command cannot be done. `advice`: what to do; empty where that is not known."""

    def __init__(self, message: str, *, advice: str = "", code: int = USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.code = code

    def lines(self) -> list[str]:
        """Returns the lines that are printed."""
        return [self.message, *([self.advice] if self.advice else [])]


class Unreachable(CommandError):
    """The service gave no answer, or one that is not Freshet's."""

    def __init__(self, message: str) -> None:
        advice = (
            "Is the address right, and is Freshet up? `freshet profile show` shows the address."
        )
        super().__init__(message, advice=advice, code=UNAVAILABLE)


class Refused(CommandError):
    """The service refused a request with a problem document (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.problem_code = str(problem.get("code", ""))
        message = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        super().__init__(message, advice=self._advice(), code=self._exit_code())

    def _exit_code(self) -> int:
        if "quota" in self.problem:
            return LIMITED
        if self.status >= 500:
            return UNAVAILABLE
        return _BY_STATUS.get(self.status, REFUSED)

    def _advice(self) -> str:
        advice = _ADVICE.get(self.problem_code, "")
        operation = self.problem.get("operation_id")
        return advice.replace("OPERATION", str(operation)) if operation else advice

    def lines(self) -> list[str]:
        """Returns the problem's sentence, the wrong values, what to do, and the request's id."""
        lines = [self.message]
        for error in self.problem.get("errors") or []:
            pointer = option_of(str(error.get("pointer", "")))
            lines.append(f"  {pointer}: {error.get('detail', '')}" if pointer else error["detail"])
        quota = self.problem.get("quota")
        if quota:
            lines.append(f"  limit {quota['name']}: {quota['used']} of {quota['limit']} used")
        if self.advice:
            lines.append(self.advice)
        if self.status >= 500 and self.problem.get("request_id"):
            lines.append(
                f"If it goes on, give support this request id: {self.problem['request_id']}"
            )
        return [line for line in dict.fromkeys(lines) if line]


# Options of `cluster` with names shorter than those of their values, as the table of it has them.
_SHORT_OPTIONS = {"scale-min": "min", "scale-max": "max"}


def option_of(pointer: str) -> str:
    """Returns the option of a value, from a JSON pointer (`/spec/idle_timeout_s`) or `?parameter`.

    Returns an empty text for a pointer to the whole body.
    """
    if pointer.startswith("?"):
        pointer = "/" + pointer[1:]
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    if not parts:
        return ""
    name = parts[0] if parts[0] != "spec" or len(parts) == 1 else "-".join(parts[1:])
    name = _SHORT_OPTIONS.get(name, name)
    return f"--{name.replace('_', '-')}" + "".join(
        f" {part}" for part in parts[1:] if parts[0] != "spec"
    )
