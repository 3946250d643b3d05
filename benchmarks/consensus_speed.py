"""Speed of an ExpGen agent on the CPU: `OMP_NUM_THREADS=1 python benchmarks/consensus_speed.py [--levels 700000:64]`.

A shipped agent plays the same unseen levels four times: with all votes and all frames encoded; without votes that
cannot change the decision (agents.ensemble); with cached encodings of repeated frames (networks.cached_encoder); and
with both, as shipped. CPU time is measured, which depends less on other processes. The script checks that the
episodes of all four are equal.
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

    def __init__(self, agent: ConsensusAgent, may_cache: bool) -> None:
        self.frames = self.calls = 0
        assert isinstance(agent.fallback, PolicyAgent)
        for policy in (*agent.ensemble.members, agent.fallback.policy):
            policy.encoder.register_forward_pre_hook(self.count)
            if not may_cache:
                policy.encode = policy.encoder

    def count(self, encoder: Any, inputs: tuple[Any, ...]) -> None:
        """Forward hook of the encoders."""
        self.frames, self.calls = self.frames + len(inputs[0]), self.calls + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="maze/expgen")
    parser.add_argument("--levels", default="700000:64", help="START:COUNT, each played once")
    parser.add_argument("--num-envs", type=int, default=64)
    args = parser.parse_args()
    described = find_agent(args.agent).agent
    baseline: tuple[Evaluation, float] | None = None
    for name, may_skip, may_cache in (
        ("all votes, no cache", False, False),
        ("without needless votes", True, False),
        ("cached frames", False, True),
        ("both", True, True),
    ):
        agent = load_agent(args.agent)
        assert isinstance(agent, ConsensusAgent)
        count = FrameCount(agent, may_cache)
        if not may_skip:
            agent.ask_all_members()
        env = build_env(described.env, args.levels, args.num_envs, threads=1, **described.options)
        episodes = int(args.levels.rpartition(":")[2])
        start = time.process_time()
        result = evaluate(agent, env, episodes)
        seconds = time.process_time() - start
        env.close()
        baseline = baseline or (result, seconds)
        steps = sum(episode.length for episode in result.episodes)
        same = "equal episodes" if result == baseline[0] else "DIFFERENT EPISODES"
        print(
            f"{name}: {seconds:,.1f} s, {steps / seconds:,.0f} steps/s, {baseline[1] / seconds:.2f} ×, "
            f"{count.frames / steps:.2f} frames encoded per step, {count.frames / count.calls:.1f} per call, {same}",
            flush=True,
        )


if __name__ == "__main__":
    main()
