"""The build of the documentation site: `make docs` writes it to docs/_build/html."""

import gc
import sys
from pathlib import Path

gc.disable()  # A build ends soon, with 1 GB of memory; collections took a tenth of its time.
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import gallery  # noqa: E402
import inventories  # noqa: E402

from mirrored.version import VERSION  # noqa: E402

project = "mirrored"
author = "The mirrored contributors"
release = VERSION
html_title = "mirrored"

extensions = [
    "myst_nb",
    "sphinx.ext.intersphinx",
    "sphinx_gallery.gen_gallery",
    "navigation",
    "outside_pages",
    "reference",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints", "examples/*.ipynb", "sg_execution_times.rst"]
nitpicky = True

default_role = "literal"  # What single backticks are in docstrings.
add_module_names = False
python_maximum_signature_line_length = 72
toc_object_entries = False  # The extension `reference` shows them.
smartquotes = False

# Pages that are not in docs/: where they are shown. The start page stands for the README.
outside_pages = {
    "README.md": "index",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "RELEASING.md": "releasing",
    "benchmarks/README.md": "reference/running-benchmarks",
}

# Where the names of Python and NumPy lead to. The inventories are files: the build is offline.
intersphinx_mapping = {
    site: (address, f"_inventories/{site}.inv") for site, address in inventories.SITES.items()
}
intersphinx_disabled_reftypes = ["*"]  # The extension `reference` links them.

# Notebooks show the outputs that are committed; the tests run them.
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # Links such as `page.md#a-heading`.

# The examples are shown and not run: the tests run them.
sphinx_gallery_conf = {
    "examples_dirs": gallery.prepare(HERE.parent / "examples", HERE / "_build" / "examples"),
    "gallery_dirs": "examples",
    "plot_gallery": False,
    "remove_config_comments": True,
    "thumbnail_size": (400, 264),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "furo"
pygments_dark_style = "github-dark"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_copyright = False  # LICENSE says all there is.
