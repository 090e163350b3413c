"""Addresses of comments, decisions and their verification."""

from __future__ import annotations

from django.urls import path

from webapp.review.views import comments, decide, verify

app_name = "review"
S = "sessions/<uuid:session_id>/"
urlpatterns = [
    path("decisions", decide.decisions, name="decisions"),
    path(S + "comment", comments.comment, name="comment"),
    path(S + "decide", decide.decide, name="decide"),
    path(S + "decisions/<int:number>", decide.decision, name="decision"),
    path(S + "decisions/<int:number>/applied", verify.applied, name="applied"),
    path(S + "decisions/<int:number>/close", verify.close, name="close"),
    path(S + "verify", verify.verify, name="verify"),
]
