"""HTML pages from jinja2 templates. All values are escaped; only templates and their assets are trusted HTML."""

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup, escape

from expgen.colors import ROLES


def render(template: str, **values: Any) -> Markup:
    """Return the HTML of a template such as `report/page.html` with its variables set to `values`."""
    return Markup(_templates().get_template(template).render(**values))


@cache
def _templates() -> Environment:
    packages = {"shared": "expgen", "report": "expgen.report", "watch": "expgen.watch"}
    loader = PrefixLoader({prefix: PackageLoader(package, "assets") for prefix, package in packages.items()})
    templates = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    templates.filters["code"] = _with_code
    templates.globals["asset"] = lambda name: Markup(loader.get_source(templates, name)[0])  # a style or script file
    templates.globals["roles"] = ROLES
    return templates


def _with_code(text: str) -> Markup:
    """Escape `text` and turn `` `words` `` into code elements."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))
