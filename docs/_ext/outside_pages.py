"""Shows Markdown files from outside docs/ as pages of the site, with their links.

The table `outside_pages` of conf.py says which file is which page. If the page is an empty file, it
gets the text of the outside file. Links to an outside file, from any page, lead to its page.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r"(?<=\]\()([^)#\s]+\.(?:md|ipynb))(?=[)#])")


def read(app: Sphinx, document: str, source: list[str]) -> None:
    """Fill in the text of an outside page, and lead the links of any page to the outside pages."""
    if not str(app.env.doc2path(document)).endswith(".md"):
        return
    table: dict[str, str] = app.config.outside_pages
    root = app.srcdir.parent
    path = Path(app.env.doc2path(document))
    folder = path.parent  # Of the page; links in the text may be relative to another one.
    for outside, page in table.items():
        if page == document and not source[0].strip():
            path = root / outside
            source[0] = path.read_text("utf-8")
            app.env.note_dependency(str(path))

    def lead(match: re.Match[str]) -> str:
        target = os.path.normpath(path.parent / match[1])
        page = table.get(os.path.relpath(target, root))
        to = app.srcdir / f"{page}.md" if page else target
        return match[1] if "://" in match[1] else os.path.relpath(to, folder)

    source[0] = LINK.sub(lead, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_config_value("outside_pages", {}, "env")
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
