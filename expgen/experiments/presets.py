"""Presets: what `--preset` changes of the defaults, as data."""

from typing import Any, Literal

from expgen.errors import check_choice

Preset = Literal["paper", "laptop", "smoke"]

# The defaults of the configs are the paper's, so `paper` changes nothing.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "laptop": {
        "steps": 6_000_000, "envs": 64, "rollout_steps": 128, "minibatch_order": "shuffled",
        "eval_every": 1_000_000, "eval_episodes": 400,
    },
    "smoke": {
        "steps": 4096, "envs": 16, "rollout_steps": 64, "minibatches": 4, "epochs": 1,
        "eval_every": 4096, "eval_episodes": 8,
    },
}  # fmt: skip


def preset_values(preset: str, env: str, has_memory: bool) -> dict[str, Any]:
    """The settings that `preset` stands for."""
    values = dict(PRESETS[check_choice("--preset", preset, PRESETS)])
    if has_memory:
        values.pop("minibatch_order", None)  # a policy with memory learns from whole columns
    if preset == "laptop" and env.startswith("procgen:"):
        values |= {"steps": 1_000_000, "envs": 32, "rollout_steps": 256, "eval_every": 250_000, "eval_episodes": 100}
    return values


def default_preset(env: str) -> Preset:
    """What is meant where no preset is named: the paper's scale on ProcGen, minutes elsewhere."""
    return "paper" if env.startswith("procgen:") else "laptop"
