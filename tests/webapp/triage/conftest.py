"""A machine of Alice's session."""

from __future__ import annotations

import pytest

from webapp.accounts.models import User
from webapp.triage.models import DiagnosisSession, Target


def gpu_vm(session: DiagnosisSession, user: User, host: str = "gpu-vm") -> Target:
    return Target.objects.create(
        session=session, role="guest", agent="ssh", host=host, user="ops", created_by=user
    )


@pytest.fixture
def target(session_of_alice: DiagnosisSession, alice: User) -> Target:
    return gpu_vm(session_of_alice, alice)
