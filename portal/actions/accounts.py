"""Make and change people's accounts."""

from __future__ import annotations

import zoneinfo
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from portal.access import require_admin
from portal.actions.audit import record
from portal.models import User
from portal.refusals import Refused

FIELDS = ("email", "is_staff", "is_active")


def create_account(
    user: User, username: str, password: str, *, email: str = "", is_staff: bool = False
) -> User:
    """Make an account, as admin; it belongs to no tenant yet."""
    require_admin(user)
    account = User(username=username, email=email, is_staff=is_staff)
    check_password(account, password)
    account.set_password(password)
    check_account(account)
    try:
        with transaction.atomic():
            account.save()
            record(user, "account created", f"account {username}", {}, describe_account(account))
    except IntegrityError:
        raise Refused({"username": f"There is an account {username!r}."}, id="taken") from None
    return account


def change_account(user: User, account: User, **changes: Any) -> User:
    """Set email, is_staff (admin) or is_active, as admin; an admin can't lock themselves out."""
    require_admin(user)
    if account.pk == user.pk and not (
        changes.get("is_staff", True) and changes.get("is_active", True)
    ):
        raise Refused("You can't take your own account away; ask another admin.", conflict=True)
    before = describe_account(account)
    for field in FIELDS:
        if field in changes:
            setattr(account, field, changes[field])
    check_account(account)
    with transaction.atomic():
        account.save(update_fields=list(FIELDS))
        subject = f"account {account.username}"
        record(user, "account changed", subject, before, describe_account(account))
    return account


def change_password(user: User, old: str, new: str) -> None:
    """Set the user's own password, given the present one; other sessions end."""
    if not user.check_password(old):
        raise Refused({"old_password": "This is not your present password."})
    check_password(user, new, "new_password")
    user.set_password(new)
    user.save(update_fields=["password"])


def set_password(user: User, account: User, new: str) -> None:
    """Set someone's password, as admin."""
    require_admin(user)
    check_password(account, new)
    with transaction.atomic():
        account.set_password(new)
        account.save(update_fields=["password"])
        record(user, "password set", f"account {account.username}")


def change_preferences(
    user: User, *, theme: str | None = None, time_zone: str | None = None
) -> None:
    """Set how pages look to this user: a theme, and an IANA time zone (empty: the browser's)."""
    if theme is not None:
        if theme not in User.Theme.values:
            raise Refused({"theme": f"Choose one of {', '.join(User.Theme.values)}."})
        user.theme = theme
    if time_zone is not None:
        if time_zone and time_zone not in zoneinfo.available_timezones():
            raise Refused({"time_zone": "Give a name like Europe/Zurich, or nothing."})
        user.time_zone = time_zone
    user.save(update_fields=["theme", "time_zone"])


def check_account(account: User) -> None:
    try:
        account.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        raise Refused({k: " ".join(v) for k, v in error.message_dict.items()}) from None


def check_password(account: User, password: str, field: str = "password") -> None:
    try:
        validate_password(password, account)
    except ValidationError as error:
        raise Refused({field: " ".join(error.messages)}) from None


def describe_account(account: User) -> dict[str, Any]:
    return {field: getattr(account, field) for field in FIELDS}
