"""Shapes of common models, for the [model] table of a workload."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel

from webapp.api.auth import READ
from webapp.diagnosis.reference.models import PRESETS

router = Router(tags=["sessions"])


class ModelPreset(BaseModel):
    """model: keys of the workload's [model] table; bytes depend on the quantisation served and are yours to
    give. source: where the figures are from."""

    id: str
    title: str
    model: dict[str, Any]
    source: str


@router.get("/presets", auth=READ, response=list[ModelPreset])
def list_presets(request: HttpRequest) -> list[ModelPreset]:
    """What the page of the symptom can fill in for common models."""
    return [ModelPreset(id=key, title=one.title, model=one.fields, source=one.source) for key, one in PRESETS.items()]
