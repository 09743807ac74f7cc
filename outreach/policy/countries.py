"""The region of a country as lists write it: by its code, its calling code, or its name."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from importlib import resources
from typing import Final

_CALLING_CODE: Final = re.compile(r"(?:\+|00)?([1-9][0-9]{0,2})")
_IGNORED: Final = re.compile(r"[\W_]+")
_SAINT: Final = re.compile(r"\bst\b")


def region_of_country(written: str) -> str | None:
    """Return the ISO 3166 alpha-2 region of a country, such as `DE`, `deu`, `+49` or `Allemagne`; None if unknown.

    A calling code of several regions means its main region.
    """
    text = written.strip()
    found = _CALLING_CODE.fullmatch(text)
    if found is not None:
        # Imported here, because its tables take long to load.
        import phonenumbers

        region = phonenumbers.COUNTRY_CODE_TO_REGION_CODE.get(int(found[1]), (None,))[0]
        return region if region in phonenumbers.SUPPORTED_REGIONS else None
    return _regions().get(_plain(text))


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", _SAINT.sub("saint", name.casefold().replace("&", "and")))
    return _IGNORED.sub("", "".join(letter for letter in letters if not unicodedata.combining(letter)))


@functools.cache
def _regions() -> Mapping[str, str]:
    """Return the regions by their codes and names."""
    text = resources.files("outreach.policy").joinpath("countries.txt").read_text("utf-8")
    regions: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            region, alpha_3, names = line.split(" ", 2)
            regions.update((_plain(name), region) for name in (region, alpha_3, *names.split("|")))
    regions.pop("", None)
    return regions
