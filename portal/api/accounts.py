"""Who is calling, their tokens and uploads; and, for admins, everyone's accounts."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import update_session_auth_hash
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.parsers import MultiPartParser
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from portal.access import access_token, access_upload
from portal.actions import accounts
from portal.actions.signing import sign_in
from portal.actions.tokens import create_token, replace_token, revoke_token
from portal.actions.uploads import discard_upload, receive_upload
from portal.api.auth import IsAdmin, caller
from portal.api.shapes.accounts import (
    AuditShape,
    LoginShape,
    MeShape,
    PasswordShape,
    PreferencesShape,
    TokenNewShape,
    TokenSecretShape,
    TokenShape,
    UploadNewShape,
    UploadShape,
    UserNewShape,
    UserShape,
)
from portal.models import AccessToken, AuditEntry, Upload, User


class LoginView(APIView):
    """Change a name and a password for a token, as the command line does."""

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]

    @extend_schema(request=LoginShape, responses={201: TokenSecretShape})
    def post(self, request: Request) -> Response:
        """A live token of the same name is revoked: each machine keeps one."""
        shape = LoginShape(data=request.data)
        shape.is_valid(raise_exception=True)
        told = shape.validated_data
        user = sign_in(request._request, told["username"], told["password"])
        token, secret = replace_token(user, told["name"], told["days"])
        data = TokenSecretShape(token, context={"secret": secret}).data
        return Response(data, status=status.HTTP_201_CREATED)


class MeView(APIView):
    """The person who is calling."""

    @extend_schema(responses=MeShape)
    def get(self, request: Request) -> Response:
        return self.show(request)

    @extend_schema(request=PreferencesShape, responses=MeShape)
    def patch(self, request: Request) -> Response:
        """Set how pages look: theme and time zone."""
        shape = PreferencesShape(data=request.data)
        shape.is_valid(raise_exception=True)
        accounts.change_preferences(caller(request), **shape.validated_data)
        return self.show(request)

    def show(self, request: Request) -> Response:
        user = User.objects.prefetch_related("memberships__tenant").get(pk=caller(request).pk)
        return Response(MeShape(user, context={"request": request}).data)


class PasswordView(APIView):
    """The caller's own password."""

    @extend_schema(request=PasswordShape, responses={204: None})
    def post(self, request: Request) -> Response:
        """Change it, given the present one."""
        shape = PasswordShape(data=request.data)
        shape.is_valid(raise_exception=True)
        told = shape.validated_data
        user = caller(request)
        accounts.change_password(user, told["old_password"], told["new_password"])
        if request.auth is None:  # this session goes on, the others end
            update_session_auth_hash(request._request, user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TokenViewSet(mixins.ListModelMixin, GenericViewSet[AccessToken]):
    """Your bearer tokens."""

    queryset = AccessToken.objects.all()
    serializer_class = TokenShape
    lookup_value_regex = "[0-9]{1,18}"
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[AccessToken]:
        return AccessToken.objects.filter(user=caller(self.request))

    @extend_schema(request=TokenNewShape, responses={201: TokenSecretShape})
    def create(self, request: Request) -> Response:
        """Make a token; its secret is answered this once."""
        shape = TokenNewShape(data=request.data)
        shape.is_valid(raise_exception=True)
        told = shape.validated_data
        token, secret = create_token(caller(request), told["name"], told["days"])
        data = TokenSecretShape(token, context={"secret": secret}).data
        return Response(data, status=status.HTTP_201_CREATED)

    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke a token; whoever shows it from now on is refused."""
        revoke_token(access_token(caller(request), int(pk)))
        return Response(status=status.HTTP_204_NO_CONTENT)


class UploadViewSet(mixins.ListModelMixin, GenericViewSet[Upload]):
    """Your source files; one that no job names is removed after a day."""

    queryset = Upload.objects.all()
    serializer_class = UploadShape
    lookup_value_regex = "[0-9]{1,18}"
    filter_backends: list[Any] = []
    parser_classes = [MultiPartParser]

    def get_queryset(self) -> QuerySet[Upload]:
        return Upload.objects.filter(owner=caller(self.request))

    @extend_schema(request=UploadNewShape, responses={201: UploadShape})
    def create(self, request: Request) -> Response:
        """Keep a file for jobs to come."""
        shape = UploadNewShape(data=request.data)
        shape.is_valid(raise_exception=True)
        upload = receive_upload(caller(request), shape.validated_data["file"])
        return Response(UploadShape(upload).data, status=status.HTTP_201_CREATED)

    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a file that no job names."""
        discard_upload(access_upload(caller(request), int(pk)))
        return Response(status=status.HTTP_204_NO_CONTENT)


class UserViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[User]):
    """Everyone's accounts, for admins."""

    queryset = User.objects.prefetch_related("memberships__tenant").order_by("username")
    serializer_class = UserShape
    permission_classes = [IsAdmin]
    lookup_field = "username"
    lookup_value_regex = "[^/]+"
    filter_backends: list[Any] = []

    @extend_schema(request=UserNewShape, responses={201: UserShape})
    def create(self, request: Request) -> Response:
        """Make an account; a manager or admin then adds it to a tenant."""
        shape = UserNewShape(data=request.data)
        shape.is_valid(raise_exception=True)
        account = accounts.create_account(caller(request), **shape.validated_data)
        return Response(UserShape(account).data, status=status.HTTP_201_CREATED)

    def partial_update(self, request: Request, username: str) -> Response:
        """Set email, admin, active or password."""
        account = User.objects.filter(username=username).first()
        if account is None:
            raise Http404(f"There is no account {username!r}.")
        shape = UserShape(data=request.data, partial=True)
        shape.is_valid(raise_exception=True)
        changes = dict(shape.validated_data)
        password = changes.pop("password", None)
        accounts.change_account(caller(request), account, **changes)
        if password is not None:
            accounts.set_password(caller(request), account, password)
        return Response(UserShape(account).data)


class AuditViewSet(mixins.ListModelMixin, GenericViewSet[AuditEntry]):
    """The trail of what admins and managers changed, newest first, for admins."""

    queryset = AuditEntry.objects.select_related("actor")
    serializer_class = AuditShape
    permission_classes = [IsAdmin]
    filter_backends: list[Any] = []
