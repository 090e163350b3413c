"""Adding and removing webhooks."""

import secrets
import uuid
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import urlsplit

from django.db.models import QuerySet
from django.utils import timezone

from webapp import sealing
from webapp.accounts.models import User
from webapp.notices.addresses import AddressError, place_of, resolve
from webapp.notices.kinds import KINDS
from webapp.notices.models import Webhook
from webapp.records.models import DiagnosisSession, Event
from webapp.records.models.session import stands

MOST = 20  # of one session, or of the instance
SECRET_BYTES = 32  # Standard Webhooks has 24 to 64


def webhook_add(session: DiagnosisSession | None, *, url: str, kinds: Iterable[str], by: User) -> tuple[Webhook, str]:
    """The webhook and its secret, which is stored sealed and shown once. session None: it gets the events of all.

    Raises AddressError, sealing.SealError.
    """
    chosen = [kind for kind in KINDS if kind in set(kinds)]
    if len(url) > 500:
        raise AddressError("An address has at most 500 characters.")
    if not chosen:
        raise AddressError("Choose at least one kind of news.")
    if Webhook.objects.filter(session=session, removed_at=None).count() >= MOST:
        raise AddressError(f"There are {MOST}; remove one first.")
    place = place_of(url)
    resolve(place)
    row_id, secret = uuid.uuid4(), f"whsec_{b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"
    key_id, sealed = sealing.keyring().seal(secret.encode(), str(row_id))
    made = Webhook.objects.create(
        id=row_id, session=session, url=url, kinds=chosen, sealed=sealed, key_id=key_id, made_by=by
    )
    if session:
        Event.record(session, "webhook_added", by, host=place.host, kinds=chosen)
    return made, secret


def webhooks_of(session: DiagnosisSession | None) -> QuerySet[Webhook]:
    """The webhooks of this session, or those of all sessions; each with whether it stands."""
    webhooks = Webhook.objects.filter(session=session, removed_at=None).annotate(standing=stands())
    return webhooks.select_related("made_by")


def webhook_remove(webhook: Webhook, *, by: User) -> None:
    """Nothing is sent any more, and the secret is forgotten; what was sent stays to be seen."""
    gone = Webhook.objects.filter(pk=webhook.pk, removed_at=None)
    if gone.update(removed_at=timezone.now(), sealed="", key_id="") and webhook.session:
        Event.record(webhook.session, "webhook_removed", by, host=place_host(webhook))


def place_host(webhook: Webhook) -> str:
    """The host alone, for people who may not see the whole address: it often holds a secret of the receiver's."""
    return urlsplit(webhook.url).hostname or ""
