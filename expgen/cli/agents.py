"""expgen agents: what ships with the package, how well it plays, and where it comes from."""

from collections.abc import Sequence

from expgen.cli.flags import Parser
from expgen.cli.summary import return_and_solved
from expgen.evaluation.scores import SPLITS
from expgen.runs.shipped import bundled_agents
from expgen.text import printable, text_line


def main(argv: Sequence[str]) -> int:
    """Print a line per agent, then what trained them."""
    parser = Parser(
        "agents",
        description="Agents that ship with the package; play one with expgen evaluate NAME or expgen.load_agent(NAME). "
        "Returns are means with 95 % intervals, on training levels and on unseen ones.",
    )
    parser.parse_args(argv)
    agents = bundled_agents()
    print(_line("agent", "train", "unseen levels", "solved", "sha256", "method"))
    for agent in agents.values():
        scores = agent.scores
        (train, _), (test, solved) = (return_and_solved(scores.get(split)) for split in SPLITS)
        print(_line(agent.name, train, test, solved, agent.sha256[:12], agent.method))
    for folder in dict.fromkeys(agent.folder.path for agent in agents.values()):
        of_it = [agent for agent in agents.values() if agent.folder.path == folder]
        facts = of_it[0].trained
        made = f"{facts['env_steps']:,} steps in {facts['minutes']} min, {facts['hardware']}, commit {facts['commit']}"
        if "averaged" in facts:
            made += f", averaged weights of {', '.join(facts['averaged'])}"
        names = ", ".join(agent.name for agent in of_it)
        print("", *map(printable, (names, f"  {facts['command']}", f"  {made}, config {facts['config']}")), sep="\n")
    return 0


def _line(*cells: str) -> str:
    return text_line(cells, (18, 21, 21, 7, 13, 0), gap=" ")
