"""Reference pages, made when the site is built: commands from argparse, settings from configs, Python from source."""

import argparse
import ast
import contextlib
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import expgen
from expgen.algorithms.recipes import RECIPES
from expgen.cli.flags import Parser
from expgen.cli.main import VERBS

PACKAGE = Path(expgen.__file__).parent
Flags = dict[str, dict[str, str]]  # help by flag, by group


def pages() -> dict[str, str]:
    """Return the Markdown of each page by file name."""
    return {
        "reference/commands.md": commands(),
        "reference/settings.md": settings(),
        "reference/python.md": python(),
        "reference/modules.md": modules(),
    }


def commands() -> str:
    """Return the page of all verbs and flags."""
    lines = [
        "# Commands",
        "",
        "The same as `expgen VERB --help all`. Every verb also accepts `--import MODULE` and `--debug`.",
    ]
    for verb, summary in VERBS.items():
        parser = parser_of(verb)
        groups = flags_of(parser)
        if verb == "train":
            groups = {title: groups[title] for title in list(groups)[:3]}
        lines += ["", f"## expgen {verb}", "", f"{summary[0].upper()}{summary[1:]}.", "", *_listed(groups)]
        if verb == "train":
            lines += ["", "The other flags are [settings](settings.md)."]
    return "\n".join(lines)


def settings() -> str:
    """Return the page of all settings: first the shared ones, then those of each algorithm."""
    by_algo = {algo: _trained(algo) for algo in RECIPES}
    shared = set.intersection(*(set().union(*map(dict.items, groups.values())) for groups in by_algo.values()))
    lines = [
        "# Settings",
        "",
        "Flags of `expgen train`, keywords of `expgen.train` and fields of `config.json` are the same names. Defaults",
        "are the paper's; `--preset` changes some of them.",
        "",
        "## Every algorithm",
        "",
        *_listed(_chosen(by_algo["ppo"], lambda flag: flag in shared)),
    ]
    for algo, groups in by_algo.items():
        lines += [
            "",
            f"## --algo {algo}",
            "",
            f"{RECIPES[algo].summary}.",
            "",
            *_listed(_chosen(groups, lambda flag: flag not in shared)),
        ]
    return "\n".join(lines)


def python() -> str:
    """Return the page of all public names."""
    lines = ["# Python", "", "Names of `import expgen`. All modules: [modules](modules.md)."]
    for name in expgen.__all__:
        lines += ["", f"## expgen.{name}", "", *_documented(getattr(expgen, name))]
    return "\n".join(lines)


def modules() -> str:
    """Return the page of all modules, one line each."""
    lines = ["# Modules", "", "The first line of every module; see [architecture](../architecture.md)."]
    for folder in [PACKAGE, *sorted(path for path in PACKAGE.rglob("*") if path.is_dir())]:
        found = {path: ast.get_docstring(ast.parse(path.read_text())) for path in sorted(folder.glob("*.py"))}
        first_lines = {path: text.splitlines()[0] for path, text in found.items() if text}
        if first_lines:
            lines += ["", f"## {folder.relative_to(PACKAGE.parent)}", ""]
            lines += [f"- `{path.name}`: {text}" for path, text in first_lines.items()]
    return "\n".join(lines)


def parser_of(verb: str, *words: str) -> Parser:
    """Return the parser of a verb when it prints its help."""
    asked: list[Parser] = []
    plain = Parser.print_help
    Parser.print_help = lambda self, file=None: asked.append(self)  # type: ignore[method-assign,assignment]
    try:
        with contextlib.suppress(SystemExit):
            importlib.import_module(f"expgen.cli.{verb}").main([*words, "--help", "all"])
    finally:
        Parser.print_help = plain  # type: ignore[method-assign]
    return asked[0]


def flags_of(parser: argparse.ArgumentParser) -> Flags:
    """Return the help of all flags of a parser by group."""
    formatter = parser._get_formatter()
    groups: Flags = {}
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help and action.dest != "help"]
        if actions:
            names = [formatter._format_action_invocation(action) for action in actions]
            groups[str(group.title)] = dict(zip(names, map(formatter._expand_help, actions)))
    return groups


def _trained(algo: str) -> Flags:
    """Return the settings of an algorithm: all groups of `train` after the first three."""
    groups = flags_of(parser_of("train", "--algo", algo))
    return {title: groups[title] for title in list(groups)[3:]}


def _chosen(groups: Flags, is_chosen: Callable[[tuple[str, str]], bool]) -> Flags:
    return {title: dict(filter(is_chosen, group.items())) for title, group in groups.items()}


def _listed(groups: Flags) -> list[str]:
    lines = []
    for title, group in groups.items():
        if group:
            lines += [f"**{title}**", "", *(f"- `{flag}`: {_escaped(text)}" for flag, text in group.items()), ""]
    return lines


def _escaped(text: str) -> str:
    """Escape text for Markdown and HTML, except in backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"[\\*_\[]", r"\\\g<0>", part).replace("<", "&lt;") for part in parts[::2]]
    return "".join(parts)


def _documented(thing: Any) -> list[str]:
    """Return signature or fields, then the docstring."""
    doc = inspect.getdoc(thing) or ""
    if inspect.isclass(thing):
        body = ast.parse(inspect.getsource(thing)).body[0]
        assert isinstance(body, ast.ClassDef)
        source = inspect.getsource(thing).splitlines()
        fields = [source[node.lineno - 1].rstrip() for node in body.body if isinstance(node, ast.AnnAssign)]
        methods = [
            _method(name, member) for name, member in vars(thing).items() if _is_shown(name, member, bool(fields))
        ]
        code = [f"class {thing.__name__}:", *(fields + methods or ["    ..."])]
    else:
        code = [f"{thing.__name__}{inspect.signature(thing)}".replace("expgen.", "")]
    return ["```python", *code, "```", "", _escaped(doc)]


def _is_shown(name: str, member: Any, has_fields: bool) -> bool:
    """Return whether to show a member: public functions, properties, and __init__ of classes without fields."""
    is_code = inspect.isfunction(member) or isinstance(member, property)
    return is_code and (not name.startswith("_") or (name == "__init__" and not has_fields))


def _method(name: str, member: Any) -> str:
    if not isinstance(member, property):
        return f"    def {name}{inspect.signature(member)}"
    about = (inspect.getdoc(member) or "").splitlines()[0]
    return f"    {name}: {inspect.formatannotation(inspect.signature(member.fget).return_annotation)}  # {about}"
