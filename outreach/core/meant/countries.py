"""The region of a country as lists write it: by its code, its calling code, or its name."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

_CALLING_CODE: Final = re.compile(r"(?:\+|00)?([1-9][0-9]{0,2})")
_IGNORED: Final = re.compile(r"[\W_]+")
_SAINT: Final = re.compile(r"\bst\b")
_MAX_LIKE: Final = 2
_LIKE: Final = 0.72
_MAX_CODE_LENGTH: Final = 3
"""A code resembles too many others."""


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


def countries_like(written: str) -> Sequence[tuple[str, str]]:
    """Return the regions, each with a name, whose names are nearly as written, the nearest first."""
    near = get_close_matches(_plain(written), _regions(), n=_MAX_LIKE, cutoff=_LIKE)
    regions = dict.fromkeys(_regions()[name] for name in near if len(name) > _MAX_CODE_LENGTH)
    return [(region, _names()[region].partition(" (")[0]) for region in regions]


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", _SAINT.sub("saint", name.casefold().replace("&", "and")))
    return _IGNORED.sub("", "".join(letter for letter in letters if not unicodedata.combining(letter)))


@functools.cache
def _names() -> Mapping[str, str]:
    """Return the first name of each region."""
    return {region: names[0] for region, _, names in _lines()}


def _lines() -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield each region with its alpha-3 code and its names."""
    from importlib import resources

    text = resources.files("outreach.core.meant").joinpath("countries.txt").read_text("utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            region, alpha_3, names = line.split(" ", 2)
            yield region, alpha_3, names.split("|")


@functools.cache
def _regions() -> Mapping[str, str]:
    """Return the regions by their codes and names."""
    regions: dict[str, str] = {}
    for region, alpha_3, names in _lines():
        regions.update((_plain(name), region) for name in (region, alpha_3, *names))
    regions.pop("", None)
    return regions
