"""What to run to measure, and how to read what it prints."""

from __future__ import annotations

from agents.benchmark import all_benchmarks

__all__ = ["all_benchmarks"]
