"""Properties of the parsers around nvidia-smi, NCCL logs and engine command lines."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts.p2p import P2pCode
from agents.parsing import engine, nccl_log, smi_csv, smi_list, smi_query, smi_table, topo_matrix, topo_p2p

pytestmark = pytest.mark.thorough

CODES = [code.value for code in P2pCode]
LINKS = ["SYS", "NODE", "PHB", "PXB", "PIX", "NV4", "NV18"]
WORDS = [*CODES, *LINKS, "GPU0", "GPU1", "GPU12", "NIC0", "X", "CPU Affinity", "NUMA", "0-3", "N/A", "..."]
WORDS += ["\t", "\n", " ", "|", ">", ", ", ": ", "index", "name", "pci.bus_id", "NVIDIA A40", "[N/A]", "ERR!"]
WORDS += ["GPU 00000000:01:00.0", "Product Name", "Fabric", "State", "Completed", "NCCL INFO", "via P2P/IPC"]
WORDS += ["-> 1[1]", "NCCL_X=1", "set by environment to", "vllm serve", "--api-key", "=", "{", "'", "\\", "٣"]
PARSERS = [
    *(smi_csv.parse, smi_list.parse, smi_query.parse, smi_table.parse),
    *(topo_matrix.parse, topo_p2p.parse, nccl_log.parse, engine.parse),
]


@st.composite
def squares(draw: st.DrawFn, words: list[str]) -> list[list[str]]:
    size = draw(st.integers(2, 9))
    cells = st.sampled_from(words)
    return [["X" if i == j else draw(cells) for j in range(size)] for i in range(size)]


def _p2p_text(square: list[list[str]], head: bool = True) -> str:
    header = " \t" + "\t".join(f"GPU{i}" for i in range(len(square))) + "\t\n"
    rows = [f" GPU{i}\t" + "\t".join(row) + "\t\n" for i, row in enumerate(square)]
    return (header if head else "") + "".join(rows)


def _topo_text(square: list[list[str]]) -> str:
    names = "\t".join(f"GPU{i}" for i in range(len(square)))
    rows = [f"GPU{i}\t" + "\t".join(row) + f"\t0-7\t{i % 2}\t\tN/A\n" for i, row in enumerate(square)]
    return f"\t{names}\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n" + "".join(rows)


def _wrapped(text: str, width: int) -> str:
    return _chopped(text.expandtabs(8), width)


def _chopped(text: str, width: int) -> str:
    return "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width))


@settings(max_examples=60)
@given(st.lists(st.sampled_from(WORDS), max_size=60))
def test_no_parser_raises_on_the_words_of_these_formats(words: list[str]) -> None:
    for parse in PARSERS:
        parse("".join(words))
        parse(" ".join(words))


@settings(max_examples=50)
@given(squares(CODES), st.booleans(), st.sampled_from(["", "> ", "    "]))
def test_a_peer_matrix_reads_back(square: list[list[str]], head: bool, prefix: str) -> None:
    text = "".join(prefix + line for line in _p2p_text(square, head).splitlines(keepends=True))
    for form in (text, " ".join(text.replace("\t", " ").split(" "))):
        found = topo_p2p.parse(form)
        assert found is not None
        matrix, _, missing = found
        assert missing == ()
        assert [[c or "X" for c in row] for row in matrix.codes] == square


@settings(max_examples=50)
@given(squares(CODES), st.data())
def test_a_cut_peer_matrix_never_makes_up_a_cell(square: list[list[str]], data: st.DataObject) -> None:
    text = _p2p_text(square)
    found = topo_p2p.parse(text[: data.draw(st.integers(0, len(text)))])
    if found is None:
        return
    matrix, _, missing = found
    for (a, b), code in matrix.pairs().items():
        assert square[int(a[3:])][int(b[3:])] == code
    assert missing or len(matrix.pairs()) == len(square) * (len(square) - 1) or "\n" not in text[:-1]


@settings(max_examples=50)
@given(squares(LINKS), st.integers(6, 16))
def test_a_topology_reads_back_however_the_terminal_wrapped_it(square: list[list[str]], columns: int) -> None:
    whole, wrapped = (
        topo_matrix.parse(_topo_text(square)),
        topo_matrix.parse(_wrapped(_topo_text(square), 8 * columns)),
    )
    assert whole is not None
    assert whole.missing == ()
    assert [[link or "X" for link in row] for row in whole.matrix.links] == square
    assert wrapped is not None
    assert wrapped.matrix.links == whole.matrix.links
    assert wrapped.missing or wrapped.numa == whole.numa


@settings(max_examples=50)
@given(squares(LINKS), st.integers(30, 140))
def test_a_topology_broken_inside_words_is_right_or_says_what_is_missing(square: list[list[str]], width: int) -> None:
    whole, broken = (topo_matrix.parse(_topo_text(square)), topo_matrix.parse(_wrapped(_topo_text(square), width)))
    assert whole is not None
    if broken is None:
        return
    for pair, link in broken.matrix.gpu_links().items():
        assert whole.matrix.gpu_links()[pair] == link
    assert broken.missing or broken.matrix == whole.matrix


@settings(max_examples=20)
@given(squares(LINKS))
def test_a_topology_cut_anywhere_never_makes_up_a_link(square: list[list[str]]) -> None:
    text = _topo_text(square)
    whole = topo_matrix.parse(text)
    assert whole is not None
    for end in range(len(text)):
        cut = topo_matrix.parse(text[:end])
        if cut is None:
            continue
        for pair, link in cut.matrix.gpu_links().items():
            assert whole.matrix.gpu_links()[pair] == link
        assert set(cut.numa) <= set(whole.numa)
        assert cut.missing or cut.matrix == whole.matrix


@settings(max_examples=50)
@given(
    st.lists(
        st.sampled_from(["index", "name", "pci.bus_id", "memory.total [MiB]", "power.draw [W]"]),
        min_size=2,
        unique=True,
    ),
    st.integers(1, 16),
    st.integers(20, 90),
)
def test_any_columns_read_back_wrapped_or_not(columns: list[str], count: int, width: int) -> None:
    def cell(column: str, i: int) -> str:
        return {
            "index": str(i),
            "name": "NVIDIA A40",
            "pci.bus_id": f"00000000:{i:02X}:00.0",
            "memory.total [MiB]": "46068 MiB",
            "power.draw [W]": "[N/A]",
        }[column]

    rows = [", ".join(cell(column, i) for column in columns) for i in range(count)]
    table = smi_csv.parse("\n".join([", ".join(columns), *rows, ""]))
    assert table is not None
    assert [gpu.index for gpu in table.gpus] == list(range(count))
    assert {gpu.power_w for gpu in table.gpus} == {None}
    assert {gpu.vram_mib for gpu in table.gpus} == {46068 if "memory.total [MiB]" in columns else None}
    assert not any(gpu.lost for gpu in table.gpus)
    wrapped = smi_csv.parse(_chopped("\n".join([", ".join(columns), *rows, ""]), width))
    assert wrapped is None or {gpu.index for gpu in wrapped.gpus} <= set(range(count))
    if "index" in columns and wrapped and len(", ".join(columns)) > width >= 20:
        for gpu in wrapped.gpus:
            whole = next(g for g in table.gpus if g.index == gpu.index)
            assert gpu.vram_mib in {None, whole.vram_mib}
            assert gpu.pci_address in {None, whole.pci_address}


@settings(max_examples=50)
@given(
    st.sampled_from(["api-key", "hf-token", "admin_api_key", "ssl-keyfile-password", "x.secret"]),
    st.from_regex(r"[A-Za-z0-9]{6,20}", fullmatch=True),
    st.sampled_from([" ", "="]),
)
def test_no_secret_survives(flag: str, secret: str, between: str) -> None:
    secret = f"Zq{secret}"
    lines = [
        f"python3 -m sglang.launch_server --tp 8 --{flag}{between}{secret} --model-path m",
        f"server_args=ServerArgs(tp_size=8, {flag.replace('-', '_').replace('.', '_')}='{secret}')",
    ]
    for line in lines:
        found = engine.parse(line)
        assert found
        assert secret not in repr(found)
        assert found[0].engine.flags


def test_flags_about_tokens_and_keys_that_are_no_secrets_stay() -> None:
    line = "vllm serve m --max-num-batched-tokens 8192 --tokenizer t --kv-cache-dtype fp8"
    flags = engine.parse(line)[0].engine.flags
    assert flags["max-num-batched-tokens"] == "8192"
    assert flags["tokenizer"] == "t"


def test_long_texts_cost_time_in_proportion() -> None:
    """Each would take minutes with one quadratic pattern."""
    texts = [
        "|   0  " + " " * 60_000 + "|\n",
        "a \\\n" * 15_000,
        "GPU0 " + "X OK " * 15_000,
        "index, name\n" + ", " * 30_000,
        "server_args=ServerArgs(" + "a=b, " * 12_000,
        ("h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n") * 6_000,
        "Unable to determine the device handle for GPU " + " " * 60_000,
        "GPU 0: " + "N" * 60_000,
        "Key" + " " * 60_000 + ": v",
    ]
    started = time.process_time()
    for text in texts:
        for parse in PARSERS:
            parse(text)
    assert time.process_time() - started < 20


@pytest.mark.parametrize("blotted", ["GPU-xxxxxxxx-xxxx", "<redacted>", "GPU-1", "***"])
def test_a_uuid_that_was_blotted_out_hides_no_gpu(blotted: str) -> None:
    text = f"GPU 0: NVIDIA L40S (UUID: {blotted})\nGPU 1: NVIDIA L40S (UUID: {blotted})\n"
    table = smi_list.parse(text)
    assert table
    assert [(gpu.name, gpu.uuid) for gpu in table.gpus] == [("NVIDIA L40S", None)] * 2
