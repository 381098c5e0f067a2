"""Writes docs/_inventories: the names of Python and NumPy that the pages use, and their pages.

The build reads these files, so it needs no network. To renew them, build the site and run
`python docs/_ext/inventories.py`, which downloads the whole inventories. Without a network, pass
files instead: `--python objects.inv --numpy objects.inv`.
"""

import argparse
import re
import zlib
from pathlib import Path
from urllib.request import urlopen

DOCS = Path(__file__).resolve().parents[1]
FOLDER = DOCS / "_inventories"
SITES = {"python": "https://docs.python.org/3/", "numpy": "https://numpy.org/doc/stable/"}
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*")
ENTRY = re.compile(r"^(\S+) py:(\w+) \S+ (\S+)#\$ \S+$", re.MULTILINE)


def names_in(page: str) -> set[str]:
    """Return the names in a page that may be in an inventory."""
    return {re.sub(r"^np\.", "numpy.", name) for name in NAME.findall(page)}


def cut(inventory: bytes, names: set[str]) -> str:
    """Return an inventory as text, with only the Python objects that have some names.

    Names without a module, such as `int`, are kept if they are classes or exceptions.

    Args:
        inventory: A file of version 2, whose lines are compressed.
        names: The names to keep.
    """
    _, project, version, _, lines = inventory.split(b"\n", 4)
    text = f"# Sphinx inventory version 1\n{project.decode()}\n{version.decode()}\n"
    for name, kind, page in sorted(ENTRY.findall(zlib.decompress(lines).decode())):
        if name in names and ("." in name or kind in ("class", "exception")):
            text += f"{name} {kind} {page}\n"
    return text


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    for site, address in SITES.items():
        parser.add_argument(f"--{site}", type=Path, help=f"instead of {address}objects.inv")
    options = vars(parser.parse_args())
    pages = [*DOCS.glob("**/*.md"), *DOCS.glob("reference/api/*.rst")]
    names = {name for page in pages for name in names_in(page.read_text("utf-8"))}
    for site, address in SITES.items():
        path = options[site]
        inventory = path.read_bytes() if path else urlopen(f"{address}objects.inv").read()
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{site}.inv").write_text(cut(inventory, names), "utf-8")


if __name__ == "__main__":
    main()
