"""expgen agents: list the bundled agents, their scores and how they were trained."""

from collections.abc import Sequence

from expgen.cli.flags import Parser
from expgen.cli.summary import return_and_solved
from expgen.evaluation.scores import SPLITS
from expgen.runs.shipped import bundled_agents
from expgen.text import printable, text_line

WIDTHS = (18, 22, 22, 7, 13, 0)  # of the table's columns


def main(argv: Sequence[str]) -> int:
    parser = Parser(
        "agents",
        description="Use one with expgen evaluate NAME or expgen.load_agent(NAME). "
        "Returns are means of the shipped run with 95 % intervals, on training levels and on unseen levels.",
    )
    parser.parse_args(argv)
    agents = bundled_agents()
    print(text_line(("agent", "train", "unseen levels", "solved", "sha256", "method"), WIDTHS, gap=" "))
    for agent in agents.values():
        scores = agent.scores
        (train, _), (test, solved) = (return_and_solved(scores.get(split)) for split in SPLITS)
        method = (
            agent.method if agent.is_installed else f"{agent.method} (weights: expgen fetch {agent.name} --from SOURCE)"
        )
        print(text_line((agent.name, train, test, solved, agent.sha256[:12], method), WIDTHS, gap=" "))
    for folder in dict.fromkeys(agent.folder.path for agent in agents.values()):
        same_folder = [agent for agent in agents.values() if agent.folder.path == folder]
        facts = same_folder[0].trained
        made = f"{facts['env_steps']:,} steps in {facts['minutes']} min, {facts['hardware']}, commit {facts['commit']}"
        if "averaged" in facts:
            made += f", averaged weights of {', '.join(facts['averaged'])}"
        names = ", ".join(agent.name for agent in same_folder)
        print("", *map(printable, (names, f"  {facts['command']}", f"  {made}, config {facts['config']}")), sep="\n")
    return 0
