"""Why a call did not bring an answer. Each error has a code, and says what its reader can do."""

from __future__ import annotations


class CallError(Exception):
    """A call that failed. Its subclasses say why.

    `code` never changes. `detail` is for the people who chose the address: it names what they can
    change, and nothing of the network that the call was made from. `retry` says whether the same
    call may succeed later.
    """

    code = "call_failed"
    retry = False

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class AddressInvalid(CallError):
    """The address is not one that may be called, as it is written."""

    code = "address_invalid"


class AddressNotPublic(CallError):
    """The host has no address, or one that is not public.

    The two are one error: otherwise tenants could ask which names exist in the service's network.
    """

    code = "address_not_public"


class NameUnresolved(CallError):
    """The servers of the name gave no answer, or a broken one."""

    code = "name_unresolved"
    retry = True


class RequestInvalid(CallError):
    """The method, a header or the body is not one that a call may have."""

    code = "request_invalid"


class TooManyCalls(CallError):
    """The organization has as many calls under way as it may have at one time."""

    code = "too_many_calls"
    retry = True


class CallTimedOut(CallError):
    """The time of the call was over before the whole answer was there."""

    code = "timed_out"
    retry = True


class ConnectionFailed(CallError):
    """No connection could be made, or it ended before the whole answer was there."""

    code = "connection_failed"
    retry = True


class CertificateRefused(CallError):
    """The certificate is not valid for the host, or no known authority vouches for it."""

    code = "certificate_refused"


class TlsFailed(CallError):
    """Host and service could not agree on an encrypted connection."""

    code = "tls_failed"


class AnswerInvalid(CallError):
    """What the host sent is not HTTP."""

    code = "answer_invalid"


class AnswerTooLarge(CallError):
    """The answer, or its head, is larger than the call takes."""

    code = "answer_too_large"


class Redirected(CallError):
    """The host answered with another address, and no call follows one."""

    code = "redirected"
