"""The form of What if: which jobs are played, and what is changed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.forms import BoundField

from portal.actions.simulations import (
    MOST_DAYS,
    MOST_NODES,
    MOST_RESERVED,
    POLICIES,
    SHARED,
    Question,
    kept_bytes,
)
from portal.actions.uploads import MEBIBYTE
from portal.choices import Pricing
from portal.forms.refusing import RefusingForm
from portal.models import Node, Simulation, Tenant, Tier
from portal.refusals import Refused
from scheduler.planner import Sharing

USUAL_DAYS = 7


class SimulationForm(RefusingForm):
    """A question; what is left empty stays as it is."""

    days = forms.IntegerField(
        label="The fleet's last days", required=False, min_value=1, max_value=MOST_DAYS,
        initial=USUAL_DAYS, help_text="The jobs that were submitted in them are played again.",
    )  # fmt: skip
    trace = forms.FileField(label="Or a trace of your own", required=False)
    strict = forms.BooleanField(
        label="Refuse it if a line can't be read", required=False,
        help_text="Else such lines are left out, and listed.",
    )  # fmt: skip
    policy = forms.ChoiceField(label="Policy", required=False)
    sharing = forms.ChoiceField(
        label="CPUs of a node", required=False,
        help_text="Goes by what was measured of this fleet's jobs; of a trace nothing was.",
    )  # fmt: skip
    tenant = forms.ChoiceField(label="Quota of", required=False)
    device_kind = forms.CharField(
        label="Kind of device", required=False, max_length=60, help_text="Empty: every kind."
    )
    reserved = forms.IntegerField(required=False, min_value=0, max_value=MOST_RESERVED)
    borrow = forms.IntegerField(
        label="Borrow up to", required=False, min_value=0, max_value=MOST_RESERVED,
        help_text="Empty: without limit.",
    )  # fmt: skip
    lend = forms.BooleanField(label="Lend what is idle", required=False, initial=True)
    more_nodes = forms.IntegerField(
        label="More nodes", required=False, min_value=0, max_value=MOST_NODES
    )
    like_node = forms.ChoiceField(label="Like", required=False)
    pricing = forms.ChoiceField(
        label="Cost of moves", required=False,
        help_text="Learned from the newest moves of this fleet's jobs.",
    )  # fmt: skip
    title = forms.CharField(
        required=False, max_length=120, help_text="Left empty, it says what is changed."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        nodes = Node.objects.exclude(heard_at=None).values_list("name", flat=True)
        self.offer("policy", "As it is", [(name, name) for name in POLICIES])
        self.offer("sharing", "As they are", [(each.value, SHARED[each]) for each in Sharing])
        self.offer("tenant", "As they are", list(Tenant.objects.values_list("slug", "title")))
        self.offer("like_node", "Choose a node", [(name, name) for name in nodes[:1000]])
        self.offer("pricing", "Learned; of a trace, the defaults", list(Pricing.choices))
        self.fields["tenant"].help_text = "Its reserve, borrowing and lending below are tried."
        self.fields["trace"].help_text = (
            "CSV with at least submit_time, duration and gpus, or one of the known formats, up to "
            f"{settings.UPLOAD_LIMIT // MEBIBYTE} MiB. It is removed {settings.TRACES_KEPT} days "
            f"after it was played; {kept_bytes() // MEBIBYTE} of "
            f"{settings.TRACES_LIMIT // MEBIBYTE} MiB are taken."
        )
        self.present = list(Tier.objects.all())
        for tier in self.present:
            self.ask_tier(tier)

    def offer(self, name: str, nothing: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", nothing), *choices]

    def ask_tier(self, tier: Tier) -> None:
        """Add the fields of one tier, filled with how it is now."""
        self.fields[f"{tier.slug}.promise"] = forms.FloatField(
            label=f"Promise of {tier.title}, %", required=False, min_value=0, max_value=100,
            initial=f"{100 * tier.promise:g}",
        )  # fmt: skip
        self.fields[f"{tier.slug}.rank"] = forms.IntegerField(
            label=f"Rank of {tier.title}", required=False, min_value=-1000, max_value=1000,
            initial=tier.rank,
        )  # fmt: skip
        self.fields[f"{tier.slug}.preemptible"] = forms.BooleanField(
            label=f"{tier.title} may be preempted", required=False, initial=tier.preemptible
        )

    @property
    def tiers(self) -> list[tuple[Tier, list[BoundField]]]:
        """Each tier with its fields."""
        names = ("promise", "rank", "preemptible")
        return [(tier, [self[f"{tier.slug}.{name}"] for name in names]) for tier in self.present]

    @property
    def quota_open(self) -> bool:
        """Whether a quota is tried, or something of it is wrong, and should be seen."""
        wrong = {"tenant", "reserved", "borrow", "device_kind"} & set(self.errors)
        return bool(wrong or self["tenant"].value())

    @property
    def tiers_open(self) -> bool:
        """Whether something of the tiers is changed or wrong, and should be seen."""
        if not self.is_bound:
            return any("." in name for name in self.initial)
        if any("." in name for name in self.errors):
            return True
        return bool(self._tiers()) if hasattr(self, "cleaned_data") else False

    @staticmethod
    def initial_of(simulation: Simulation) -> dict[str, Any]:
        """What was asked, to be changed and asked again."""
        names = ("days", "strict", "policy", "sharing", "more_nodes", "like_node", "pricing")
        asked: dict[str, Any] = {name: getattr(simulation, name) for name in names}
        for slug, told in simulation.tiers.items():
            asked |= {f"{slug}.{name}": value for name, value in told.items()}
            if "promise" in told:
                asked[f"{slug}.promise"] = f"{100 * told['promise']:g}"
        return {**asked, **simulation.quota}

    def refuse(self, refusal: Refused) -> None:
        """As every form; a tier's sentence stands at its field."""
        renamed = {name.removeprefix("tiers."): said for name, said in refusal.fields.items()}
        super().refuse(Refused(renamed, id=refusal.id, conflict=refusal.conflict))

    def to_question(self) -> Question:
        """What the form says, as the action takes it."""
        values = self.cleaned_data
        trace = values["trace"]
        return Question(
            title=values["title"].strip(),
            days=None if trace else values["days"],
            trace=trace,
            strict=values["strict"],
            policy=values["policy"],
            sharing=values["sharing"],
            quota=self._quota(),
            tiers=self._tiers(),
            more_nodes=values["more_nodes"] or 0,
            like_node=values["like_node"],
            pricing=values["pricing"],
        )

    def _quota(self) -> dict[str, Any] | None:
        values = self.cleaned_data
        if not values["tenant"]:
            return None
        return {
            "tenant": values["tenant"],
            "device_kind": values["device_kind"].strip(),
            "reserved": values["reserved"] or 0,
            "borrow": values["borrow"],
            "lend": values["lend"],
        }

    def _tiers(self) -> dict[str, dict[str, Any]]:
        """What differs from how the tiers are now."""
        values = self.cleaned_data
        changed: dict[str, dict[str, Any]] = {}
        for tier in self.present:
            percent = values.get(f"{tier.slug}.promise")
            if percent is None:  # an empty promise, or a form that shows no tiers
                continue
            rank = values.get(f"{tier.slug}.rank")
            told = {
                "promise": round(percent / 100, 6),
                "rank": tier.rank if rank is None else rank,
                "preemptible": values[f"{tier.slug}.preemptible"],
            }
            if differing := {k: v for k, v in told.items() if v != getattr(tier, k)}:
                changed[tier.slug] = differing
        return changed
