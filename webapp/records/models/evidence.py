"""Immutable raw output."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

from webapp.records import blob_store
from webapp.records.long_text import Block, LongText
from webapp.records.models.run import Run
from webapp.records.models.session import DiagnosisSession

SMALL_BYTES = 2**16  # most outputs; those are kept in memory while one after the other is read


class Evidence(models.Model):
    """One raw output: a probe's, a benchmark's, or a whole paste or upload.

    reader: probe or benchmark id, "paste" for text that holds several. origin: "run", "paste",
    "upload", "sample". name: "<reader>@<12 hex of sha256>", how claims cite it. meta: exit code,
    alternative, duration and other circumstances. size_bytes: of the output; place: where it lies, "" for
    in this row, or in blocks of its own when it is long. set_aside_at: when a person said that it does not
    count; its readings are none of the case's then. Never changed after it is stored, save that
    retention takes the bytes away (purged_at); only what today's parsers make of it is: unplaced, lines
    nobody could place ([first, last]); doubts, lines that could be either machine's ([first, last, taken
    as, [readers]]).
    """

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="evidence")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="evidence")
    reader = models.CharField(max_length=100)
    view = models.CharField(max_length=10)
    origin = models.CharField(max_length=10)
    label = models.CharField(max_length=200, blank=True)
    sha256 = models.CharField(max_length=64)
    size_bytes = models.PositiveBigIntegerField(default=0)
    body = models.BinaryField(default=b"")
    place = models.CharField(max_length=100, blank=True)
    stderr = models.BinaryField(default=b"")
    purged_at = models.DateTimeField(null=True, blank=True)
    set_aside_at = models.DateTimeField(null=True, blank=True)
    meta = models.JSONField(default=dict)
    epoch = models.PositiveIntegerField(default=0)
    unplaced = models.JSONField(default=list)
    doubts = models.JSONField(default=list)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("id",)

    @property
    def name(self) -> str:
        return f"{self.reader}@{self.sha256[:12]}"

    @property
    def raw(self) -> bytes:
        """The output as it came; b"" when it was purged. Raises LostError."""
        if self.purged_at or self.body:
            return bytes(self.body)
        if self.place:
            return blob_store.fetch(self.place, self.sha256)
        return b"".join(block.read() for block in self.blocks.all())

    @classmethod
    def with_raw(cls, rows: Iterable[Evidence]) -> Iterator[tuple[Evidence, bytes]]:
        """Each with its output as it came. Machines say mostly what they said before, and a storage takes
        its time for each question: small outputs are fetched from there once. Raises LostError."""
        fetched: dict[str, bytes] = {}
        for evidence in rows:
            outside = evidence.place and not evidence.purged_at
            raw = fetched[evidence.sha256] if outside and evidence.sha256 in fetched else evidence.raw
            if outside and len(raw) <= SMALL_BYTES:
                fetched[evidence.sha256] = raw
            yield evidence, raw

    @property
    def text(self) -> LongText:
        """The output by its lines: of a long one only those blocks are read that are looked at, then.
        Raises LostError, as reading a block does."""
        in_one = self.purged_at or self.body or self.place
        blocks = () if in_one else tuple(self.blocks.defer("body"))
        if not blocks:
            return LongText.of(self.raw)
        return LongText.of_blocks(Block(block.lines, block.read) for block in blocks)

    @classmethod
    def store(cls, blob: blob_store.Blob, **columns: Any) -> Evidence:
        return cls.store_all([(blob, columns)])[0]

    @classmethod
    def store_all(cls, rows: Sequence[tuple[blob_store.Blob, Mapping[str, Any]]]) -> list[Evidence]:
        """All with their blocks, or none."""
        with transaction.atomic(savepoint=False):
            made = Evidence.objects.bulk_create(Evidence(**{**blob.columns, **columns}) for blob, columns in rows)
            EvidenceBlock.objects.bulk_create(
                EvidenceBlock(evidence=evidence, number=number, **block)
                for evidence, (blob, _) in zip(made, rows, strict=True)
                for number, block in enumerate(blob.blocks)
            )
        return made


class EvidenceBlock(models.Model):
    """A piece of a long output, in order. lines: how many end in it. body: deflated; place: where it
    lies instead, as it is. sha256: of it as it is."""

    evidence = models.ForeignKey(Evidence, on_delete=models.CASCADE, related_name="blocks")
    number = models.PositiveIntegerField()
    lines = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    body = models.BinaryField(default=b"")
    place = models.CharField(max_length=100, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=("evidence", "number"), name="one_block_number"),)

    def read(self) -> bytes:
        """Raises LostError."""
        if self.place:
            return blob_store.fetch(self.place, self.sha256)
        return zlib.decompress(self.body)
