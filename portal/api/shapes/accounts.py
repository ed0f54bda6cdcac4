"""People, their tokens and uploads, and the trail of changes, as the API shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.choices import Role
from portal.models import AccessToken, AuditEntry, Membership, Upload, User


class MembershipShape(serializers.ModelSerializer[Membership]):
    """A tenant and the role in it."""

    tenant = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    role = serializers.ChoiceField(choices=Role.choices, read_only=True)

    class Meta:
        model = Membership
        fields = ["tenant", "role"]
        read_only_fields = fields


class TokenShape(serializers.ModelSerializer[AccessToken]):
    """A bearer token; its secret is not kept."""

    class Meta:
        model = AccessToken
        fields = ["id", "name", "prefix", "created_at", "expires_at", "used_at", "revoked_at"]
        read_only_fields = fields


class TokenNewShape(serializers.Serializer[Any]):
    """A token to make."""

    name = serializers.CharField(max_length=80)
    days = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=90,
        help_text="How long it lives; null: for ever.",
    )


class TokenSecretShape(TokenShape):
    """A new token with its secret, shown this once."""

    token = serializers.SerializerMethodField()

    class Meta(TokenShape.Meta):
        fields = [*TokenShape.Meta.fields, "token"]
        read_only_fields = fields

    def get_token(self, token: AccessToken) -> str:
        return str(self.context["secret"])


class LoginShape(serializers.Serializer[Any]):
    """A name and a password, for a token."""

    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=1000, write_only=True, trim_whitespace=False)
    name = serializers.CharField(
        max_length=80, default="command line", help_text="A token of this name is replaced."
    )
    days = serializers.IntegerField(required=False, allow_null=True, default=90)


class MeShape(serializers.ModelSerializer[User]):
    """Who is calling."""

    admin = serializers.BooleanField(source="is_admin", read_only=True)
    memberships = MembershipShape(many=True, read_only=True)
    token = serializers.SerializerMethodField(
        allow_null=True, help_text="Id of the token that this request showed."
    )

    class Meta:
        model = User
        fields = ["username", "email", "admin", "theme", "time_zone", "memberships", "token"]
        read_only_fields = fields

    def get_token(self, user: User) -> int | None:
        token = self.context["request"].auth
        return token.id if isinstance(token, AccessToken) else None


class PreferencesShape(serializers.Serializer[Any]):
    """How pages look to the caller."""

    theme = serializers.ChoiceField(choices=User.Theme.choices, required=False)
    time_zone = serializers.CharField(max_length=64, required=False, allow_blank=True)


class PasswordShape(serializers.Serializer[Any]):
    """The present password and the new one."""

    old_password = serializers.CharField(max_length=1000, trim_whitespace=False)
    new_password = serializers.CharField(max_length=1000, trim_whitespace=False)


class UserShape(serializers.ModelSerializer[User]):
    """An account, for admins."""

    admin = serializers.BooleanField(source="is_staff", required=False)
    active = serializers.BooleanField(source="is_active", required=False)
    password = serializers.CharField(
        max_length=1000, write_only=True, trim_whitespace=False, required=False
    )
    memberships = MembershipShape(many=True, read_only=True)

    class Meta:
        model = User
        fields = [
            *("username", "email", "admin", "active", "password", "date_joined", "last_login"),
            "memberships",
        ]
        read_only_fields = ["username", "date_joined", "last_login"]


class UserNewShape(serializers.Serializer[Any]):
    """An account to make."""

    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=1000, write_only=True, trim_whitespace=False)
    email = serializers.CharField(max_length=254, required=False, allow_blank=True)
    admin = serializers.BooleanField(source="is_staff", required=False, default=False)


class UploadShape(serializers.ModelSerializer[Upload]):
    """A source file, kept while a job names it."""

    class Meta:
        model = Upload
        fields = ["id", "filename", "size", "sha256", "created_at"]
        read_only_fields = fields


class UploadNewShape(serializers.Serializer[Any]):
    """A file to keep."""

    file = serializers.FileField(allow_empty_file=True)


class AuditShape(serializers.ModelSerializer[AuditEntry]):
    """One change by an admin or manager."""

    actor = serializers.CharField(source="actor.username", default=None, read_only=True)

    class Meta:
        model = AuditEntry
        fields = ["at", "actor", "act", "subject", "before", "after"]
        read_only_fields = fields
