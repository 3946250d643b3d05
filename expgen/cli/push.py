"""expgen push AGENT TO: upload an agent to the Hugging Face Hub, or copy it to a folder."""

from collections.abc import Sequence

from expgen.cli.flags import Parser, agent_location
from expgen.cli.playing_flags import add_agent_argument
from expgen.runs.push import push


def main(argv: Sequence[str]) -> int:
    parser = Parser(
        "push",
        description="The files are weights, agent.json, scores and a model card.",
        epilog="Sign in with hf auth login or the variable HF_TOKEN. Others then use the agent by name, for example "
        "expgen evaluate hf://USER/NAME.",
    )
    add_agent_argument(parser)
    parser.add("to", "hf://USER/NAME, or a new or empty folder", type=agent_location, metavar="TO")
    parser.add("--private", "make a new repository private", False)
    arguments = parser.parse_args(argv)
    agent, to = push(arguments.run, arguments.to, arguments.private), arguments.to
    print(f"done: {to}  ({len(agent.policies)} policies of {agent.env}; expgen.load_agent({str(to)!r}) loads it)")
    return 0
