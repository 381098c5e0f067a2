"""Writes the navigation of all pages from one tree: Sphinx resolves it again for each page."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

TAG = re.compile(r"<(/?)(?:ul|li)\b[^>]*>")
LINK = re.compile(r'(?<= href=")(?!\w+:)')


def tree_of(tree: str, page: str, uri: str) -> str:
    """Return the tree of the start page as that of another page: its links, and what is current.

    Args:
        tree: The tree, with links from the folder of the start page.
        page: The name of the other page.
        uri: What leads to the page from the start page.
    """
    link = f'<a class="reference internal" href="{uri}">'
    before, found, after = tree.partition(link)
    if found:
        around: list[re.Match[str]] = []
        for tag in TAG.finditer(before):
            around.pop() if tag[1] else around.append(tag)
        for tag in reversed(around):
            text = tag[0].replace('">', ' current">').replace("<ul>", '<ul class="current">')
            before = before[: tag.start()] + text + before[tag.end() :]
        found = link.replace('class="', 'class="current ').replace(uri, "#")
    up = "../" * page.count("/")
    before, after = (LINK.sub(up, part) for part in (before, after))
    return before + found + after


def navigate(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.Node | None
) -> None:
    """Let the theme ask for the tree of a page."""
    resolve = context.get("toctree")
    if resolve is None:
        return

    def toctree(**options: Any) -> str:
        trees = app.env.temp_data.setdefault("mirrored_trees", {})
        key = tuple(options.items())
        if key not in trees:
            trees[key] = app.builder._get_local_toctree(app.config.root_doc, **options)
        return tree_of(trees[key], page, app.builder.get_target_uri(page))

    context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("html-page-context", navigate, priority=400)  # Before the theme asks.
    return {"parallel_read_safe": True, "parallel_write_safe": True}
