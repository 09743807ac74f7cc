"""Write docs/reference anew: `python -m tests.reference`."""

from __future__ import annotations

from tests.reference.pages import FOLDER, PAGES

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), "utf-8")
