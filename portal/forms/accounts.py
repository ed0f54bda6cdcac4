"""Forms of people: logging in, preferences, tokens."""

from __future__ import annotations

import zoneinfo
from typing import Any

from django import forms

from portal.forms.refusing import RefusingForm
from portal.models import User


class LoginForm(RefusingForm):
    """Who one is."""

    username = forms.CharField(
        label="Account",
        max_length=150,
        widget=forms.TextInput(
            attrs={"autocomplete": "username", "autocapitalize": "off", "autofocus": True}
        ),
    )
    password = forms.CharField(
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class PreferencesForm(RefusingForm):
    """How pages look to one person."""

    theme = forms.ChoiceField(choices=User.Theme.choices)
    time_zone = forms.ChoiceField(
        required=False,
        label="Time zone",
        help_text="Exact times, shown on hover, are in this zone.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zones = sorted(zoneinfo.available_timezones())
        field = self.fields["time_zone"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "UTC"), *((zone, zone.replace("_", " ")) for zone in zones)]


class TokenForm(RefusingForm):
    """A new bearer token."""

    LIVES = (
        ("7", "7 days"),
        ("30", "30 days"),
        ("90", "90 days"),
        ("365", "a year"),
        ("", "no end"),
    )

    name = forms.CharField(
        max_length=80,
        widget=forms.TextInput(attrs={"placeholder": "laptop", "autocomplete": "off"}),
    )
    days = forms.ChoiceField(label="Lives for", choices=LIVES, required=False, initial="90")
