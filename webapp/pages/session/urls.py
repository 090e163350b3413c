"""Addresses of sessions, their steps, evidence and runs."""

from django.urls import path

from webapp.pages import palette
from webapp.pages.session import (
    activity,
    assignment,
    audit,
    diagnosis,
    evidence,
    keys,
    look,
    manual_run,
    members,
    observing,
    reasoning,
    runs,
    search,
    start,
    stuck,
    symptom,
    targets,
)

app_name = "session"
S = "sessions/<uuid:session_id>/"
urlpatterns = [
    path("", start.start, name="start"),
    path("search", search.search, name="search"),
    path("keys", keys.keys, name="keys"),
    path("keys/<uuid:key_id>/remove", keys.remove_key, name="remove_key"),
    path("stuck", stuck.stuck, name="stuck"),
    path("stuck/move", stuck.unstick, name="unstick"),
    path("palette", palette.palette, name="palette"),
    path("sessions/open", start.open_session, name="open_session"),
    path("sessions/read", start.read_outputs, name="read_outputs"),
    path("sessions/sample", start.sample, name="sample"),
    path(S, diagnosis.session_home, name="session"),
    path(S + "symptom", symptom.symptom, name="symptom"),
    path(S + "hypothesis", symptom.hypothesis, name="hypothesis"),
    path(S + "guest", look.guest, name="guest"),
    path(S + "path", look.path, name="path"),
    path(S + "host", look.host, name="host"),
    path(S + "program/<str:benchmark>", manual_run.program_file, name="program"),
    path(S + "diagnosis", diagnosis.diagnosis, name="diagnosis"),
    path(S + "summary", reasoning.summary, name="summary"),
    path(S + "topology", diagnosis.topology, name="topology"),
    path(S + "log", audit.audit, name="log"),
    path(S + "activity", activity.activity, name="activity"),
    path(S + "members", members.change, name="members"),
    path(S + "paste/<str:role>", look.paste, name="paste"),
    path(S + "targets/<str:role>", targets.add, name="add_target"),
    path(S + "targets/<int:target_id>/key", targets.host_key, name="host_key"),
    path(S + "targets/<int:target_id>/key/forget", targets.forget_key, name="forget_key"),
    path(S + "targets/<int:target_id>/run", runs.start, name="start_run"),
    path(S + "runs/<uuid:run_id>", runs.watch, name="run"),
    path(S + "runs/<int:run_number>", runs.numbered, name="run_number"),
    path(S + "runs/<uuid:run_id>/cancel", runs.cancel, name="cancel_run"),
    path(S + "observed", observing.use_observed, name="use_observed"),
    path(S + "assignment", assignment.assignment, name="assignment"),
    path(S + "evidence/<str:name>", evidence.evidence, name="evidence"),
]
