"""Forms of partitions; nodes are named one by one or by patterns."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from django import forms

from portal.forms.refusing import RefusingForm
from portal.forms.tenants import SLUG_HELP
from portal.models import Node, Partition, Tenant

NODES_HELP = (
    "Names or patterns, one a line: node-7, node-1*, or where they stand: us-east/h100-b/*. "
    "A pattern takes the nodes that are there now."
)


class NodesField(forms.CharField):
    """Nodes by name, by a pattern of names, or of ``region/cluster/rack/name``."""

    widget = forms.Textarea(attrs={"rows": 5, "class": "mono", "spellcheck": "false"})

    def to_python(self, value: Any) -> Any:
        lines = [line.strip() for line in (super().to_python(value) or "").splitlines()]
        nodes = list(Node.objects.all())
        found: dict[int, Node] = {}
        for number, line in enumerate(lines, start=1):
            if not line:
                continue
            matching = [node for node in nodes if matches(node, line)]
            if not matching:
                raise forms.ValidationError(f"Line {number}: no node is like {line!r}.")
            found |= {node.pk: node for node in matching}
        return list(found.values())

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(node.name for node in value) if isinstance(value, list) else value


def matches(node: Node, pattern: str) -> bool:
    whole = "/".join((node.region, node.cluster, node.rack, node.name))
    return fnmatchcase(whole if "/" in pattern else node.name, pattern)


class PartitionChangeForm(RefusingForm):
    """What a partition consists of and who may use it."""

    title = forms.CharField(max_length=80, required=False)
    nodes = NodesField(required=False, help_text=NODES_HELP)
    tenants = forms.ModelMultipleChoiceField(
        Tenant.objects.all(),
        required=False,
        to_field_name="slug",
        help_text="Whose jobs may ask for it; none chosen: everyone's.",
        widget=forms.SelectMultiple(attrs={"size": 6}),
    )

    @staticmethod
    def initial_of(partition: Partition) -> dict[str, Any]:
        return {
            "title": partition.title,
            "nodes": list(partition.nodes.all()),
            "tenants": [tenant.slug for tenant in partition.tenants.all()],
        }


class PartitionForm(PartitionChangeForm):
    """A new partition."""

    slug = forms.CharField(label="Name", max_length=40, help_text=SLUG_HELP)
    field_order = ("slug", "title", "nodes", "tenants")
