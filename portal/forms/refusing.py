"""Put an action's refusal at the fields that it names."""

from __future__ import annotations

from django import forms

from portal.refusals import Refused


class RefusingForm(forms.Form):
    """A form that an action's refusal can be shown in."""

    renames: dict[str, str] = {}
    """An action's field -> the field of the form that stands for it."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        for name, field in self.fields.items():
            if field.help_text:
                field.widget.attrs.setdefault("aria-describedby", f"id_{name}_helptext")

    def refuse(self, refusal: Refused) -> None:
        """Show each sentence at its field, or above the form where it has none."""
        for name, sentence in refusal.fields.items():
            field = self.renames.get(name, name)
            self.add_error(field if field in self.fields else None, sentence)
