"""The form of What if: which jobs are played, and what is changed."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.actions.simulations import MOST_DAYS, MOST_NODES, POLICIES, Question
from portal.forms.refusing import RefusingForm
from portal.models import Node, Tenant

USUAL_DAYS = 7


class SimulationForm(RefusingForm):
    """A question; what is left empty stays as it is."""

    days = forms.IntegerField(
        label="The fleet's last days", required=False, min_value=1, max_value=MOST_DAYS,
        initial=USUAL_DAYS, help_text="The jobs that were submitted in them are played again.",
    )  # fmt: skip
    trace = forms.FileField(
        label="Or a trace of your own", required=False,
        help_text="CSV with at least submit_time, duration and gpus; it is played instead.",
    )  # fmt: skip
    policy = forms.ChoiceField(label="Policy", required=False)
    tenant = forms.ChoiceField(label="Quota of", required=False)
    device_kind = forms.CharField(
        label="Kind of device", required=False, max_length=60, help_text="Empty: every kind."
    )
    reserved = forms.IntegerField(required=False, min_value=0, max_value=2**31 - 1)
    borrow = forms.IntegerField(
        label="Borrow up to", required=False, min_value=0, max_value=2**31 - 1,
        help_text="Empty: without limit.",
    )  # fmt: skip
    lend = forms.BooleanField(label="Lend what is idle", required=False, initial=True)
    more_nodes = forms.IntegerField(
        label="More nodes", required=False, min_value=0, max_value=MOST_NODES
    )
    like_node = forms.ChoiceField(label="Like", required=False)
    title = forms.CharField(
        required=False, max_length=120, help_text="Left empty, it says what is changed."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        nodes = Node.objects.exclude(heard_at=None).values_list("name", flat=True)
        self.offer("policy", "As it is", [(name, name) for name in POLICIES])
        self.offer("tenant", "As they are", list(Tenant.objects.values_list("slug", "title")))
        self.offer("like_node", "Choose a node", [(name, name) for name in nodes[:1000]])
        self.fields["tenant"].help_text = "Its reserve, borrowing and lending below are tried."

    def offer(self, name: str, nothing: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", nothing), *choices]

    def to_question(self) -> Question:
        """What the form says, as the action takes it."""
        values = self.cleaned_data
        trace = values["trace"]
        return Question(
            title=values["title"].strip(),
            days=None if trace else values["days"],
            trace=trace,
            policy=values["policy"],
            quota=self._quota(),
            more_nodes=values["more_nodes"] or 0,
            like_node=values["like_node"],
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
