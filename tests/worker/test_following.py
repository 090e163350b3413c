"""What is news reaches the search, whoever fails on the way."""

from __future__ import annotations

from webapp.records.models import DiagnosisSession, Digest, Event, News
from worker.tasks import follow


def test_news_becomes_a_digest_and_is_no_news_then(session: DiagnosisSession) -> None:
    Event.record(session, "step_saved", session.owner, step="symptom")
    assert News.objects.filter(session=session).exists()
    follow()
    assert Digest.objects.filter(pk=session.pk).exists()
    assert not News.objects.filter(session=session).exists()


def test_a_session_that_cannot_be_read_keeps_no_other_from_its_news(session: DiagnosisSession) -> None:
    """A workload of another shape than any version saved makes its diagnosis fail."""
    broken = DiagnosisSession.objects.create(owner=session.owner, title="b", workload=["no table"])
    for one in (broken, session):
        Event.record(one, "step_saved", session.owner, step="symptom")
    follow()
    assert Digest.objects.filter(pk=session.pk).exists()
    assert not Digest.objects.filter(pk=broken.pk).exists()
    assert not News.objects.exists()
