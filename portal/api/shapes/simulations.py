"""Simulations as the API shows them, and what is told to ask for one."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.actions.simulations import MOST_DAYS, MOST_NODES, MOST_RESERVED
from portal.choices import Pricing
from portal.models import Simulation
from scheduler.planner import Sharing


class QuotaTriedShape(serializers.Serializer[Any]):
    """A tenant's quota to be tried."""

    tenant = serializers.SlugField()
    device_kind = serializers.CharField(
        max_length=60, allow_blank=True, default="", help_text="Empty: every kind."
    )
    reserved = serializers.IntegerField(min_value=0, max_value=MOST_RESERVED)
    borrow = serializers.IntegerField(
        min_value=0,
        max_value=MOST_RESERVED,
        allow_null=True,
        default=0,
        help_text="Devices beyond reserved; null: as many as others leave idle.",
    )
    lend = serializers.BooleanField(default=True)


class TierTriedShape(serializers.Serializer[Any]):
    """What of a tier is to be tried; what is left out stays as it is."""

    promise = serializers.FloatField(min_value=0, max_value=1, required=False)
    rank = serializers.IntegerField(min_value=-1000, max_value=1000, required=False)
    preemptible = serializers.BooleanField(required=False)


class SimulationAskShape(serializers.Serializer[Any]):
    """What to play, ``days`` or ``upload``, and what is changed; at least one of the two first."""

    title = serializers.CharField(max_length=120, required=False, allow_blank=True)
    days = serializers.IntegerField(
        min_value=1,
        max_value=MOST_DAYS,
        required=False,
        allow_null=True,
        help_text="Play the jobs that were submitted in the fleet's last days.",
    )
    upload = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="Id of an upload of yours with a trace; it is played instead.",
    )
    strict = serializers.BooleanField(
        required=False, help_text="Refuse a trace with a line that cannot be read."
    )
    policy = serializers.CharField(
        max_length=40, required=False, allow_blank=True, help_text="A preset; empty: as it is."
    )
    sharing = serializers.ChoiceField(
        [each.value for each in Sharing],
        required=False,
        allow_blank=True,
        help_text="How CPUs of a node are shared; empty: as they are.",
    )
    quota = QuotaTriedShape(required=False, allow_null=True)
    tiers = serializers.DictField(
        child=TierTriedShape(), required=False, help_text="By the slug of the tier."
    )
    more_nodes = serializers.IntegerField(min_value=0, max_value=MOST_NODES, required=False)
    like_node = serializers.CharField(max_length=120, required=False, allow_blank=True)
    pricing = serializers.ChoiceField(
        Pricing.choices,
        required=False,
        allow_blank=True,
        help_text="Cost of moves; empty: learned for own days, the defaults for a trace.",
    )


class SimulationShape(serializers.ModelSerializer[Simulation]):
    """A simulation: what was asked, how far it is, and at which costs it was played."""

    owner: Any = serializers.SlugRelatedField[Any](slug_field="username", read_only=True)

    class Meta:
        model = Simulation
        fields = [
            *("id", "title", "owner", "days", "filename", "trace_size", "strict", "policy"),
            *("sharing", "quota", "tiers", "more_nodes", "like_node", "pricing", "state", "share"),
            *("detail", "broken", "costs", "created_at", "started_at", "ended_at"),
        ]
        read_only_fields = fields
        extra_kwargs = {
            "share": {"help_text": "How far it is, 0 to 1."},
            "detail": {"help_text": "What was played, or why it failed."},
            "broken": {"help_text": "The first lines that could not be read, and why."},
            "costs": {"help_text": "What moves were taken to cost; moves: learned from so many."},
            "trace_size": {"help_text": "Bytes of the uploaded trace that are kept."},
        }


class RunShape(serializers.Serializer[Any]):
    """One run: its name, and all its measures (seconds, shares and counts)."""

    name = serializers.CharField()
    measures = serializers.DictField()


class SimulationResultShape(SimulationShape):
    """A simulation and what it showed: first the fleet as it is, then with the change."""

    results = serializers.SerializerMethodField()

    class Meta(SimulationShape.Meta):
        fields = [*SimulationShape.Meta.fields, "results"]
        read_only_fields = fields

    @extend_schema_field(RunShape(many=True))
    def get_results(self, simulation: Simulation) -> list[dict[str, Any]]:
        runs = zip(simulation.runs, simulation.measures, strict=False)
        return [{"name": name, "measures": measures} for name, measures in runs]


class ComparedRunShape(serializers.Serializer[Any]):
    """A run that is compared."""

    run = serializers.CharField(source="word", help_text="Simulation, dot, number of the run.")
    name = serializers.CharField()
    simulation = serializers.IntegerField(source="simulation.id")
    source: Any = serializers.CharField(help_text="Which jobs were played.")


class ComparedCellShape(serializers.Serializer[Any]):
    """A measure of one run."""

    value = serializers.FloatField(allow_null=True)
    change = serializers.CharField(help_text="From the first run; empty in it.")
    better = serializers.BooleanField(allow_null=True, help_text="Null: neither, or no matter.")
    best = serializers.BooleanField(help_text="The best of all runs.")


class ComparedLineShape(serializers.Serializer[Any]):
    """A measure in all runs, in their order."""

    measure = serializers.CharField(source="name")
    cells = ComparedCellShape(many=True)


class ComparisonShape(serializers.Serializer[Any]):
    """Runs side by side."""

    runs = ComparedRunShape(many=True)
    measures = ComparedLineShape(many=True, source="lines")
    doubt = serializers.CharField(help_text="Why they are hard to compare; empty: they are not.")
