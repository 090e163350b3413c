"""Shapes of common models, as public copies of their config.json and model cards give them (November
2026). Bytes depend on the quantisation served, so the operator gives them.
"""

from dataclasses import dataclass, field

BF16 = 2


@dataclass(frozen=True, slots=True)
class Preset:
    """fields: keys of the workload's [model] table."""

    title: str
    fields: dict[str, object] = field(hash=False)
    source: str = ""


def _preset(
    title: str,
    layers: int,
    hidden_size: int,
    total_params: float,
    active_params: float,
    experts: int | None = None,
    experts_active: int | None = None,
) -> Preset:
    shape = {
        "name": title,
        "layers": layers,
        "hidden_size": hidden_size,
        "activation_bytes": BF16,
        "total_params": total_params,
        "active_params": active_params,
        "experts": experts,
        "experts_active": experts_active,
    }
    known = {key: value for key, value in shape.items() if value is not None}
    return Preset(title, known, f"config.json and model card of {title}")


PRESETS: dict[str, Preset] = {
    preset.title.lower(): preset
    for preset in (
        _preset("Llama-3.1-8B", 32, 4096, 8.0e9, 8.0e9),
        _preset("Llama-3.1-70B", 80, 8192, 70.6e9, 70.6e9),
        _preset("Llama-3.1-405B", 126, 16384, 405e9, 405e9),
        _preset("Qwen3-32B", 64, 5120, 32.8e9, 32.8e9),
        _preset("Qwen3-30B-A3B", 48, 2048, 30.5e9, 3.3e9, 128, 8),
        _preset("Qwen3-235B-A22B", 94, 4096, 235e9, 22e9, 128, 8),
        _preset("DeepSeek-V3", 61, 7168, 671e9, 37e9, 256, 8),
        _preset("Kimi-K2", 61, 7168, 1.04e12, 32e9, 384, 8),
        _preset("GLM-4.5", 92, 5120, 355e9, 32e9, 160, 8),
        _preset("GLM-5", 78, 6144, 744e9, 40e9, 256, 8),
        _preset("gpt-oss-120b", 36, 2880, 117e9, 5.1e9, 128, 4),
        _preset("Mixtral-8x7B", 32, 4096, 46.7e9, 12.9e9, 8, 2),
        _preset("Mixtral-8x22B", 56, 6144, 141e9, 39e9, 8, 2),
    )
}
