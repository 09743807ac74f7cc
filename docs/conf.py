"""The site that `make docs` builds with Sphinx; its navigation is the list of pages in docs/README.md."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent

project = "outreach"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**"]
exclude_patterns = [".*", "benchmarks", "build", "examples", "outreach", "outreach_server", "tests"]
html_theme = "furo"
html_title = "outreach"
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
smartquotes = False  # they would make a dash of the -- of an option
myst_heading_anchors = 4
# Places are those that GitHub finds, and marks of HTML; `tests/documents/site.py` looks at all of them in the result.
suppress_warnings = ["misc.highlighting_failure", "myst.xref_missing"]


def navigation(index: str) -> Iterator[str]:
    """Yield a hidden table of contents for each section of the list of pages."""
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        pages = [normpath(f"docs/{page}") for page in re.findall(r"\]\(([\w/.-]+)\.md\)", section)]
        entries = "\n".join(page for page in pages if page != root_doc)
        yield f"\n```{{toctree}}\n:hidden:\n:caption: {section.splitlines()[0]}\n\n{entries}\n```\n"


def prepare(_app: Any, docname: str, source: list[str]) -> None:
    """Add the tables of contents to the first page; a link to a folder, which is no page, becomes its text."""
    folder = (ROOT / docname).parent
    source[0] = re.sub(
        r"\[([^\]]*)\]\(([^)#:\s]+)\)", lambda link: link[1] if (folder / link[2]).is_dir() else link[0], source[0]
    )
    if docname == root_doc:
        index = (ROOT / "docs" / "README.md").read_text("utf-8")
        source[0] += "\n```{toctree}\n:hidden:\n\ndocs/README\n```\n" + "".join(navigation(index))


def add_pictures(app: Any, _error: Exception | None) -> None:
    """Put the pictures beside the pages, whose HTML names them."""
    shutil.copytree(ROOT / "docs/pictures", Path(app.outdir) / "docs/pictures", dirs_exist_ok=True)


def setup(app: Any) -> None:
    """Have each page prepared when it is read."""
    app.connect("source-read", prepare)
    app.connect("build-finished", add_pictures)
