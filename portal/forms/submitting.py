"""The form of a new job."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.access import visible_partitions, visible_tenants
from portal.actions.submitting import JobRequest
from portal.forms.refusing import RefusingForm
from portal.forms.texts import CommandField, PairsField, SizeField, SpanField, TagsField
from portal.models import Device, Job, Tier, Upload, User

MONO = {"class": "mono", "spellcheck": "false", "autocapitalize": "off", "autocomplete": "off"}
PLAIN = ("name", "environment", "git", "ref", "replicas", "gpus_per_replica", "fewest_devices",
         "device_kind", "device_memory", "cpus_per_replica", "memory_per_replica", "partition",
         "expected_s", "tags", "checkpoint_every_s", "internet", "unprofiled", "command", "tenant",
         "tier", "secrets", "retries")  # fmt: skip
"""Fields that a request and the form have in common."""


def lines(rows: int, placeholder: str) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows, "placeholder": placeholder, **MONO})


class JobForm(RefusingForm):
    """What a job is. Files are sent ahead and named by their id, so that an error loses nothing."""

    name = forms.CharField(
        required=False, max_length=120, help_text="Left empty, it is named after its command."
    )
    tenant = forms.ChoiceField()
    tier = forms.ChoiceField(label="Service tier")
    command = CommandField(
        strip=False,
        widget=forms.TextInput(attrs={"placeholder": "python train.py --epochs 10", **MONO}),
        help_text="Runs once a replica, without a shell. RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR "
        "and MASTER_PORT are set.",
    )
    upload = forms.IntegerField(required=False, widget=forms.HiddenInput)
    file = forms.FileField(required=False, label="Files", allow_empty_file=True)
    git = forms.CharField(
        required=False,
        label="Git address",
        widget=forms.TextInput(attrs={"placeholder": "https://…", **MONO}),
    )
    ref = forms.CharField(
        required=False,
        label="Branch, tag or commit",
        widget=forms.TextInput(attrs={"placeholder": "main", **MONO}),
    )
    environment = PairsField(
        required=False,
        widget=lines(3, "LEARNING_RATE=0.1\nSEED=7"),
        help_text="NAME=value, a line each.",
    )
    secrets = PairsField(
        required=False,
        widget=lines(3, "API_KEY=…"),
        help_text="Set like the environment, but never shown again nor logged.",
    )
    replicas = forms.IntegerField(initial=1, min_value=1, help_text="One rank of its world each.")
    gpus_per_replica = forms.IntegerField(label="Devices a replica", initial=1, min_value=1)
    fewest_devices = forms.IntegerField(
        required=False,
        min_value=1,
        label="Fewest devices in all",
        help_text="Makes it elastic: it starts sooner and is spread over more when they are idle.",
    )
    device_kind = forms.ChoiceField(required=False, label="Kind of device")
    device_memory = SizeField(required=False, label="Least memory of a device")
    cpus_per_replica = forms.FloatField(
        required=False, min_value=0, label="CPUs a replica", help_text="Empty: a fair share."
    )
    memory_per_replica = SizeField(
        required=False,
        label="Memory a replica",
        widget=forms.TextInput(attrs={"placeholder": "16 GiB"}),
        help_text="It is stopped beyond it. Empty: no limit.",
    )
    partition = forms.ChoiceField(required=False)
    expected_s = SpanField(
        required=False,
        label="Expected duration",
        widget=forms.TextInput(attrs={"placeholder": "2 h 30 min"}),
        help_text="Helps to plan; nothing is stopped for being late.",
    )
    checkpoint_every_s = SpanField(
        required=False,
        label="Checkpoint every",
        widget=forms.TextInput(attrs={"placeholder": "as its tier says"}),
        help_text="0: never. It limits what a lost node can cost.",
    )
    retries = forms.IntegerField(
        required=False,
        initial=0,
        min_value=0,
        help_text="How often it is tried again after it failed.",
    )
    tags = TagsField(
        required=False, widget=forms.TextInput(attrs={"placeholder": "sweep-3, resnet"})
    )
    internet = forms.BooleanField(required=False, label="May reach the internet")
    unprofiled = forms.BooleanField(
        required=False,
        label="Must not be measured",
        help_text="What it gains from CPUs is otherwise measured once, where admins allow it: it "
        "runs slower for some seconds.",
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        kinds = Device.objects.order_by("kind").values_list("kind", flat=True).distinct()
        partitions = visible_partitions(user)
        self.offer("tenant", [(row.slug, row.title) for row in visible_tenants(user)])
        self.offer("tier", [(row.slug, describe_tier(row)) for row in Tier.objects.all()])
        self.offer("device_kind", [("", "Any"), *((kind, kind) for kind in kinds)])
        self.offer("partition", [("", "Any"), *((row.slug, row.title) for row in partitions)])

    def offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def clean_upload(self) -> Upload | None:
        """The upload with this id: the user's own, or that of a job they see and clone."""
        id = self.cleaned_data["upload"]
        if not id:
            return None
        mine = Upload.objects.filter(id=id, owner=self.user).first()
        seen = (
            Job.objects.visible_to(self.user).filter(upload_id=id).select_related("upload").first()
        )
        found = mine or (seen.upload if seen else None)
        if found is None:
            raise forms.ValidationError("The files are no longer here; add them again.")
        return found

    def to_request(self, cloned_from: Job | None = None) -> JobRequest:
        """What the form says, as the request that a job is made from."""
        values = {name: self.cleaned_data[name] for name in PLAIN}
        values["cpus_per_replica"] = values["cpus_per_replica"] or 0.0
        values["retries"] = values["retries"] or 0
        every = values["checkpoint_every_s"]
        values["checkpoint_every_s"] = None if every is None else int(every)
        return JobRequest(upload=self.cleaned_data["upload"], cloned_from=cloned_from, **values)


def describe_tier(tier: Tier) -> str:
    if not tier.promise:
        return f"{tier.title}: no promise, yields to others"
    return f"{tier.title}: {tier.promise:.0%} of its devices' time"


def initial_of(request: JobRequest) -> dict[str, Any]:
    """What the form shows at first for a request that is cloned."""
    values = {name: getattr(request, name) for name in PLAIN}
    values["upload"] = request.upload.pk if request.upload else None
    return values
