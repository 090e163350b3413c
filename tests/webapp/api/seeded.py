"""What the served installation begins with; run by `manage.py shell`, prints it as one line of JSON."""

from __future__ import annotations

import json
import sys

from tests.webapp.addresses import arguments_of
from webapp.accounts.models import ApiToken, Scope, User
from webapp.review.models import Decision
from webapp.runs.samples import open_sample


def seed() -> None:
    """alice: an operator among others, who may not use this machine's keys. carol: an administrator."""
    alice = User.objects.create(username="alice")
    carol = User.objects.create(username="carol", is_staff=True)
    session = open_sample("kpro6@after", owner=alice)
    parts = arguments_of(session, alice)
    Decision.objects.update(number=1)
    tokens = {user.username: ApiToken.make(user, name="t", scopes=Scope.values, days=1)[1] for user in (alice, carol)}
    tokens["reader"] = ApiToken.make(carol, name="t", scopes=[Scope.READ], days=1)[1]
    found = {"tokens": tokens, "parts": {**parts, "number": 1}}
    sys.stdout.write(json.dumps(found, default=str) + "\n")
