"""The order of the rooms where no import shows it: names of pages, templates, and look-ups from the other end of a
relation."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db.models import Field, Model
from django.template import engines
from django.template.backends.django import DjangoTemplates
from django.urls import get_resolver

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "templates"
PAGES = "webapp.pages"


def _floors() -> list[list[str]]:
    """Rooms that stand beside each other, from the top down, as the contract of imports has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in layers]


FLOORS = _floors()
# By room: how many floors stand above it.
DEPTH = {room: depth for depth, rooms in enumerate(FLOORS) for room in rooms}
BELOW_PAGES = [room for room, depth in DEPTH.items() if depth > DEPTH[PAGES]]


def _files(room: str) -> list[Path]:
    path = ROOT / room.replace(".", "/")
    files = [path.with_suffix(".py")] if path.with_suffix(".py").is_file() else sorted(path.rglob("*.py"))
    return [file for file in files if "migrations" not in file.parts]


@cache
def _nodes(file: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(file.read_text())))


def _texts(file: Path) -> Iterator[tuple[str, int]]:
    for node in _nodes(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno


def _names_of_pages() -> set[str]:
    """ "session:diagnosis" and its like."""
    resolver = get_resolver()
    return {
        f"{namespace}:{name}"
        for namespace, (_, inner) in resolver.namespace_dict.items()
        for name in inner.reverse_dict
        if isinstance(name, str) and namespace != "api"
    }


PAGE_NAMES = _names_of_pages()


def test_the_rooms_and_their_pages_are_found() -> None:
    assert {"webapp.records", "webapp.review", "webapp.notices"} <= set(BELOW_PAGES)
    assert all(_files(room) for room in DEPTH)
    assert {"session:diagnosis", "decision:verify", "link:asked", "help:page"} <= PAGE_NAMES


@pytest.mark.parametrize("room", [*BELOW_PAGES, "webapp.api"])
def test_no_room_but_the_pages_names_a_page_a_template_or_a_tag(room: str) -> None:
    named = [
        f"{file.relative_to(ROOT)}:{line}: {text}"
        for file in _files(room)
        for text, line in _texts(file)
        if text in PAGE_NAMES or re.fullmatch(r"(templates/)?[\w/-]+\.html(#\w+)?", text) or "templatetags" in text
    ]
    assert not named


@pytest.mark.parametrize("room", BELOW_PAGES)
def test_no_room_below_the_pages_makes_addresses_or_pages(room: str) -> None:
    makers = {"django.urls", "django.template", "django.template.loader", "django.template.response"}
    names = {"redirect", "render", "reverse", "reverse_lazy", "resolve_url"}
    imports = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in _files(room)
        for node in _nodes(file)
        if isinstance(node, ast.ImportFrom) and (node.module in makers or names & {alias.name for alias in node.names})
    ]
    assert not imports


def _room_of(model: type[Model]) -> str | None:
    return next((room for room in DEPTH if model.__module__.startswith(f"{room}.")), None)


def _ways_up() -> Iterator[tuple[str, str]]:
    """(a lower room, the name by which its models lead to rows of a higher one)."""
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.get_fields():
            target = getattr(field, "related_model", None)
            if not isinstance(field, Field) or not isinstance(target, type) or not issubclass(target, Model):
                continue
            upper, lower = _room_of(model), _room_of(target)
            if upper and lower and DEPTH[upper] < DEPTH[lower]:
                ends: Any = field  # what the far end of a relation is called, in Python and in look-ups
                names = {ends.remote_field.get_accessor_name(), ends.related_query_name()}
                yield from ((upper, name) for name in names if name and not name.endswith("+"))


WAYS_UP = sorted(set(_ways_up()))


def _uses(file: Path, name: str) -> Iterator[int]:
    """Lines that lead by a relation's name: as an attribute, or as a part of a look-up."""
    for node in _nodes(file):
        if isinstance(node, ast.Attribute) and node.attr == name:
            yield node.lineno
        elif isinstance(node, ast.keyword) and node.arg and "__" in node.arg and name in node.arg.split("__"):
            yield node.value.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = node.value.lstrip("-").split("__")
            if name in parts and (len(parts) > 1 or _looks_up(file, node)):
                yield node.lineno


def _looks_up(file: Path, constant: ast.Constant) -> bool:
    """Whether the text stands in a call that takes names of relations."""
    takers = {"select_related", "prefetch_related", "Prefetch", "Count", "Max", "Min", "Sum", "F", "OuterRef", "Q"}
    takers |= {"values", "values_list", "only", "defer", "order_by", "getattr", "attrgetter"}
    for call in _nodes(file):
        if isinstance(call, ast.Call) and constant in call.args:
            callee = call.func
            return (callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")) in takers
    return False


def test_relations_that_lead_up_are_found() -> None:
    assert ("webapp.review", "decisions") in WAYS_UP
    assert ("webapp.notices", "webhooks") in WAYS_UP


@pytest.mark.parametrize(("upper", "name"), WAYS_UP)
def test_no_room_looks_into_a_higher_one(upper: str, name: str) -> None:
    """What a page counts, the page's room asks for."""
    lower = [room for room, depth in DEPTH.items() if depth > DEPTH[upper]]
    uses = [f"{file.relative_to(ROOT)}:{line}" for room in lower for file in _files(room) for line in _uses(file, name)]
    assert not uses


def test_a_use_of_a_relation_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "looking.py"
    file.write_text(
        "session.decisions.all()\nrows.filter(decisions__state='draft')\nrows.values('decisions__number')\n"
        "rows.prefetch_related('decisions')\nkind = 'decisions'\n"
    )
    assert sorted(_uses(file, "decisions")) == [1, 2, 3, 4]


def _templates() -> dict[str, str]:
    return {str(path.relative_to(TEMPLATES)): path.read_text() for path in TEMPLATES.rglob("*.html")}


def test_every_folder_of_templates_has_its_room() -> None:
    """A folder is named as the part of the pages that shows it; components and the frame are of all of them."""
    folders = {path.name for path in TEMPLATES.iterdir() if path.is_dir()} - {"components"}
    assert folders
    assert all((ROOT / "webapp/pages" / folder / "urls.py").is_file() for folder in folders)


def test_templates_take_in_what_there_is() -> None:
    """A component takes in components alone."""
    templates = _templates()
    taken = re.compile(r"{%-?\s*(?:include|extends)\s+[\"']([^\"'#]+)")
    missing = [(name, other) for name, text in templates.items() for other in taken.findall(text)]
    assert [pair for pair in missing if pair[1] not in templates] == []
    components = [pair for pair in missing if pair[0].startswith("components/")]
    assert [pair for pair in components if not pair[1].startswith("components/")] == []


def test_templates_load_tags_of_the_pages_alone() -> None:
    backend = engines["django"]
    assert isinstance(backend, DjangoTemplates)
    libraries = backend.engine.libraries
    loaded = re.compile(r"{%-?\s*load\s+([\w\s]+?)\s*-?%}")
    tags = {libraries[tag] for text in _templates().values() for tags in loaded.findall(text) for tag in tags.split()}
    ours = {module for module in tags if not module.startswith("django.")}
    assert ours
    assert all(module.startswith(f"{PAGES}.templatetags.") for module in ours)


def test_templates_name_pages_alone() -> None:
    """No address of the API, which stands above the pages."""
    address = re.compile(r"{%-?\s*url\s+[\"']([\w:-]+)")
    named = {name for text in _templates().values() for name in address.findall(text)}
    assert named - PAGE_NAMES <= {"api_help"}
