"""Many jobs in one transaction: what they have in common is written once, and no job's trouble is
another's."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from agents.protocol import Facts, ReplicaFact, State
from portal.actions.facts import accept_facts
from portal.actions.locking import in_bulk, locked_jobs
from portal.events import renew
from portal.models import Job, Node, Promise
from portal.unit import after_commit, unit
from tests.live.conftest import town
from tests.live.puppets import Town

__all__ = ["town"]


def test_those_of_a_failed_transaction_are_taken_one_by_one() -> None:
    tried: list[list[int]] = []

    def act(ids: list[int]) -> None:
        tried.append(ids)
        if 2 in ids:
            raise ValueError(f"not {ids}")

    with pytest.raises(ValueError, match=r"not \[2\]"):
        in_bulk([3, 1, 2], act)
    assert tried == [[1, 2, 3], [1], [2], [3]]


def test_a_busy_database_is_no_jobs_trouble() -> None:
    def act(ids: list[int]) -> None:
        raise OperationalError("database is locked")

    with pytest.raises(OperationalError):
        in_bulk([1, 2], act)


@pytest.mark.django_db(transaction=True)
def test_a_node_is_renewed_once_in_a_unit() -> None:
    node = Node.objects.create(name="n1", token_digest="x")
    with unit():
        renew([node.id])
        with unit():
            renew([node.id])
    node.refresh_from_db()
    assert node.desired_number == 1


@pytest.mark.django_db(transaction=True)
def test_a_unit_that_fails_leaves_nothing() -> None:
    node = Node.objects.create(name="n1", token_digest="x")
    with pytest.raises(ZeroDivisionError), unit():
        renew([node.id])
        raise ZeroDivisionError
    node.refresh_from_db()
    assert node.desired_number == 0


@pytest.mark.django_db(transaction=True)
def test_nodes_are_told_before_anything_else_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done after a commit takes its time; a job may stand still until its nodes know."""
    node = Node.objects.create(name="n1", token_digest="x")
    done: list[str] = []
    monkeypatch.setattr("portal.events.post", lambda group, _: done.append(group))
    with unit():
        after_commit(lambda: done.append("after"))
        renew([node.id])
    assert done == [f"node.{node.id}", "after"]


def queries_to_start_and_end(town: Town, jobs: int) -> int:
    """Queries of one cycle that places jobs and one message that says they have ended."""
    for _ in range(jobs):
        town.submit()
    with CaptureQueriesContext(connection) as queries:
        town.cycle()
        for puppet in town.puppets.values():
            rows = Job.objects.filter(state="starting", placements__replicas__node=puppet.node)
            facts = [
                ReplicaFact(
                    job=job.id, rank=0, epoch=1, state=State.EXITED, exit_code=0, outputs="m/o",
                    started_at=job.submitted_at.timestamp() + 0.001,
                )
                for job in rows
            ]  # fmt: skip
            accept_facts(puppet.node.id, Facts(number=1, replicas=facts))
    assert not Job.objects.live().exists()
    return len(queries)


def test_more_jobs_share_their_reads(town: Town) -> None:
    town.node("n1", 16)
    few, many = queries_to_start_and_end(town, 2), queries_to_start_and_end(town, 8)
    assert (many - few) / 6 <= 10, "writes of its own a job, from its placement to its end"


def test_one_that_ended_unseen_is_known_to_have_started(town: Town) -> None:
    town.node("n1", 2)
    queries_to_start_and_end(town, 2)
    for job in Job.objects.all():
        assert job.state == "succeeded"
        assert job.started_at is not None
        assert job.submitted_at < job.started_at <= job.ended_at  # type: ignore[operator]
    assert Promise.objects.count() == 2


def test_jobs_are_locked_with_where_they_stand(town: Town) -> None:
    town.node("n1", 2)
    jobs = [town.submit(), town.submit()]
    town.rest()
    with locked_jobs([jobs[1].id, jobs[0].id, 10**6]) as locked:
        assert [job.id for job in locked] == [jobs[0].id, jobs[1].id]
        with CaptureQueriesContext(connection) as queries:
            for job in locked:
                (placement,) = job.standing
                (seat,) = placement.replicas.all()
                assert (seat.node.name, job.tenant.slug, job.tier.slug) == ("n1", "vision", "basic")
        assert not queries.captured_queries
