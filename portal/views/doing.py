"""What every form that does something has in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from portal.forms.refusing import RefusingForm
from portal.refusals import Refused
from portal.views.visitors import Visitor


def done(request: Visitor, form: RefusingForm, act: Callable[[dict[str, Any]], object]) -> bool:
    """Act upon what a form says, if it was sent and makes sense; answer whether that was done.

    A refusal is shown at the fields that it names.
    """
    if request.method != "POST" or not form.is_valid():
        return False
    try:
        act(form.cleaned_data)
    except Refused as refusal:
        form.refuse(refusal)
        return False
    return True
