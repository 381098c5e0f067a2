"""Writes the reference: a page per public module, from the tables of public names and docstrings.

The pages are in docs/reference/api/, which git ignores. The build fails if a public name has no
docstring. Types in signatures, and code such as `mr.layers.Dense` in any page, lead to the entries.
"""

import enum
import functools
import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from public_names import (
    Entry,
    PublicNames,
    Undocumented,
    documentation,
    has_docstring,
    identity,
    summary_of,
    unwrapped,
)
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.ext.intersphinx import InventoryAdapter
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature

NAMES = PublicNames()
FOLDER = "reference/api"
OPTIONS = Config(
    napoleon_use_rtype=False, napoleon_custom_sections=[("Attributes", "params_style")]
)
BARS = re.compile(r"\|(?=\S)([^|`\n]*)(?<=\S)\|")
TRAILING = re.compile(r"(?<=\w)_(?![\w`])(?=[^`\n]*(?:`[^`\n]*`[^`\n]*)*$)", re.MULTILINE)
CODE = re.compile(r"((`+)[^`\n]+?\2)(\w?)")
TYPE = re.compile(r"~[\w.]+")
CALL = re.compile(r"(?:mr|tf|mirrored)\.([A-Za-z_][\w.]*)(?:\(.*\))?", re.DOTALL)
OUTSIDE = re.compile(r"([A-Za-z_]\w*(?:\.\w+)+)(?:\(.*\))?", re.DOTALL)


def indented(text: str, depth: int = 1) -> str:
    """Return a block of text that belongs to the directive above it."""
    return "".join(f"{'   ' * depth}{line}".rstrip() + "\n" for line in text.splitlines())


def signature_of(value: Any, drop_first: bool = False) -> str:
    """Return the arguments of a function or a class as they are shown; empty for an exception."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = list(signature.parameters.values())[1 if drop_first else 0 :]
    plain = [
        p.replace(annotation=p.empty)
        if p.annotation is Any or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        else p
        for p in parameters
    ]
    result = inspect.Signature.empty if isinstance(value, type) else signature.return_annotation
    result = inspect.Signature.empty if result is Any else result
    text = stringify_signature(
        signature.replace(parameters=plain, return_annotation=result), unqualified_typehints=True
    )
    return TYPE.sub(lambda match: f"~{NAMES.canonical.get(match[0][1:], match[0][1:])}", text)


def escaped(text: str) -> str:
    """Return a text in which bars and last underscores are no markup, and `Dict`s is code."""
    text = TRAILING.sub(r"\\_", BARS.sub(r"\\|\1\\|", text))
    return CODE.sub(lambda match: f"{match[1]}\\ {match[3]}" if match[3] else match[0], text)


def body(name: str, text: str) -> str:
    """Return a docstring as reStructuredText."""
    text, example, rest = text.partition("\nExample:")
    text = escaped(text) + example + rest
    return "\n".join(GoogleDocstring(text, OPTIONS, what="function", name=name).lines())


def directive(kind: str, name: str, text: str, *options: str) -> str:
    """Return an entry for a name."""
    lines = [f".. py:{kind}:: {name}", *(f"   {option}" for option in options), ""]
    return "\n".join(lines) + "\n" + indented(text) + "\n"


def members_of(entry: Entry) -> str:
    """Return the methods and properties of a class."""
    text = ""
    for name, member in NAMES.members(entry.value).items():
        function = unwrapped(member)
        described = body(name, inspect.getdoc(function) or "")
        if isinstance(member, property):
            text += directive("property", name, described)
        else:
            options = [
                f":{kind.__name__}:"
                for kind in (staticmethod, classmethod)
                if isinstance(member, kind)
            ]
            shown = signature_of(function, drop_first=not isinstance(member, staticmethod))
            text += directive("method", f"{name}{shown}", described, *options)
    for base in NAMES.bases(entry.value):
        home = NAMES.homes[identity(base)]
        text += f"Other methods and properties are those of :py:class:`~{home}`.\n\n"
    return text


def described(entry: Entry) -> str:
    """Return the entry of a name that is described here."""
    whole = documentation(entry.name, entry.value)
    owner = str(getattr(entry.value, "__module__", "")).partition(".")[0]
    if has_docstring(entry.value) and owner == "numpy":
        whole = f"{summary_of(whole)}\n\nThis is `numpy.{entry.value.__name__}`."
    text = body(entry.short, whole)
    same = [e.name for e in NAMES.all.values() if e.home == entry.name != e.name]
    if same:
        text += "\n\nAlso: " + ", ".join(f"``{name}``" for name in same) + "\n"
    if not has_docstring(entry.value):
        return directive("data", entry.short, text)
    if not isinstance(entry.value, type):
        return directive("function", f"{entry.short}{signature_of(entry.value)}", text)
    if issubclass(entry.value, enum.Enum):
        text += "\n\nValues: " + ", ".join(f"``{m.name}``" for m in entry.value) + "\n"
        return directive("class", entry.short, text)
    kind = "exception" if issubclass(entry.value, BaseException) else "class"
    shown = "" if kind == "exception" else signature_of(entry.value)
    return directive(kind, f"{entry.short}{shown}", f"{text}\n\n{members_of(entry)}")


def title(text: str) -> str:
    """Return a page's title."""
    return f"{text}\n{'=' * len(text)}\n\n"


def module_page(module: str) -> str:
    """Return the page of a public module."""
    text = title(module) + f".. py:module:: {module}\n\n"
    text += body(module, inspect.cleandoc(NAMES.modules[module].__doc__ or "")) + "\n\n"
    if module in NAMES.other_names:
        others = ", ".join(f"``{name}``" for name in sorted(NAMES.other_names[module]))
        text += f"Also: {others}\n\n"
    entries = NAMES.entries(module)
    if entries:
        text += f".. public-names:: {module}\n\n"
    return text + "".join(described(entry) for entry in entries if entry.name == entry.home)


def index_page() -> str:
    """Return the list of all modules."""
    text = title("All public names")
    text += "Import the library as ``mr``: ``mirrored.layers`` is ``mr.layers``.\n\n"
    text += ".. public-modules::\n\n.. toctree::\n   :hidden:\n\n"
    return text + "".join(f"   {m.removeprefix('mirrored.')} <{m}>\n" for m in NAMES.modules)


def write_pages(app: Sphinx) -> None:
    """Write the pages of the reference that have changed, and remove old ones."""
    try:
        NAMES.check()
    except Undocumented as error:
        raise ExtensionError(str(error)) from None
    pages = {module: module_page(module) for module in NAMES.modules}
    pages["index"] = index_page()
    folder = Path(app.srcdir, FOLDER)
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def reference_to(text: str, kind: str, target: str, page: str) -> nodes.Node:
    """Return code that leads to an entry."""
    reference = addnodes.pending_xref(
        "", reftype=kind, refdomain="py", reftarget=target, refdoc=page, refexplicit=True
    )
    reference += nodes.literal("", text)
    return reference


class Table(SphinxDirective):
    """A table of two columns: names that lead to entries, and their first lines."""

    def cell(self, *content: nodes.Node) -> nodes.entry:
        """Return a cell."""
        return nodes.entry("", nodes.paragraph("", "", *content))

    def table(self, rows: list[tuple[nodes.Node, str]]) -> list[nodes.Node]:
        """Return a table of references and texts."""
        body = nodes.tbody()
        for reference, text in rows:
            parsed, _ = self.parse_inline(escaped(text))
            body += nodes.row("", self.cell(reference), self.cell(*parsed))
        columns = nodes.colspec(colwidth=30), nodes.colspec(colwidth=70)
        group = nodes.tgroup("", *columns, body, cols=2)
        return [nodes.table("", group, classes=["public-names"])]


class PublicNamesOf(Table):
    """The public names of a module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        module, page = self.arguments[0], self.env.docname
        entries = NAMES.entries(module)
        return self.table(
            [
                (
                    reference_to(entry.short, "obj", entry.home, page)
                    if entry.home
                    else nodes.literal("", entry.short),
                    entry.summary,
                )
                for entry in entries
            ]
        )


class PublicModules(Table):
    """The public modules."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        rows = []
        for name, module in NAMES.modules.items():
            text = summary_of(inspect.cleandoc(module.__doc__ or "")).partition(". ")[0]
            rows.append(
                (reference_to(name, "mod", name, self.env.docname), f"{text.removesuffix('.')}.")
            )
        return self.table(rows)


@functools.cache
def addresses(env: BuildEnvironment) -> dict[str, str]:
    """Return the addresses of the names in the inventories."""
    inventories = InventoryAdapter(env).main_inventory.values()
    return {name: item.uri for items in inventories for name, item in items.items()}


class Links(SphinxPostTransform):
    """Lets code such as `mr.layers.Dense` lead to the entry of that name.

    Types and code such as `np.load` lead to the pages of Python and NumPy if the inventories have
    them. Other types become plain text: Sphinx would look for each of them among all entries.
    """

    default_priority = 5  # Before references are resolved.

    def run(self, **kwargs: Any) -> None:
        """Replace code by references, and references to nothing by text."""
        page = self.env.current_document.docname
        described = self.env.domains.python_domain.objects
        outside = addresses(self.env)
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("refdomain") != "py":
                continue
            if node["reftarget"] in described:
                node["reftype"] = "obj"  # Else Sphinx searches all entries for a type alias.
            else:
                address = outside.get(node["reftarget"])
                node.replace_self(
                    outside_link(address, node.children) if address else node.children
                )
        for literal in list(self.document.findall(nodes.literal)):
            if not isinstance(
                literal.parent, nodes.reference | addnodes.pending_xref | nodes.title
            ):
                target = target_of(literal.astext(), page.removeprefix(f"{FOLDER}/"))
                if target in described:
                    literal.replace_self(reference_to(literal.astext(), "obj", target, page))
                elif address := outside.get(outside_name(literal.astext())):
                    literal.replace_self(outside_link(address, [literal.deepcopy()]))


def target_of(text: str, module: str) -> str | None:
    """Return the entry that code in a page names, or None."""
    match = CALL.fullmatch(text)
    if match:
        name = f"mirrored.{match[1]}"
    elif module in NAMES.modules and re.fullmatch(r"[A-Z]\w+", text):
        name = f"{module}.{text}"
    else:
        return None
    if name in NAMES.all:
        return NAMES.all[name].home
    owner, _, member = name.rpartition(".")  # A method.
    entry = NAMES.all.get(owner)
    if entry and isinstance(entry.value, type) and member in NAMES.members(entry.value):
        return f"{entry.home}.{member}"
    return None


def outside_link(address: str, content: list[nodes.Node]) -> nodes.Node:
    """Return a link to a page of Python or NumPy."""
    return nodes.reference("", "", *content, internal=False, refuri=address)


def outside_name(text: str) -> str:
    """Return the whole name of an object of a module of Python or NumPy, if code names one."""
    match = OUTSIDE.fullmatch(text)
    name = re.sub(r"^np\.", "numpy.", match[1]) if match else ""
    return "" if f"mirrored.{name}" in NAMES.all else name


def contents(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.Node | None
) -> None:
    """Show the entries of a page of the reference in the column on the right.

    Sphinx can do so (`toc_object_entries`), and then copies all entries for each page of the site.
    """
    module = page.removeprefix(f"{FOLDER}/")
    if module in NAMES.modules:
        entries = [e for e in NAMES.entries(module) if e.name == e.home]
        links = [f'<li><a class="reference" href="#{e.name}">{e.short}</a></li>' for e in entries]
        if links:
            top = f'<ul><li><a class="reference" href="#">{module}</a><ul>'
            context["toc"] = f"{top}{''.join(links)}</ul></li></ul>"
            context["furo_hide_toc"] = False


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("public-names", PublicNamesOf)
    app.add_directive("public-modules", PublicModules)
    app.add_post_transform(Links)
    app.connect("builder-inited", write_pages)
    app.connect("html-page-context", contents, priority=600)  # After the theme's.
    return {"parallel_read_safe": True, "parallel_write_safe": True}
