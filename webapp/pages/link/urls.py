"""Addresses of links, of the scripts for other hands, and of the plan."""

from django.urls import path

from webapp.pages.link import answer, approval, collecting, links, plan

app_name = "link"
S = "sessions/<uuid:session_id>/"
urlpatterns = [
    path(S + "script/<str:role>", collecting.script, name="script"),
    path(S + "plan", plan.plan, name="plan"),
    path(S + "plan/<str:phase>/<str:role>/<str:act>", plan.phase_file, name="phase_file"),
    path(S + "handed/<str:sha256>", plan.kept_file, name="kept_file"),
    path(S + "links", links.links, name="links"),
    path(S + "links/make", links.make, name="make_link"),
    path(S + "links/<uuid:link_id>/revoke", links.revoke, name="revoke_link"),
    path(S + "links/<uuid:link_id>/accept", links.accept, name="accept_link"),
    path(S + "answers/<int:answer_id>/set-aside", links.put_aside, name="set_aside"),
    path("link/<str:token>", answer.enter, name="enter"),
    path("asked/<uuid:link_id>", answer.link_page, name="asked"),
    path("asked/<uuid:link_id>/answer", answer.answer, name="answer"),
    path("asked/<uuid:link_id>/questions", answer.questions, name="questions"),
    path("asked/<uuid:link_id>/decline", answer.decline, name="decline"),
    path("asked/<uuid:link_id>/take-back/<int:answer_id>", answer.withdraw, name="take_back"),
    path("asked/<uuid:link_id>/judge/<int:number>", approval.judge, name="judge"),
    path("fetch/<str:sha256>", answer.fetch, name="fetch"),
]
