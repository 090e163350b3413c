"""Full text, on PostgreSQL and on SQLite: every word of a query has to begin a word of the text."""

import unicodedata
from typing import Any

from django.db import connection
from django.db.models import Lookup

from webapp.records.models import Entry
from webapp.records.models.digest import EntryQuerySet

LONGEST_WORD = 60
MOST_TERMS = 12
# Only the newest of more matching texts are read: ranking or counting would read them all.
LOOKED = 1000


def plain(*texts: str) -> str:
    """Words of letters and digits, in one case, with one blank between; both databases split it alike."""
    text = unicodedata.normalize("NFKC", " ".join(texts)).casefold()
    words = "".join(c if c.isalnum() else " " for c in text).split()
    return " ".join(word[:LONGEST_WORD] for word in words)


def matching(entries: EntryQuerySet, query: str) -> EntryQuerySet:
    """The entries that have all words of the query; none for a query without words."""
    terms = plain(query[:400]).split()[:MOST_TERMS]
    return entries.filter(words__begin=terms) if terms else entries.none()


def newest(entries: EntryQuerySet, query: str) -> EntryQuerySet:
    """Entries with all words of the query, newest first. With several words a first query looks whether few entries
    match: PostgreSQL takes words that are frequent alone for frequent together, and would go through all entries."""
    matches = matching(entries, query)
    if connection.vendor == "postgresql" and " " in plain(query[:400]):
        few = list(matches.order_by().values_list("pk", flat=True)[: LOOKED + 1])
        matches = entries.filter(pk__in=few) if len(few) <= LOOKED else matches
    return matches.order_by("-id")


class Begin(Lookup):
    """Asks the index of migration 0010. Terms are letters and digits alone, and only ever a parameter."""

    lookup_name = "begin"
    prepare_rhs = False

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, list[str]]:
        table = compiler.quote_name_unless_alias(self.lhs.alias)
        return f"{table}.lexemes @@ %s::tsquery", [" & ".join(f"'{t}':*" for t in self.rhs)]

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, list[str]]:
        table = compiler.quote_name_unless_alias(self.lhs.alias)
        rowids = "SELECT rowid FROM records_entry_words WHERE records_entry_words MATCH %s"
        return f"{table}.id IN ({rowids})", [" ".join(f'"{t}"*' for t in self.rhs)]


Entry._meta.get_field("words").register_lookup(Begin)
