"""The API as a whole: its operations, what becomes of errors, and its description (OpenAPI 3.1)."""

import json
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import RawPostDataException
from django.utils.datastructures import MultiValueDict
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from ninja.parser import Parser

from webapp.api.auth import Bearer
from webapp.api.etags import IF_MATCH
from webapp.api.problems import Problem, RefusedError, documented, problem
from webapp.api.routes import (
    comments,
    decisions,
    evidence,
    links,
    machines,
    outgoing,
    probes,
    reasoning,
    runs,
    scripts,
    sessions,
    webhooks,
)
from webapp.diagnosis.wording import apostrophes

DESCRIPTION = (
    "What programs do with Peerpath: sessions, evidence, runs, the diagnosis, decisions, links, webhooks. A token "
    "from “Your account” acts with its owner's role in each session. Every error is a problem (RFC 9457). People, "
    "tokens and how a person signs in stay with the browser."
)
TOO_LONG = "The address is longer than 4094 bytes; the HTTP server itself says so, and in no problem."
# What each kind of operation may answer besides its success; RFC 9110 and RFC 6585 have the numbers.
_ANY = {
    400: "The request cannot be read.",
    401: "No token, or one that is not good.",
    403: "The token's scope, or its owner's role in the session, does not reach.",
    404: "There is nothing there, or it is not yours to see.",
    422: "Something that was sent cannot be used; `errors` names the fields.",
    429: "Too many wrong tokens from this address.",
}
_CHANGING = {
    409: "It is not in the state for that, or somebody was first.",
    413: "Larger than what is taken.",
    415: "Not the media type that this operation takes.",
}
_VERSIONED = {412: "It was changed since you read it.", 428: "If-Match is missing."}


class PlainParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        """JSON as the standard has it. Raises ValueError. Without NUL, which PostgreSQL keeps in no
        text, as in the pages' forms."""
        return _cleaned(json.loads(request.body, parse_constant=_no_number))

    def parse_querydict(
        self, data: MultiValueDict[str, Any], list_fields: list[str], request: HttpRequest
    ) -> dict[str, Any]:
        """A field that is given twice where one belongs is no field of its kind."""
        values_by_key = {key: data.getlist(key) for key in data}
        return {
            key: values if key in list_fields or len(values) > 1 else values[0]
            for key, values in values_by_key.items()
            if values
        }


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        value.encode()  # a lone surrogate is no text
        return value.replace("\0", "")
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


class Description(OpenAPISchema):
    def operation_security(self, operation: Operation) -> Any:
        """With the scope that is needed, as OpenAPI 3.1 allows for every kind of scheme."""
        super().operation_security(operation)
        needs = [auth for auth in operation.auth_callbacks if isinstance(auth, Bearer)]
        return [{"Bearer": [str(auth.scope)]} for auth in needs]

    def responses(self, operation: Operation) -> Any:
        answers = dict(super().responses(operation))
        self.add_schema_definitions({"Problem": self._problem()})
        refusals = {status: documented(reason) for status, reason in _refusals(operation).items()}
        return answers | refusals | {414: {"description": TOO_LONG}}

    def _problem(self) -> Any:
        schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        self.add_schema_definitions(schema.pop("$defs"))
        return schema


def _refusals(operation: Operation) -> dict[int, str]:
    if not operation.auth_callbacks:
        return {}
    refusals = dict(_ANY)
    if operation.methods != ["GET"]:
        refusals |= _CHANGING
    if operation.openapi_extra == IF_MATCH:
        refusals |= _VERSIONED
    return refusals


def _typeset(value: Any) -> None:
    """Descriptions come from docstrings: on one line, with the apostrophes that pages have."""
    if isinstance(value, dict):
        if isinstance(text := value.get("description"), str):
            value["description"] = apostrophes(" ".join(text.split()))
        for item in value.values():
            _typeset(item)
    elif isinstance(value, list):
        for item in value:
            _typeset(item)


class Api(NinjaAPI):
    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        description = Description(self, "api/v1")
        _typeset(description)
        return description


api = Api(
    title="Peerpath", version="1", description=DESCRIPTION, urls_namespace="api", docs_url=None, parser=PlainParser()
)
for router in (
    sessions.router,
    machines.router,
    probes.router,
    runs.router,
    evidence.router,
    reasoning.router,
    decisions.router,
    comments.router,
    links.router,
    scripts.router,
    outgoing.router,
    webhooks.router,
):
    api.add_router("", router)


@api.exception_handler(RefusedError)
def _refused(request: HttpRequest, error: RefusedError) -> HttpResponse:
    return problem(error.status, error.detail, error.headers)


@api.exception_handler(PermissionDenied)
def _denied(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
    return problem(403, str(error) or "Your role does not allow that.")


@api.exception_handler(Http404)
def _nothing(request: HttpRequest, error: Http404) -> HttpResponse:
    return problem(404, "There is nothing at this address, or you may not see it.")


@api.exception_handler(HttpError)
def _http(request: HttpRequest, error: HttpError) -> HttpResponse:
    problem_text = "The body is no JSON." if error.status_code == 400 else error.message
    return problem(error.status_code, problem_text)


@api.exception_handler(RawPostDataException)
def _a_form(request: HttpRequest, error: RawPostDataException) -> HttpResponse:
    return problem(415, "This takes application/json.")


@api.exception_handler(RequestDataTooBig)
def _too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return problem(413, "JSON has at most 50 MiB; send files as a form.")


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    errors = [{"where": ".".join(str(part) for part in one["loc"]), "what": one["msg"]} for one in error.errors]
    problems = "; ".join(f"{one['where']}: {one['what']}" for one in errors[:5])
    return problem(422, f"Something cannot be used: {problems}", errors=errors)
