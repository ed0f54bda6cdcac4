"""Forms of tenants, their quotas and members, and of service tiers."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.choices import Role
from portal.forms.refusing import RefusingForm
from portal.forms.texts import SpanField
from portal.models import Quota, Tenant, Tier

SLUG_HELP = "Small letters, digits and hyphens; it can't be changed later."


class TenantForm(RefusingForm):
    """A new tenant."""

    slug = forms.CharField(label="Name", max_length=40, help_text=SLUG_HELP)
    title = forms.CharField(max_length=80, required=False)
    parent = forms.ModelChoiceField(
        Tenant.objects, required=False, to_field_name="slug", empty_label="None"
    )


class QuotaForm(RefusingForm):
    """What a tenant may use of one kind of device."""

    device_kind = forms.CharField(
        label="Kind of device", max_length=60, required=False, help_text="Empty: every kind."
    )
    reserved = forms.IntegerField(min_value=0, help_text="Its own whenever it asks.")
    borrow = forms.IntegerField(
        min_value=0,
        required=False,
        label="Borrow up to",
        help_text="Beyond it, from what others leave idle. Empty: without limit.",
    )
    lend = forms.BooleanField(required=False, label="Lend what is idle")

    @staticmethod
    def initial_of(quota: Quota) -> dict[str, Any]:
        return {
            "device_kind": quota.device_kind,
            "reserved": quota.reserved,
            "borrow": quota.borrow,
            "lend": quota.lend,
        }


class MemberForm(RefusingForm):
    """Someone's role within a tenant."""

    username = forms.CharField(
        max_length=150,
        label="Account",
        widget=forms.TextInput(attrs={"placeholder": "account", "autocomplete": "off"}),
    )
    role = forms.ChoiceField(choices=Role.choices, initial=Role.RESEARCHER)


class TierForm(RefusingForm):
    """A service tier. The promise is typed in per cent."""

    renames = {"promise": "percent"}

    title = forms.CharField(max_length=80)
    percent = forms.FloatField(
        label="Promise, %",
        min_value=0,
        max_value=100,
        help_text="Share of its devices' time; 0: none.",
    )
    rank = forms.IntegerField(help_text="A higher rank may push off a lower one.")
    preemptible = forms.BooleanField(required=False, label="May be preempted")
    checkpoint_every_s = SpanField(
        required=False, label="Checkpoint every", help_text="Empty: only when a job asks."
    )

    @staticmethod
    def initial_of(tier: Tier) -> dict[str, Any]:
        return {
            "title": tier.title,
            "percent": round(tier.promise * 100, 3),
            "rank": tier.rank,
            "preemptible": tier.preemptible,
            "checkpoint_every_s": tier.checkpoint_every_s,
        }

    def to_changes(self) -> dict[str, Any]:
        """The fields as the action takes them."""
        values = dict(self.cleaned_data)
        values["promise"] = round(values.pop("percent") / 100, 6)
        every = values["checkpoint_every_s"]
        values["checkpoint_every_s"] = None if every is None else int(every)
        return values
