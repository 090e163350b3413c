"""A program that asks as a person."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from webapp.accounts.models import ApiToken, Scope, User


@dataclass(frozen=True)
class Program:
    """Asks with one token; JSON in, JSON out."""

    token: str

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        client: Client | None = None,
        **headers: str,
    ) -> Any:
        sent = (
            {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        )
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        asked: Any = {"authorization": f"Bearer {self.token}", **named}
        browser = client or Client(raise_request_exception=False)
        return browser.generic(method, f"/api/v1{path}", headers=asked, **sent)


@pytest.fixture(autouse=True)
def _no_remembered_failures() -> None:
    cache.clear()


@pytest.fixture
def program() -> Callable[..., Program]:
    """Makes a token for a person, with every scope unless some are named."""

    def make(owner: User, *scopes: str) -> Program:
        named = list(scopes or Scope.values)
        return Program(ApiToken.make(owner, name="a test", scopes=named, days=1)[1])

    return make
