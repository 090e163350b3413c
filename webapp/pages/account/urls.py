"""Addresses."""

from django.urls import path

from webapp.pages.account import account, passkeys, second_factor, views

app_name = "account"
urlpatterns = [
    path("welcome/<str:token>", views.welcome, name="welcome"),
    path("sign-in", views.sign_in, name="sign_in"),
    path("sign-in/code", second_factor.code, name="code"),
    path("account/second-factor", second_factor.manage, name="second_factor"),
    path("account/second-factor/off", second_factor.turn_off, name="second_factor_off"),
    path("account/second-factor/passkey", passkeys.add, name="add_passkey"),
    path("account/second-factor/passkey/remove", passkeys.remove, name="remove_passkey"),
    path("people/second-factor", second_factor.reset, name="second_factor_reset"),
    path("sign-out", views.sign_out, name="sign_out"),
    path("people", views.people, name="people"),
    path("account", account.account, name="account"),
    path("account/password", account.password, name="password"),
    path("account/email", account.email, name="email"),
    path("account/tokens", account.make_token, name="make_token"),
    path("account/tokens/<str:handle>/revoke", account.revoke_token, name="revoke_token"),
]
