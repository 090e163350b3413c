"""Sign-ins, stored under the hash of the cookie's key: a reader of the database, or of a copy, cannot use them.
Django's own store keeps the key itself (django.contrib.sessions, 5.2).
"""

import hashlib

from django.contrib.sessions.backends import db
from django.contrib.sessions.base_session import AbstractBaseSession
from django.utils import timezone

_LONGEST = 40  # characters that the column takes: 160 bits


def stored_key(key: str) -> str:
    """A key is 32 random letters and digits, 165 bits, so nothing has to be added or repeated."""
    return hashlib.sha256(key.encode()).hexdigest()[:_LONGEST]


class SessionStore(db.SessionStore):
    """Its synchronous part alone: nothing here serves a request asynchronously."""

    def _get_session_from_db(self) -> AbstractBaseSession | None:
        unexpired = self.model.objects.filter(expire_date__gt=timezone.now())
        session = unexpired.filter(session_key=stored_key(self.session_key or "")).first()
        if session is None:
            self._session_key = None
        return session

    def exists(self, session_key: str) -> bool:
        return super().exists(stored_key(session_key))

    def create_model_instance(self, data: dict[str, object]) -> AbstractBaseSession:
        made = super().create_model_instance(data)
        made.session_key = stored_key(made.session_key)
        return made

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            super().delete(stored_key(key))
