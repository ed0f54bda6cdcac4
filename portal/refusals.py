"""The one way an action says no."""

from __future__ import annotations

from collections.abc import Mapping


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error of ours
    """An action was not done; ``fields`` names each wrong field with its remedy.

    Nothing was changed. ``id`` is stable. ``conflict`` tells that the request was fine but the
    present state forbids it.
    """

    def __init__(
        self, fields: Mapping[str, str] | str, *, id: str = "invalid", conflict: bool = False
    ) -> None:
        self.fields = {"": fields} if isinstance(fields, str) else dict(fields)
        self.id = id
        self.conflict = conflict
        super().__init__(" ".join(self.fields.values()))
