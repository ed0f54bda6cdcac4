"""Forms of accounts, as admins make and change them, and of one's own password."""

from __future__ import annotations

from django import forms

from portal.forms.refusing import RefusingForm


def password_field(label: str, help_text: str = "", *, own: bool = False) -> forms.CharField:
    """A password to be typed; browsers offer to fill in only one's own."""
    attrs = {"autocomplete": "current-password" if own else "new-password"}
    widget = forms.PasswordInput(attrs=attrs)
    return forms.CharField(
        label=label, help_text=help_text, strip=False, max_length=1000, widget=widget
    )


class AccountForm(RefusingForm):
    """A new account."""

    username = forms.CharField(
        label="Account",
        max_length=150,
        help_text="Letters, digits and @ . + - _; it can't be changed later.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "off"}),
    )
    email = forms.EmailField(required=False)
    password = password_field("First password", "Tell it to them; they change it in Preferences.")
    is_staff = forms.BooleanField(
        required=False, label="Admin of the platform", help_text="Sees and changes everything."
    )


class AccountChangeForm(RefusingForm):
    """What admins may change of an account."""

    email = forms.EmailField(required=False)
    is_staff = forms.BooleanField(
        required=False, label="Admin of the platform", help_text="Sees and changes everything."
    )
    is_active = forms.BooleanField(
        required=False,
        label="May log in",
        help_text="Without it sessions and tokens are refused at once; jobs run on.",
    )


class NewPasswordForm(RefusingForm):
    """A password that an admin sets for someone."""

    password = password_field("New password", "Their sessions end; their tokens stay.")


class OwnPasswordForm(RefusingForm):
    """One's own password."""

    old_password = password_field("Present password", own=True)
    new_password = password_field("New password", "Your other sessions end; your tokens stay.")
