"""What a database that is away for a moment keeps from being written is written when it is back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import OperationalError

from worker.database_retry import with_retry


def test_it_is_tried_again_when_the_database_was_away_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    answers: Iterator[OperationalError | int] = iter([OperationalError("database is locked"), 7])

    def act() -> int:
        answer = next(answers)
        if isinstance(answer, OperationalError):
            raise answer
        return answer

    assert with_retry(act) == 7
    assert "database is locked" in caplog.text


def test_another_error_is_not_tried_again() -> None:
    with pytest.raises(ZeroDivisionError):
        with_retry(lambda: 1 // 0)
