"""Software versions from torch.utils.collect_env, vLLM's collect_env, SGLang's check_env and pip.

collect_env (PyTorch 2.11, torch/utils/collect_env.py): "PyTorch version: 2.8.0+cu128", "[pip3] torch==2.8.0";
vLLM's adds headings and aligns the colons ("vLLM Version                 : 0.11.0"). check_env (SGLang,
python/sglang/check_env.py): "sglang: 0.5.5", "vllm: Module Not Found". pip list: "torch  2.8.0". Our own
probe prints "torch==2.8.0".
"""

import re

from agents.parsing.nonblank_lines import nonblank_lines

_LINE_CAP = 400
_LABELS = {
    "pytorch version": "torch",
    "pytorch": "torch",
    "cuda used to build pytorch": "torch-cuda",
    "python version": "python",
    "python": "python",
    "cuda runtime version": "cuda-toolkit",
    "nvcc": "cuda-toolkit",
    "vllm version": "vllm",
    "os": "os",
}
_PACKAGES = re.compile(
    r"torch|vllm|sglang|sgl[-_]kernel|sglang[-_]kernel|flashinfer[-_](?:python|cubin)|flash[-_]attn|"
    r"triton|transformers|nvidia[-_]nccl[-_]cu\d\d|nvidia[-_]nvshmem[-_]cu\d\d|deep[-_](?:ep|gemm)|"
    r"nixl|lmdeploy|tensorrt[-_]llm"
)
_PINNED = re.compile(r"^(?:\[(?:pip3?|conda)\] )?(?P<name>[A-Za-z][\w.-]{1,40})==(?P<version>\d\S{0,60})$")
_LISTED = re.compile(
    r"^(?:\[(?:pip3?|conda)\] )?(?P<name>[A-Za-z][\w.-]{1,40}) {1,40}(?P<version>\d[\w.+!-]{0,40})(?:\s|$)"
)
_PAIR = re.compile(r"^(?P<name>[A-Za-z][\w ().-]{1,40}?)\s*: (?P<value>\S.*)$")
_NVCC = re.compile(
    r"Cuda compilation tools, release (?P<version>\d{1,2}\.\d{1,2})|^V?(?P<full>\d{1,2}\.\d{1,2}\.\d{1,3})$"
)
_NUMBER = re.compile(r"\d[\w.+!-]{0,60}")
_UNSAID = re.compile(r"N/A|Could not collect|No CUDA|None|Module Not Found|Not found", re.IGNORECASE)

Found = tuple[dict[str, str], tuple[int, ...]]


def parse(text: str) -> Found:
    """Name -> first version, and the lines. Names as in pip, with "-"."""
    versions: dict[str, str] = {}
    lines: list[int] = []
    for number, raw in nonblank_lines(text):
        name, version = _package_version(raw[:_LINE_CAP].strip().lstrip("> "))
        if name and version and name not in versions:
            versions[name] = version
            lines.append(number)
    return versions, tuple(lines)


def _package_version(line: str) -> tuple[str, str]:
    pinned = _PINNED.match(line) or _LISTED.match(line)
    if pinned and _PACKAGES.fullmatch(pinned["name"].lower()):
        return pinned["name"].lower().replace("_", "-"), pinned["version"]
    if nvcc := _NVCC.search(line):
        return "cuda-toolkit", nvcc["version"] or nvcc["full"]
    pair = _PAIR.match(line)
    if pair is None or _UNSAID.match(pair["value"]):
        return "", ""
    label = pair["name"].lower()
    name = _LABELS.get(label) or (label if _PACKAGES.fullmatch(label) else "")
    if name == "os":
        return name, pair["value"].strip()[:80]
    match = _NUMBER.match(pair["value"]) if name else None
    return (name.replace("_", "-"), match[0]) if match else ("", "")
