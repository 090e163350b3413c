"""The report as a file for programs: Markdown or JSON."""

import json
from dataclasses import asdict

from webapp.diagnosis.diagnosis import Diagnosis
from webapp.presenting.diagnosis_json import as_dict
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.records.redaction import hiding
from webapp.review.report.contents import Report, report_of
from webapp.review.report.markdown import as_markdown

MEDIA_TYPES = {"md": "text/markdown; charset=utf-8", "json": "application/json"}


def report_file(session: DiagnosisSession, form: str, *, raw: bool) -> str:
    """form: one of MEDIA_TYPES. raw: with names and addresses. Raises RedactionError."""
    result = session_diagnosis(session)
    report = report_of(session, result, None if raw else hiding(session))
    return as_markdown(report) if form == "md" else _as_json(report, result)


def _as_json(report: Report, result: Diagnosis) -> str:
    """The diagnosis whole only when nothing has to be hidden: its facts hold names and addresses."""
    record = {"schema": "peerpath.report/1", **asdict(report)}
    if not report.redacted:
        record["diagnosis"] = as_dict(result)
    return json.dumps(record, sort_keys=True, ensure_ascii=False, indent=1) + "\n"
