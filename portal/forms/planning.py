"""The form of the policy that the fleet is run by, with the sharing of CPUs and measuring."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.actions.planning import environment_policy, live_presets
from portal.forms.refusing import RefusingForm
from portal.models import Settings
from scheduler.planner import Sharing

PRESETS_TOLD = {
    "default": "promises, quotas and fair share; a job is left alone for its first 5 minutes",
    "eager": "as default, but moves at once and never for a promise: for demonstrations",
    "fifo": "first come, first served; nobody passes",
    "fifo-backfill": "first come, first served; who fits may pass",
    "fifo-easy": "first come, first served; who delays nobody may pass",
    "sjf": "the shortest job first",
    "srtf": "the least remaining time first; pushes others off",
    "srsf": "the least remaining device time first; pushes others off",
    "las": "who had least so far first; pushes others off",
    "fair": "fair share between tenants; nothing moves",
}
SHARING_TOLD = {
    Sharing.OFF: ("Off", "Each job has what its devices bring, or what it asked for."),
    Sharing.PROPORTIONAL: ("Alike", "Every device has the same part of its node's CPUs."),
    Sharing.TUNE: (
        "By need",
        "Who gains nothing from its part lends it; what is free goes to who gains most by it. As "
        "far as was measured, nobody runs slower than with an even part.",
    ),
}
PROFILING_TOLD = {
    "no": ("No", "Only when somebody presses Measure on a job's page."),
    "yes": (
        "Yes",
        "One job of each kind, after its first minute: for some seconds it gets fewer or more CPUs "
        "and its pace is compared. Results stay the same. Who submits a job can forbid it.",
    ),
}
SWITCHES = ("sharing", "profiling", "least_share")
"""Fields of the policy that this form sets; it leaves all others as they are."""


class PolicyForm(RefusingForm):
    """A preset and the switches beside it; what is left to the environment is empty."""

    renames = {f"changes.{name}": name for name in SWITCHES} | {"changes.least_share": "least"}

    policy = forms.ChoiceField(required=False, help_text="Who goes first, and what may be moved.")
    sharing = forms.ChoiceField(required=False, widget=forms.RadioSelect)
    profiling = forms.ChoiceField(required=False, widget=forms.RadioSelect)
    least = forms.IntegerField(
        label="A job always keeps, % of its part", required=False, min_value=0, max_value=100,
        help_text="With sharing by need. Empty: 50 %.",
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        usual = environment_policy()
        left = "As the environment says"
        presets = [(name, f"{name}: {PRESETS_TOLD[name]}") for name in live_presets()]
        sharing = [(each.value, told[0]) for each, told in SHARING_TOLD.items()]
        profiling = [(word, told[0]) for word, told in PROFILING_TOLD.items()]
        self.offer("policy", f"{left}: {usual.name}", presets)
        self.offer("sharing", f"{left}: {SHARING_TOLD[usual.sharing][0].lower()}", sharing)
        self.offer("profiling", f"{left}: {'yes' if usual.profiling else 'no'}", profiling)

    def offer(self, name: str, left: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", left), *choices]

    @staticmethod
    def initial_of(row: Settings) -> dict[str, Any]:
        chosen = row.changes
        least = chosen.get("least_share")
        return {
            "policy": row.policy,
            "sharing": chosen.get("sharing", ""),
            "profiling": {True: "yes", False: "no"}.get(chosen.get("profiling", ""), ""),
            "least": None if least is None else round(100 * least),
        }

    def to_changes(self, row: Settings) -> dict[str, Any]:
        """What is to differ from the preset: the switches, and what was set otherwise before."""
        values = self.cleaned_data
        changes = {name: value for name, value in row.changes.items() if name not in SWITCHES}
        if values["sharing"]:
            changes["sharing"] = values["sharing"]
        if values["profiling"]:
            changes["profiling"] = values["profiling"] == "yes"
        if values["least"] is not None:
            changes["least_share"] = values["least"] / 100
        return changes
