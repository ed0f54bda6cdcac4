"""The small forms behind acts upon a job."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.actions.sizes import sizes_of
from portal.forms.refusing import RefusingForm
from portal.models import Job, Node


class ConfirmForm(RefusingForm):
    """Nothing but yes."""

    sure = forms.CharField(widget=forms.HiddenInput, initial="yes", required=False)

    def __init__(self, *args: Any, job: Job, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.job = job


class MigrateForm(ConfirmForm):
    """Where a job shall go."""

    node = forms.ChoiceField(label="Where to", required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        nodes = Node.objects.filter(lost_at=None, cordoned=False, draining=False)
        names = nodes.exclude(heard_at=None).values_list("name", flat=True)
        anywhere = [("", "Anywhere else")]
        self.fields["node"] = forms.ChoiceField(
            label="Where to", required=False, choices=anywhere + [(name, name) for name in names]
        )


class ResizeForm(ConfirmForm):
    """Over how many devices a job shall be spread."""

    devices = forms.TypedChoiceField(label="Devices", coerce=int)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["devices"] = forms.TypedChoiceField(
            label="Devices",
            coerce=int,
            choices=[(size, str(size)) for size in sizes_of(self.job)],
            help_text=f"All {self.job.replicas} replicas stay. On fewer devices some share one, "
            "and only the time it takes changes.",
        )
