"""Flags of verbs that play episodes."""

from dataclasses import dataclass, field
from typing import Any

from expgen.cli.flags import Parser
from expgen.cli.playing_flags import add_agent_argument, add_ensemble_flags, add_playing_flags, request_of


@dataclass(frozen=True)
class Request:
    run: Any
    episodes: int
    weights: str | None = None
    temperature: float | None = None
    explorer_temperature: float | None = None
    consensus: dict[str, Any] = field(default_factory=dict)


def test_other_flags_become_consensus_settings_of_the_request() -> None:
    parser = Parser("sample")
    add_agent_argument(parser)
    add_playing_flags(parser, episodes=5)
    add_ensemble_flags(parser)
    request = request_of(Request, vars(parser.parse_args(["minimaze/ppo", "--min-agree", "3", "--alpha", "0.2"])))
    assert (str(request.run), request.episodes, request.weights, request.temperature) == ("minimaze/ppo", 5, None, None)
    assert request.consensus == {"min_agree": 3, "alpha": 0.2}
    assert "number of episodes (default 5)" in " ".join(parser.format_help().split())
