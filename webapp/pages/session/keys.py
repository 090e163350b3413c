"""Stored SSH keys: the list, the form to add one, and removal. No page ever shows a key again."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from webapp import sealing
from webapp.pages.account.confirmation import typed
from webapp.pages.forms.key import StoredKeyForm
from webapp.pages.shell import acting
from webapp.records.access import refuse_unless_may_store_keys
from webapp.records.stored_keys import KeyRefusedError, key_add, key_remove, keys_visible_to, removable_key


@never_cache
@sensitive_post_parameters("private_key", "passphrase")
@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    user = acting(request)
    refuse_unless_may_store_keys(user)
    if request.method != "POST":
        return _page(request, StoredKeyForm(user=user))
    form = StoredKeyForm(request.POST, user=user)
    if form.is_valid():
        try:
            stored = key_add(user, **form.cleaned_data)
        except (KeyRefusedError, sealing.SealError) as error:
            form.add_error("private_key", str(error))
        else:
            messages.success(request, f"“{stored.name}” is stored. It never comes back to a page.")
            return redirect("session:keys")
    return _page(request, form.without_secrets(), status=422)


def _page(request: HttpRequest, form: StoredKeyForm, status: int = 200) -> HttpResponse:
    user = acting(request)
    context = {"nav": "keys", "keys": keys_visible_to(user), "form": form}
    return TemplateResponse(request, "session/keys.html", context, status=status)


@require_POST
def remove_key(request: HttpRequest, key_id: UUID) -> HttpResponse:
    user = acting(request)
    key = removable_key(key_id, user)
    if typed(request, key.name, "remove it") and key_remove(key, user):
        messages.success(request, f"“{key.name}” is removed. Machines that used it need another key.")
    return redirect("session:keys")
