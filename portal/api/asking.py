"""What if: questions to the planner about the fleet as it is now."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.access import access_job, access_node, access_tenant, require_admin
from portal.actions.asking import ask, question_of
from portal.api.auth import caller
from portal.api.parsers import BoundedJSONParser
from portal.api.shapes.requests import JobRequestShape, read_request
from portal.models import User
from portal.refusals import Refused

QUESTIONS = ("start", "submit", "quota", "drain", "nodes")


class QuestionShape(serializers.Serializer[Any]):
    question = serializers.ChoiceField(choices=QUESTIONS)


class StartShape(QuestionShape):
    """When would this waiting job start?"""

    job = serializers.IntegerField(min_value=1)


class SubmitShape(QuestionShape):
    """When would this start, and what would it displace, if it were submitted?"""

    job = JobRequestShape()


class QuotaQuestionShape(QuestionShape):
    """What would another quota of a tenant change at once?"""

    tenant = serializers.SlugField()
    device_kind = serializers.CharField(required=False, allow_blank=True, default="")
    reserved = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    borrow = serializers.IntegerField(
        min_value=0, max_value=2**31 - 1, allow_null=True, default=0, help_text="null: no limit"
    )
    lend = serializers.BooleanField(default=True)


class DrainShape(QuestionShape):
    """What would become of the jobs on these nodes?"""

    nodes = serializers.ListField(child=serializers.SlugField(), min_length=1, max_length=1000)


class NodesShape(QuestionShape):
    """What would more nodes like this one change at once?"""

    like = serializers.SlugField()
    count = serializers.IntegerField(min_value=1, max_value=10_000)


class AnswerShape(serializers.Serializer[Any]):
    """Seconds from now for ``start`` and ``submit``; jobs by number for all but ``start``."""

    earliest_s = serializers.FloatField(required=False, allow_null=True)
    likely_s = serializers.FloatField(
        required=False, allow_null=True, help_text="null: not within a week"
    )
    latest_s = serializers.FloatField(required=False, allow_null=True)
    sentence = serializers.CharField(required=False)
    starts = serializers.ListField(child=serializers.IntegerField(), required=False)
    waits = serializers.ListField(child=serializers.IntegerField(), required=False)
    pushed_off = serializers.ListField(child=serializers.IntegerField(), required=False)
    moved = serializers.ListField(child=serializers.IntegerField(), required=False)
    resized = serializers.ListField(child=serializers.IntegerField(), required=False)
    running_there = serializers.ListField(child=serializers.IntegerField(), required=False)
    seconds_each = serializers.DictField(child=serializers.FloatField(), required=False)


SHAPES: dict[str, type[QuestionShape]] = {
    "start": StartShape,
    "submit": SubmitShape,
    "quota": QuotaQuestionShape,
    "drain": DrainShape,
    "nodes": NodesShape,
}


class WhatIfView(APIView):
    """Ask the planner; nothing is changed."""

    parser_classes = [BoundedJSONParser]

    @extend_schema(
        request=PolymorphicProxySerializer(
            component_name="WhatIf",
            serializers=dict[str, Any](SHAPES),
            resource_type_field_name="question",
        ),
        responses=AnswerShape,
    )
    def post(self, request: Request) -> Response:
        """Answer one question about the fleet as it is now."""
        kind = QuestionShape(data=request.data)
        kind.is_valid(raise_exception=True)
        shape = SHAPES[kind.validated_data["question"]](data=request.data)
        shape.is_valid(raise_exception=True)
        return Response(ask(allowed_question(caller(request), shape.validated_data)))


def allowed_question(user: User, asked: dict[str, Any]) -> dict[str, Any]:
    """The question as the planner takes it, if this user may ask it."""
    match asked["question"]:
        case "start":
            job = access_job(user, asked["job"])
            if job.ended:
                raise Refused({"job": f"Job {job.id} has ended."}, conflict=True)
        case "submit":
            wanted = {key: value for key, value in asked["job"].items() if key != "file"}
            return question_of(user, read_request(user, wanted))
        case "quota":
            require_admin(user)
            access_tenant(user, asked["tenant"])
        case "drain":
            require_admin(user)
            for name in asked["nodes"]:
                access_node(user, name)
        case "nodes":
            require_admin(user)
            access_node(user, asked["like"])
    return dict(asked)
