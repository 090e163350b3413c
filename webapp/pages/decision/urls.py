"""Addresses of comments, decisions and their verification."""

from django.urls import path

from webapp.pages.decision import ab, alike, bundles, calibration, changed, comments, decide, record, report, verify

app_name = "decision"
S = "sessions/<uuid:session_id>/"
urlpatterns = [
    path("decisions", record.decisions, name="decisions"),
    path("sessions/bundle", bundles.open_elsewhere, name="open_bundle"),
    path(S + "report.<str:form>", report.report, name="report"),
    path(S + "bundle", bundles.take_away, name="bundle"),
    path("for-me", comments.for_me, name="for_me"),
    path(S + "discussion", comments.discussion, name="discussion"),
    path(S + "comment", comments.comment, name="comment"),
    path(S + "decide", decide.decide, name="decide"),
    path(S + "decisions/<int:number>", record.decision, name="decision"),
    path(S + "decisions/<int:number>/versions", record.versions, name="versions"),
    path(S + "decisions/<int:number>/move", record.move, name="move"),
    path(S + "decisions/<int:number>/judge", record.judge, name="judge"),
    path(S + "decisions/<int:number>/close", record.close, name="close"),
    path(S + "verify", verify.verify, name="verify"),
    path(S + "changed", changed.changes, name="changed"),
    path(S + "ab", ab.trial_page, name="ab"),
    path(S + "alike", alike.alike, name="alike"),
    path("calibration", calibration.calibration, name="calibration"),
]
