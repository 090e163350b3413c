"""The next test: what could change most verdicts and gates for the least time and trouble."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from agents.facts.bench import ALLREDUCE, COPY, DELIVERY, PROFILE, Timing
from agents.facts.gpu import CLIQUE_CAPABILITY, GPU_COUNT_PCI, GPU_COUNT_SMI
from agents.facts.nccl import NCCL_TRANSPORTS
from agents.facts.p2p import P2P_READ, P2P_WRITE
from agents.facts.vm import VM_QEMU_ARGS
from webapp.diagnosis.case import Actor, Case, GateState, NextTest, Path, Restart, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses, all_rungs, listed
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypotheses.hang import SPINNING_POWER
from webapp.diagnosis.hypothesis import Severity

WANTED = 3
# What a restart costs beside the test itself, in minutes of someone's attention: a rule of thumb.
RESTART_MINUTES = {Restart.NONE: 0, Restart.ENGINE: 10, Restart.GUEST: 20, Restart.VM: 30, Restart.HOST: 120}
# Another person has to be asked and to answer.
ASKING_MINUTES = 15


class Place(StrEnum):
    """Where a test is made, or its output given. diagnosis: nowhere by itself; its line says how."""

    MEASUREMENTS = "measurements"
    GUEST = "guest"
    HOST = "host"
    TRIAL = "trial"
    DIAGNOSIS = "diagnosis"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One test that could be next, by its own id. how: what to do, in one line. useful: whether it is still open
    and can be done. plain: what it does, for somebody who does not know the field's words, after "should".
    weight: how much a verdict of this test is worth against a gate's (1). benchmark: the id of the one that it
    runs, which is among the measurements; "" for none."""

    id: str
    title: str
    minutes: int
    how: str
    useful: Callable[[Case], bool]
    plain: str
    restart: Restart = Restart.NONE
    actor: Actor = Actor.OPERATOR
    weight: float = 1.0
    place: Place = Place.DIAGNOSIS
    benchmark: str = ""

    @property
    def test(self) -> NextTest:
        """With all that it could decide."""
        decides = _could_decide(self.id)
        return NextTest(self.id, self.title, decides, self.minutes, self.restart, self.actor, self.how)


def next_tests(case: Case) -> tuple[NextTest, ...]:
    """At most three, the one that could decide most a minute first; `decides` holds what is open."""
    rated: list[tuple[float, NextTest]] = []
    for candidate in CANDIDATES:
        test, scope = candidate.test, case.scope()
        open_ = tuple(name for name in test.decides if _is_open(scope, name))
        if open_ and candidate.useful(scope):
            test = replace(test, decides=open_, reads=scope.facts.reads)
            rated.append((candidate.weight * len(open_) / cost_minutes(test), test))
    rated.sort(key=lambda item: -item[0])
    return tuple(test for _, test in rated[:WANTED])


@listed
def _could_decide(test_id: str) -> tuple[str, ...]:
    """Ids of gates from the foot of the ladder, then of hypotheses by rank."""
    gates = (rung.id for rung in all_rungs() if test_id in rung.decided_by)
    ranked = sorted(all_hypotheses(), key=lambda hypothesis: hypothesis.rank)
    return (*gates, *(hypothesis.id for hypothesis in ranked if test_id in hypothesis.decided_by))


def candidate_of(test_id: str) -> Candidate | None:
    """None for one that is not proposed any more."""
    return next((candidate for candidate in CANDIDATES if candidate.id == test_id), None)


def title_of(test_id: str) -> str:
    """What people read in place of its id; the id of one that is not proposed any more."""
    candidate = candidate_of(test_id)
    return candidate.title if candidate else test_id


def plain_of(test: NextTest) -> str:
    """What it does in plain words, after "should"."""
    candidate = candidate_of(test.id)
    return candidate.plain if candidate else test.how


def cost_minutes(test: NextTest) -> int:
    """The test itself, the restart that it needs, and asking another person."""
    asking = ASKING_MINUTES if test.actor is Actor.HOST_ADMIN else 0
    return test.minutes + RESTART_MINUTES[test.restart] + asking


def _is_open(case: Case, name: str) -> bool:
    states = [state for path in Path if (state := case.state(name, path))]
    if states:
        return GateState.UNKNOWN in states
    return name in case.verdicts and case.verdict(name) is VerdictKind.OPEN


def _in_kvm(case: Case) -> bool:
    return case.situation.in_kvm


def _own_host(case: Case) -> bool:
    """A KVM host that somebody here can ask about, unlike a cloud's."""
    return _in_kvm(case) and case.situation.cloud is None


def _refused(case: Case) -> bool:
    return case.state("driver") is GateState.FAIL


def _no_device_timing(case: Case) -> bool:
    """No collective timed in a graph yet: then a first run of it would replace the estimate."""
    result = case.facts.value(ALLREDUCE)
    timed = result and (result.timing is Timing.DEVICE or any(row.graph for row in result.rows))
    return not timed and _several_gpus(case)


def _several_gpus(case: Case) -> bool:
    return case.situation.gpu_count not in {0, 1}


def _serving(case: Case) -> bool:
    """An engine that hangs, loses data or misses GPUs has no step that is worth a profile."""
    broken = (h.id for h in all_hypotheses() if h.severity is Severity.BROKEN)
    runs = not any(case.verdict(name) is VerdictKind.SUPPORTED for name in broken)
    return runs and case.situation.gpu_count != 0


def _no_profile(case: Case) -> bool:
    return _serving(case) and case.facts.value(PROFILE) is None


def _may_hang(case: Case) -> bool:
    """Kernels that spin at little power, or a hang that was seen and not looked into."""
    seen = case.situation.load
    spins = seen.busy and seen.power_share is not None and seen.power_share < SPINNING_POWER
    return spins or case.verdict("hang") is VerdictKind.SUPPORTED


def _counts_unread(case: Case) -> bool:
    return any(case.facts.value(fact) is None for fact in (GPU_COUNT_PCI, GPU_COUNT_SMI))


def _in_use(case: Case) -> bool:
    return any(case.state("used", path) is GateState.PASS for path in Path)


def _no_copies(case: Case) -> bool:
    return _several_gpus(case) and case.situation.copy_curve is None and case.facts.value(COPY) is None


def _vm_line_unread(case: Case) -> bool:
    return _own_host(case) and case.facts.value(VM_QEMU_ARGS) is None


def _not_read(facts: Facts) -> bool:
    return facts.value(P2P_READ) is None or facts.value(P2P_WRITE) is None


def _allowed_but_unchecked(case: Case) -> bool:
    return case.state("driver") is GateState.PASS and case.facts.value(DELIVERY) is None


CANDIDATES = (
    Candidate(
        "engine_profile",
        "Profile the engine",
        10,
        "Record about 20 decode steps while the engine runs and is otherwise idle: the profile sends its "
        "own requests and takes about a minute, "
        "the rest is setting it up (`POST /start_profile`)",
        _no_profile,
        plain="record where the serving software spends its time",
        # It splits the whole step, where the others settle one part.
        weight=2.0,
        place=Place.MEASUREMENTS,
        benchmark="bench.engine_profile",
    ),
    Candidate(
        "p2p_matrix",
        "Ask the driver about peer access",
        5,
        "`nvidia-smi topo -p2p r` and `topo -p2p w`, with `systemd-detect-virt` and `nvidia-smi -q`",
        lambda case: _several_gpus(case) and _not_read(case.facts) and not _refused(case),
        plain="ask the driver whether the GPUs may reach each other",
        place=Place.GUEST,
    ),
    Candidate(
        "copy_sweep",
        "Time copies between two GPUs",
        10,
        "Time copies between two GPUs from 12 KiB to 64 MiB, device-timed, with the controls",
        _no_copies,
        plain="time copies between two GPUs",
        place=Place.MEASUREMENTS,
        benchmark="bench.copy",
    ),
    Candidate(
        "nccl_log",
        "Read NCCL’s log",
        5,
        "Start the engine once with `NCCL_DEBUG=INFO` and keep the log",
        lambda case: _several_gpus(case) and case.facts.value(NCCL_TRANSPORTS) is None,
        plain="read from the software’s own log how the GPUs talk to each other",
        restart=Restart.ENGINE,
        place=Place.GUEST,
    ),
    Candidate(
        "clique_capability",
        "Look for the clique in the guest",
        5,
        "`sudo lspci -vv` of the GPUs in the guest: is there a capability at [c8] or [d4]?",
        lambda case: _in_kvm(case) and case.facts.value(CLIQUE_CAPABILITY) is None,
        plain="look in the virtual machine whether direct access is permitted",
        place=Place.GUEST,
    ),
    Candidate(
        "all_reduce_graph",
        "Time all-reduces in a CUDA graph",
        15,
        "`all_reduce_perf -g N -b 4K -e 1M -f 2 -G 20` for all N GPUs, while the engine is stopped",
        _no_device_timing,
        plain="time the exchanges between all the GPUs",
        restart=Restart.ENGINE,
        place=Place.MEASUREMENTS,
        benchmark="bench.allreduce",
    ),
    Candidate(
        "running_qemu_line",
        "Read the running QEMU command line",
        5,
        "The running QEMU command line (`/proc/PID/cmdline`) and the log of the VM’s last start",
        _vm_line_unread,
        plain="look on the host how the virtual machine was started",
        actor=Actor.HOST_ADMIN,
        place=Place.HOST,
    ),
    Candidate(
        "delivery_check",
        "Check that the bytes arrive",
        10,
        "Write a pattern to each GPU and read it back there; then `all_reduce_perf -g N -c 1`",
        _allowed_but_unchecked,
        plain="check that data sent from one GPU to another arrives",
        restart=Restart.ENGINE,
        weight=2.0,
        place=Place.MEASUREMENTS,
        benchmark="bench.delivery",
    ),
    Candidate(
        "a_b",
        "Measure the workload with and without P2P",
        30,
        "Three runs of the workload each with P2P and with `NCCL_P2P_DISABLE=1`, in turn",
        lambda case: _in_use(case) and _serving(case),
        plain="measure the speed several times with and without direct access",
        restart=Restart.ENGINE,
        place=Place.TRIAL,
    ),
    Candidate(
        "stack_dump",
        "See where the engine stands still",
        5,
        "`py-spy dump` of every rank’s process, and the NCCL log of the run that stands still",
        _may_hang,
        plain="record where the software stands still",
        weight=2.0,
    ),
    Candidate(
        "gpu_count",
        "Count the GPUs",
        5,
        "`lspci -d 10de:` and `nvidia-smi -L` beside each other, with the kernel log of the boot",
        _counts_unread,
        plain="count the GPUs that the machine has and the driver uses",
        # Nothing points to it: it only closes a question.
        weight=0.2,
        place=Place.GUEST,
    ),
    Candidate(
        "telemetry",
        "Watch power, clocks and links",
        5,
        "Watch power, clocks and links for a minute under the usual load (`nvidia-smi dmon`)",
        _serving,
        plain="watch power, clocks and connections of the GPUs under load",
        weight=0.2,
        place=Place.GUEST,
    ),
    Candidate(
        "bare_metal_test",
        "Test the hardware without its VM",
        60,
        "Boot once from a live medium: `topo -p2p`, and one copy checked by its destination",
        _own_host,
        plain="start the machine once without its virtual machine and test the hardware",
        restart=Restart.HOST,
        actor=Actor.HOST_ADMIN,
    ),
)
