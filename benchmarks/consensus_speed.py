"""What an ExpGen agent costs on the CPU: `OMP_NUM_THREADS=1 python benchmarks/consensus_speed.py [--levels 700000:64]`.

A shipped agent plays the same unseen levels four times: with every member asked and every frame encoded; without the
votes that cannot matter (agents.ensemble); without encoding a frame twice (networks.cached_encoder); and without
either, as it is shipped. Time is processor time, so that other work on the machine matters less; the episodes of all
four are compared.
"""

import argparse
import time
from typing import Any

from expgen.agents.agent import PolicyAgent
from expgen.agents.consensus import ConsensusAgent
from expgen.envs.make import build_env
from expgen.evaluation.evaluate import Evaluation, evaluate
from expgen.runs.shipped import find_agent, load_agent


class FrameCount:
    """Counts the frames that are encoded."""

    def __init__(self, agent: ConsensusAgent, may_remember: bool) -> None:
        self.frames = self.calls = 0
        assert isinstance(agent.fallback, PolicyAgent)
        for policy in (*agent.ensemble.members, agent.fallback.policy):
            policy.encoder.register_forward_pre_hook(self.count)
            if not may_remember:
                policy.encode = policy.encoder

    def count(self, encoder: Any, inputs: tuple[Any, ...]) -> None:
        """Before every forward."""
        self.frames, self.calls = self.frames + len(inputs[0]), self.calls + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="maze/expgen")
    parser.add_argument("--levels", default="700000:64", help="START:COUNT, each played once")
    parser.add_argument("--num-envs", type=int, default=64)
    args = parser.parse_args()
    described = find_agent(args.agent).agent
    whole: tuple[Evaluation, float] | None = None
    for name, may_skip, may_remember in (
        ("all asked, all encoded", False, False),
        ("votes that cannot matter left out", True, False),
        ("frames remembered", False, True),
        ("both", True, True),
    ):
        agent = load_agent(args.agent)
        assert isinstance(agent, ConsensusAgent)
        count = FrameCount(agent, may_remember)
        if not may_skip:
            agent.ask_everyone()
        env = build_env(described.env, args.levels, args.num_envs, threads=1, **described.options)
        episodes = int(args.levels.rpartition(":")[2])
        start = time.process_time()
        result = evaluate(agent, env, episodes)
        seconds = time.process_time() - start
        env.close()
        whole = whole or (result, seconds)
        steps = sum(episode.length for episode in result.episodes)
        same = "the same episodes" if result == whole[0] else "OTHER EPISODES"
        print(
            f"{name}: {seconds:,.1f} s, {steps / seconds:,.0f} steps/s, {whole[1] / seconds:.2f} ×, "
            f"{count.frames / steps:.2f} frames encoded a step, {count.frames / count.calls:.1f} a call, {same}",
            flush=True,
        )


if __name__ == "__main__":
    main()
