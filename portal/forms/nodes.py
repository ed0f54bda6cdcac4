"""Forms of nodes."""

from __future__ import annotations

from django import forms

from portal.forms.refusing import RefusingForm


class NodeForm(RefusingForm):
    """A node to be added."""

    name = forms.CharField(
        max_length=63,
        help_text="Small letters, digits and hyphens.",
        widget=forms.TextInput(attrs={"placeholder": "node-7", "autocomplete": "off"}),
    )
    region = forms.CharField(max_length=60, required=False)
    cluster = forms.CharField(max_length=60, required=False)
    rack = forms.CharField(max_length=60, required=False)


class NoteForm(RefusingForm):
    """Why a node is cordoned or drained."""

    note = forms.CharField(
        max_length=200,
        required=False,
        label="Why",
        widget=forms.TextInput(attrs={"placeholder": "new network cards, back on Friday"}),
        help_text="Everyone who sees the node reads it.",
    )
