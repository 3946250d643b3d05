"""expgen push AGENT TO: an agent for others to play, on the Hugging Face Hub or in a folder."""

from collections.abc import Sequence

from expgen.cli.flags import Parser, agent_place
from expgen.runs.push import push
from expgen.runs.shipped import find_agent


def main(argv: Sequence[str]) -> int:
    """Parse, write, say how to load it."""
    parser = Parser(
        "push",
        description="Put an agent where others can load it: weights alone, agent.json, scores and a model card.",
        epilog="Signing in is huggingface_hub's: hf auth login, or HF_TOKEN. Everyone then plays it by its name, as in "
        "expgen evaluate hf://USER/NAME.",
    )
    parser.add_argument(
        "agent",
        type=agent_place,
        metavar="RUN_OR_AGENT",
        help="a run folder, its URL, an agent.json, or an agent of expgen agents",
    )
    parser.add_argument("to", type=agent_place, metavar="TO", help="hf://USER/NAME, or a folder that is new or empty")
    parser.add_argument("--private", action="store_true", help="make the repository private, if it is a new one")
    arguments = parser.parse_args(argv)
    count = push(arguments.agent, arguments.to, arguments.private)
    env = find_agent(arguments.agent).agent.env
    print(f"done: {arguments.to}  ({count} policies of {env}; expgen.load_agent({str(arguments.to)!r}) loads it)")
    return 0
