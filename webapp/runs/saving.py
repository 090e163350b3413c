"""`--save`: stores what a command read as a session, through the same intake as a paste."""

from django.conf import settings
from django.db import connection

from webapp.accounts.models import User
from webapp.records import intake
from webapp.records.redaction_on_intake import remember
from webapp.records.sessions import session_open
from webapp.runs.outputs import Collected


def save_as_session(collected: Collected, *, vmid: int | None) -> str:
    """A sentence that says where the session is, or why there is none."""
    owner = _first_administrator()
    if owner is None:
        return "Not kept: nobody has an account yet. Start ./run and open its one-time link first."
    names = [output.name for output in collected.outputs[:2]]
    session = session_open(owner=owner, title=f"Read by command: {', '.join(names) or 'workload'}"[:200])
    session.workload = collected.tables
    session.vmid = vmid
    session.save()
    if collected.hidden:
        remember(session, collected.hidden.made)
    for output in collected.outputs:
        if output.text.received.raw:  # else it was left out of an archive
            session.epoch = output.epoch
            intake.take_read(session, output.text, user=owner)
    session.save(update_fields=["epoch"])
    return f"Kept as {settings.PUBLIC_URL}{session.get_absolute_url()}"


def _first_administrator() -> User | None:
    """None also before the first start, when there is no database yet."""
    if User._meta.db_table not in connection.introspection.table_names():
        return None
    return User.objects.filter(is_staff=True, is_active=True).order_by("id").first()
