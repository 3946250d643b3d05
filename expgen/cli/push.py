"""expgen push AGENT TO: an agent for others to play, on the Hugging Face Hub or in a folder."""

from collections.abc import Sequence

from expgen.cli.flags import Parser, agent_location
from expgen.cli.playing_flags import add_agent_argument
from expgen.runs.push import push


def main(argv: Sequence[str]) -> int:
    """Parse, write, say how to load it."""
    parser = Parser(
        "push",
        description="Put an agent where others can load it: weights alone, agent.json, scores and a model card.",
        epilog="Signing in is huggingface_hub's: hf auth login, or HF_TOKEN. Everyone then plays it by its name, as in "
        "expgen evaluate hf://USER/NAME.",
    )
    add_agent_argument(parser)
    parser.add("to", "hf://USER/NAME, or a folder that is new or empty", type=agent_location, metavar="TO")
    parser.add("--private", "make the repository private, if it is a new one", False)
    arguments = parser.parse_args(argv)
    agent, to = push(arguments.run, arguments.to, arguments.private), arguments.to
    print(f"done: {to}  ({len(agent.policies)} policies of {agent.env}; expgen.load_agent({str(to)!r}) loads it)")
    return 0
