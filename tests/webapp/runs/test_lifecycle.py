"""A run's life: who may move it where, and that nobody else can."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.waiting import wait_for_end
from tests.webapp.conftest import gpu_vm
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Event, Run, RunState, Target
from webapp.records.models.run import ACTIVE, ENDED
from webapp.records.sessions import session_open
from webapp.runs import lifecycle, queue

PROBE = "guest.topo_p2p_read"


@pytest.fixture
def sent(db: None) -> Callable[[], list[str]]:
    """Takes the ids off the in-memory broker's queue, as a worker would."""

    def take() -> list[str]:
        found: list[str] = []
        with queue.celery.connection_for_read() as conn, conn.SimpleQueue("celery") as waiting:
            while waiting.qsize():
                message = waiting.get(block=False)
                message.ack()
                found.append(message.payload[0][0])
        return found

    take()
    return take


def test_a_queued_run_is_sent_once_it_is_committed(
    target: Target,
    alice: User,
    sent: Callable[[], list[str]],
    django_capture_on_commit_callbacks: Callable[..., object],
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        run = lifecycle.queue_probes(target.session, target, alice, [PROBE])
        assert sent() == []
    assert sent() == [str(run.pk)]
    run.refresh_from_db()
    assert run.state == RunState.QUEUED
    assert run.sent_at is not None


def test_runs_are_numbered_within_their_session(target: Target, alice: User, bob: User) -> None:
    other = session_open(owner=bob, title="another")
    numbers = [lifecycle.queue_probes(target.session, target, alice, [PROBE]).number for _ in "abc"]
    assert numbers == [1, 2, 3]
    assert lifecycle.queue_probes(other, gpu_vm(other, bob), bob, [PROBE]).number == 1


def test_by_default_all_probes_of_the_role_are_asked(target: Target, alice: User) -> None:
    run = lifecycle.queue_probes(target.session, target, alice)
    assert PROBE in run.names
    assert all(name.startswith("guest.") for name in run.names)


@pytest.mark.parametrize("names", [["guest.no_such"], ["host.kernel_cmdline"], []])
def test_a_probe_of_another_role_or_none_is_refused(target: Target, alice: User, names: list[str]) -> None:
    with pytest.raises(ValueError, match="no such probe"):
        lifecycle.queue_probes(target.session, target, alice, names)


def test_an_argument_that_has_no_safe_form_is_refused(target: Target, alice: User) -> None:
    with pytest.raises(ValueError, match="one line"):
        lifecycle.queue_probes(target.session, target, alice, [PROBE], {"vmid": "1\nreboot"})
    run = lifecycle.queue_probes(target.session, target, alice, [PROBE], {"vmid": "1; reboot"})
    assert run.arguments == {"VMID": "1; reboot"}


def test_another_sessions_target_is_refused(target: Target, bob: User) -> None:
    other = session_open(owner=bob, title="another")
    with pytest.raises(ValueError, match="another session"):
        lifecycle.queue_probes(other, target, bob, [PROBE])


def test_only_administrators_run_something_here(session_of_alice: DiagnosisSession, alice: User, carol: User) -> None:
    here = Target.objects.create(session=session_of_alice, role="guest", agent="local", created_by=carol)
    with pytest.raises(PermissionDenied):
        lifecycle.queue_probes(session_of_alice, here, alice, [PROBE])
    assert lifecycle.queue_probes(session_of_alice, here, carol, [PROBE]).number == 1


def test_a_message_delivered_twice_claims_once(target: Target, alice: User) -> None:
    run = lifecycle.queue_probes(target.session, target, alice, [PROBE])
    assert lifecycle.claim(run.pk) == lifecycle.Claim(run.pk, 1)
    assert lifecycle.claim(run.pk) is None


def test_a_worker_that_comes_back_from_the_dead_changes_nothing(target: Target, alice: User) -> None:
    run = lifecycle.queue_probes(target.session, target, alice, [PROBE])
    claim = lifecycle.claim(run.pk)
    assert claim
    assert lifecycle.expire_leases(timezone.now()) == 0
    assert lifecycle.expire_leases(timezone.now() + lifecycle.LEASE + timedelta(seconds=1)) == 1
    assert not lifecycle.renew(claim)
    assert not lifecycle.mark_running(claim)
    assert not lifecycle.finish(claim, RunState.SUCCEEDED)
    run.refresh_from_db()
    assert run.state == RunState.LOST
    assert "kept" in run.problem


def test_a_renewed_lease_does_not_expire(target: Target, alice: User) -> None:
    run = lifecycle.queue_probes(target.session, target, alice, [PROBE])
    claim = lifecycle.claim(run.pk)
    assert claim
    Run.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert lifecycle.renew(claim)
    assert lifecycle.expire_leases(timezone.now()) == 0


def test_only_an_end_ends_a_run(target: Target, alice: User) -> None:
    run = lifecycle.queue_probes(target.session, target, alice, [PROBE])
    claim = lifecycle.claim(run.pk)
    assert claim
    with pytest.raises(ValueError, match="not an end"):
        lifecycle.finish(claim, RunState.RUNNING)


def test_cancelling_a_waiting_run_ends_it_and_no_worker_gets_it(target: Target, alice: User) -> None:
    run = lifecycle.queue_probes(target.session, target, alice, [PROBE])
    assert lifecycle.request_cancel(run, alice)
    assert not lifecycle.request_cancel(run, alice)
    assert lifecycle.claim(run.pk) is None
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED


def test_cancelling_a_working_run_flags_it_once(target: Target, alice: User) -> None:
    run = lifecycle.queue_probes(target.session, target, alice, [PROBE])
    claim = lifecycle.claim(run.pk)
    assert claim
    assert not lifecycle.cancel_requested(claim)
    assert lifecycle.request_cancel(run, alice)
    assert not lifecycle.request_cancel(run, alice)
    assert lifecycle.cancel_requested(claim)
    kinds = list(Event.objects.filter(session=target.session).values_list("kind", flat=True))
    assert kinds.count("run_cancel_requested") == 1


def test_a_second_benchmark_waits_for_its_machine_across_sessions(
    target: Target, alice: User, bob: User, sent: Callable[[], list[str]]
) -> None:
    other = session_open(owner=bob, title="the same machine")
    first = lifecycle.queue_benchmark(target.session, target, alice, "bench.copy")
    second = lifecycle.queue_benchmark(other, gpu_vm(other, bob, "GPU-VM"), bob, "bench.copy")
    elsewhere = lifecycle.queue_benchmark(other, gpu_vm(other, bob, "gpu-vm-2"), bob, "bench.copy")
    probes = lifecycle.queue_probes(other, gpu_vm(other, bob), bob, [PROBE])
    claim = lifecycle.claim(first.pk)
    assert claim
    assert lifecycle.claim(second.pk) is None
    assert lifecycle.waits_for(second) == first
    assert lifecycle.waits_for(elsewhere) is None
    assert lifecycle.waits_for(probes) is None
    assert lifecycle.claim(elsewhere.pk)
    assert lifecycle.claim(probes.pk)
    assert lifecycle.finish(claim, RunState.SUCCEEDED)
    assert lifecycle.waits_for(second) is None
    next_one = lifecycle.claim_next()
    assert next_one
    assert next_one.run_id == second.pk


def test_a_lost_benchmark_is_not_run_again(target: Target, alice: User) -> None:
    run = lifecycle.queue_benchmark(target.session, target, alice, "bench.copy")
    assert lifecycle.claim(run.pk)
    later = timezone.now() + timedelta(hours=1)
    assert lifecycle.expire_leases(later) == 1
    assert lifecycle.resend_lost_messages(later) == 0
    assert lifecycle.claim(run.pk) is None
    run.refresh_from_db()
    assert "GPUs are free" in run.problem


def test_a_vanished_message_is_sent_again_but_a_fresh_one_is_not(
    target: Target, alice: User, sent: Callable[[], list[str]]
) -> None:
    run = lifecycle.queue_probes(target.session, target, alice, [PROBE])
    now = timezone.now()
    assert lifecycle.resend_lost_messages(now) == 0
    assert lifecycle.resend_lost_messages(now + timedelta(seconds=25)) == 1
    assert sent() == [str(run.pk)]
    assert lifecycle.resend_lost_messages(now + timedelta(seconds=19)) == 0


def test_the_message_holds_the_id_and_nothing_else(target: Target, alice: User) -> None:
    target.identity_file = "/keys/very-secret"
    target.save()
    run = lifecycle.queue_probes(target.session, target, alice, [PROBE], {"VMID": "128"})
    queue.send_run(run.pk)
    with queue.celery.connection_for_read() as conn, conn.SimpleQueue("celery") as waiting:
        message = waiting.get(block=False)
        message.ack()
    assert message.content_type == "application/json"
    assert message.payload[:2] == [[str(run.pk)], {}]
    assert "very-secret" not in str(message.payload) + str(message.headers)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("benchmarks", [False, True])
def test_of_many_workers_exactly_one_wins(person: Callable[..., User], benchmarks: bool) -> None:
    """One run wanted by four threads; or four benchmarks wanted for one machine."""
    alice = person("alice")
    session = session_open(owner=alice, title="race")
    if benchmarks:
        queued = [lifecycle.queue_benchmark(session, gpu_vm(session, alice), alice, "bench.copy") for _ in range(4)]
        wanted = [run.pk for run in queued]
    else:
        wanted = [lifecycle.queue_probes(session, gpu_vm(session, alice), alice, [PROBE]).pk] * 4
    won: list[lifecycle.Claim | None] = []
    start = threading.Barrier(len(wanted))

    def work(run_id: UUID) -> None:
        start.wait(60)
        won.append(lifecycle.claim(run_id))
        connection.close()

    threads = [threading.Thread(target=work, args=(pk,)) for pk in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        wait_for_end(thread)
    assert len(won) == 4
    assert len([claim for claim in won if claim]) == 1


class Life(RuleBasedStateMachine):
    """Whatever happens in whatever order: states only move forward, and an ended run stays as it is."""

    target: Target
    user: User

    def __init__(self) -> None:
        super().__init__()
        Run.objects.filter(target=self.target).delete()  # of the life before this one
        self.run = lifecycle.queue_probes(self.target.session, self.target, self.user, [PROBE])
        self.claims: list[lifecycle.Claim] = []
        self.seen = [RunState.QUEUED]
        self.now = timezone.now()

    @rule()
    def deliver(self) -> None:
        claim = lifecycle.claim(self.run.pk)
        assert (claim is not None) == (self.seen[-1] is RunState.QUEUED)
        if claim:
            self.claims.append(claim)

    @rule(state=st.sampled_from(sorted(ENDED)))
    @precondition(lambda self: self.claims)
    def end(self, state: RunState) -> None:
        held = self.seen[-1] in ACTIVE
        assert lifecycle.finish(self.claims[-1], state) is held

    @rule()
    @precondition(lambda self: self.claims)
    def start(self) -> None:
        assert lifecycle.mark_running(self.claims[-1]) is (self.seen[-1] is RunState.CLAIMED)

    @rule()
    @precondition(lambda self: self.claims)
    def stay_alive(self) -> None:
        assert lifecycle.renew(self.claims[-1]) is (self.seen[-1] in ACTIVE)

    @rule()
    def cancel(self) -> None:
        lifecycle.request_cancel(self.run, self.user)

    @rule(seconds=st.sampled_from([1, 29, 31, 300]))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        lifecycle.expire_leases(self.now)
        lifecycle.resend_lost_messages(self.now)

    @invariant()
    def only_forward(self) -> None:
        self.run.refresh_from_db()
        state = RunState(self.run.state)
        if state is self.seen[-1]:
            return
        order = [RunState.QUEUED, RunState.CLAIMED, RunState.RUNNING]
        assert self.seen[-1] in order, "an ended run changed"
        if state in order:
            assert order.index(state) > order.index(self.seen[-1])
        self.seen.append(state)

    @invariant()
    def an_end_has_a_time_and_a_record(self) -> None:
        self.run.refresh_from_db()
        ends = Event.objects.filter(kind="run_finished", data__run=str(self.run.pk)).count()
        assert (self.run.ended_at is not None) is self.run.ended
        assert ends == int(self.run.ended)
        assert len(self.claims) <= 1


def test_a_runs_life_only_goes_forward(target: Target, alice: User) -> None:
    Life.target, Life.user = target, alice
    run_state_machine_as_test(
        Life, settings=settings(max_examples=15, stateful_step_count=10, suppress_health_check=list(HealthCheck))
    )


def test_sessions_take_turns(alice: User, bob: User, settings: Any) -> None:
    settings.RUNS_PER_SESSION = 3
    many, few = session_open(owner=alice, title="many"), session_open(owner=bob, title="few")
    hers = [lifecycle.queue_probes(many, gpu_vm(many, alice, f"vm-{n}"), alice, [PROBE]) for n in range(50)]
    his = lifecycle.queue_probes(few, gpu_vm(few, bob, "his"), bob, [PROBE])
    begun = []
    while claim := lifecycle.claim_next():
        begun.append(claim)
    assert [claim.run_id for claim in begun] == [hers[0].pk, his.pk, hers[1].pk, hers[2].pk]
    assert lifecycle.finish(begun[0], RunState.SUCCEEDED)
    after = lifecycle.claim_next()
    assert after
    assert after.run_id == hers[3].pk


def test_two_probe_runs_of_one_machine_wait_for_each_other(alice: User, bob: User) -> None:
    one, other = session_open(owner=alice, title="one"), session_open(owner=bob, title="other")
    first = lifecycle.queue_probes(one, gpu_vm(one, alice), alice, [PROBE])
    second = lifecycle.queue_probes(other, gpu_vm(other, bob), bob, [PROBE])
    claim = lifecycle.claim_next()
    assert claim
    assert claim.run_id == first.pk
    assert lifecycle.claim_next() is None
    assert lifecycle.waits_for(second) == first
    assert lifecycle.finish(claim, RunState.FAILED)
    assert lifecycle.claim(second.pk)


def test_only_probes_are_handed_back(alice: User) -> None:
    session = session_open(owner=alice, title="t")
    probes = lifecycle.queue_probes(session, gpu_vm(session, alice), alice, [PROBE])
    benchmark = lifecycle.queue_benchmark(session, gpu_vm(session, alice), alice, "bench.copy")
    for run, handed in ((probes, True), (benchmark, False)):
        claim = lifecycle.claim(run.pk)
        assert claim
        assert lifecycle.mark_running(claim)
        assert lifecycle.hand_back(claim) is handed
        assert not lifecycle.hand_back(claim), "it is somebody else's now" if handed else "it is not"
    again = lifecycle.claim(probes.pk)
    assert again
    assert again.fence == 2
