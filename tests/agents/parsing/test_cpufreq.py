"""Governors as people paste them, and what is not one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import ReadingKind
from agents.parsing import cpufreq
from agents.raw_reading import read_raw

FILES = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
ONE = FILES.replace("*", "0")
GOVERNORS = st.lists(st.sampled_from(cpufreq.GOVERNORS.split("|")), min_size=2, max_size=12)


@settings(max_examples=50)
@given(governors=GOVERNORS)
def test_a_governor_reads_the_same_from_files_words_counts_and_cpupower(governors: list[str]) -> None:
    counts = Counter(governors)
    texts = [
        "\n".join(f"{FILES.replace('*', str(n))}:{g}" for n, g in enumerate(governors)),
        "\n".join(governors),
        "\n".join(f"{n:7} {governor}" for governor, n in counts.items()),
        "\n".join(
            f'analyzing CPU {n}:\n   The governor "{g}" may decide which speed to use' for n, g in enumerate(governors)
        ),
    ]
    for text in texts:
        found = cpufreq.parse(text)
        assert found is not None
        assert found[0].governors == counts
        named = [text.splitlines()[number - 1] for number in found[1]]
        assert len(named) == len(counts)
        assert all(any(governor in line for line in named) for governor in counts)


PASTED = {
    f"root@pve1:~# cat {FILES} | sort | uniq -c\n      2 performance\n     62 powersave\n": "known",
    f"root@pve1:~# cat {ONE}\ncat: {ONE}: No such file or directory\n": "absent",
    "root@pve1:~# cpupower frequency-info\nanalyzing CPU 0:\n"
    "  no or unknown cpufreq driver is active on this CPU\n": "absent",
    "root@pve1:~# cpupower frequency-info\n-bash: cpupower: command not found\n": "unsupported",
    # What was written into the files, and by whom, is not what stands in them afterwards.
    f"root@pve1:~# echo performance | tee {FILES}\nperformance\n": None,
    # A guest's own, which says nothing of the host.
    f"root@vm1:~# nvidia-smi -L\nGPU 0: NVIDIA L40S (UUID: GPU-1)\nroot@vm1:~# cat {ONE}\n"
    f"cat: {ONE}: No such file or directory\n": None,
}


@pytest.mark.parametrize(("text", "kind"), list(PASTED.items()))
def test_what_was_typed_decides_what_bare_words_mean(text: str, kind: str | None) -> None:
    items = read_raw(text.encode(), role=None).items
    kinds = [i.readings[0].kind for i in items if i.reader == "host.cpu_governor"]
    assert kinds == ([] if kind is None else [ReadingKind(kind)])


@pytest.mark.parametrize(
    ("online", "missing"), [("0-1", ()), ("0-3,8", ("3 of 5 CPUs",)), ("9-0", ("the other CPUs",))]
)
def test_cpus_that_run_and_did_not_answer_are_missing(online: str, missing: tuple[str, ...]) -> None:
    text = f"/sys/devices/system/cpu/online:{online}\n"
    text += "".join(f"{FILES.replace('*', n)}:performance\n" for n in ("0", "10"))
    found = cpufreq.parse(text)
    assert found is not None
    assert found[2] == missing


def test_one_cpu_given_twice_is_one_and_two_drivers_are_of_two_machines() -> None:
    drivers = "".join(f"{ONE.replace('governor', 'driver')}:{d}\n" for d in ("a-driver", "another"))
    found = cpufreq.parse(f"{drivers}{ONE}:powersave\n{ONE}:performance\n")
    assert found is not None
    assert found[0].governors == {"performance": 1}
    assert found[0].driver is None


def test_more_governors_than_a_machine_has_cpus_are_no_list_of_them() -> None:
    assert cpufreq.parse("performance\n" * 8192) is not None
    assert cpufreq.parse("performance\n" * 1_000_000) is None
