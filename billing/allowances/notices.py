"""Mails about trials: when little is left of one, and when it is used up and traffic is refused.

Each is noted with the change that it is about, and sent after it.
"""

from __future__ import annotations

from billing.choices import TrialNoticeKind
from billing.mails import send_mail
from billing.models import CardAccount, Trial, TrialNotice
from console.base.accounts.services import billing_addresses
from console.base.common.conf import config
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope

TASK = "billing.send_trial_mail"
ENDING = """\
With a card everything goes on, and each month has an allowance that is free:

{link}
"""
ENDING_REFUSED = """\
Your organization has a card, which pays for no further organization at present. The console says
why, and takes another card:

{link}
"""
NEARLY_USED = """\
Little is left of what your organization may use before it has a payment method: of data in, data
out, storage or partitions, four fifths are used.

Once one of them is used up, your clusters refuse to take records and to give them out. What is
stored stays.

{ending}"""
USED_UP = """\
Your organization has used up what is free before it has a payment method. Your clusters refuse to
take records and to give them out now. Consumers stay in their groups, and what is stored stays.

What is stored beyond the trial, and partitions, go on being billed. Topics that are not needed can
be deleted meanwhile.

{ending}"""
NO_TRIAL = """\
Your address gave its trial to an organization before, and gives none to this one. So your clusters
refuse to take records and to give them out until the organization has a payment method.

{ending}"""
SUBJECTS = {
    TrialNoticeKind.NEARLY_USED.value: "Your trial is nearly used up",
    TrialNoticeKind.USED_UP.value: "Your clusters refuse traffic until a card is given",
}


def note_notice(organization_id: str, kind: TrialNoticeKind) -> None:
    """Notes a mail that a worker sends. Needs the organization's scope and a transaction."""
    notice = TrialNotice.objects.create(organization_id=organization_id, kind=kind.value)
    enqueue_task(
        task=TASK,
        organization_id=organization_id,
        arguments={"organization_id": organization_id, "notice_id": notice.pk},
    )


def send_trial_mail(*, organization_id: str, notice_id: str) -> None:
    """Sends the mail of a notice to the members who look after money; nothing if there are none,
    or no such notice of the organization.

    A repeated one has the same Message-ID, by which mailboxes know it.
    """
    with organization_scope(organization_id):
        rows = TrialNotice.objects.filter(organization_id=organization_id, pk=notice_id)
        notice = rows.first()
        trial = Trial.objects.filter(pk=organization_id).first()
        addresses = billing_addresses(organization_id=organization_id)
        cards = CardAccount.objects.filter(pk=organization_id).exclude(method_id="")
        has_card = cards.exists()
    if notice is None or not addresses:
        return
    text = mail_text(notice.kind, has_trial=bool(trial and trial.quantities), has_card=has_card)
    send_mail(subject=SUBJECTS[notice.kind], text=text, to=addresses, key=notice.pk)


def mail_text(kind: str, *, has_trial: bool, has_card: bool) -> str:
    """The text of a mail. `has_card`: the organization has one that does not pay for it."""
    ending = (ENDING_REFUSED if has_card else ENDING).format(
        link=f"{config().web.public_url}/billing"
    )
    if kind == TrialNoticeKind.NEARLY_USED:
        return NEARLY_USED.format(ending=ending)
    return (USED_UP if has_trial else NO_TRIAL).format(ending=ending)
