"""How the fleet is planned."""

from __future__ import annotations

import math
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.actions.planning import (
    CHOSEN,
    environment_policy,
    live_presets,
    policy_in_force,
    set_policy,
)
from portal.api.auth import IsAdmin, caller
from portal.models import Settings


class PolicyShape(serializers.Serializer[Any]):
    """A preset's name (empty: as the environment says) and the fields that differ from it."""

    policy = serializers.CharField(max_length=40, allow_blank=True)
    changes = serializers.DictField(required=False, default=dict)


class PolicyNowShape(PolicyShape):
    """The policy that is in force, with all its fields."""

    presets = serializers.ListField(child=serializers.CharField(), read_only=True)
    environment = serializers.DictField(
        read_only=True, help_text="What holds where nothing else was chosen."
    )
    in_force = serializers.DictField(read_only=True)


class PolicyView(APIView):
    """The planner's policy, for admins."""

    permission_classes = [IsAdmin]

    @extend_schema(responses=PolicyNowShape)
    def get(self, request: Request) -> Response:
        return Response(policy_now())

    @extend_schema(request=PolicyShape, responses=PolicyNowShape)
    def put(self, request: Request) -> Response:
        """Run the fleet by another policy from the next cycle on."""
        shape = PolicyShape(data=request.data)
        shape.is_valid(raise_exception=True)
        told = shape.validated_data
        set_policy(caller(request), told["policy"], told["changes"])
        return Response(policy_now())


def policy_now() -> dict[str, Any]:
    row = Settings.objects.filter(pk=1).first() or Settings()
    policy, usual = policy_in_force(), environment_policy()
    values = {name: getattr(policy, name) for name in CHOSEN}
    # JSON knows no infinity; a limit that is none is null.
    values = {name: None if value == math.inf else value for name, value in values.items()}
    return {
        "policy": row.policy,
        "changes": row.changes,
        "presets": live_presets(),
        "environment": {
            "policy": usual.name,
            "sharing": usual.sharing.value,
            "profiling": usual.profiling,
        },
        "in_force": {"name": policy.name, **values},
    }
