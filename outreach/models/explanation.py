"""What a provider's error means, in words for people."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Explanation:
    """What an error of a provider means, and what to do about it.

    Attributes:
        meaning: A sentence or two.
        advice: The same, of what can be done.
        source: The provider's page of its codes; None where the error is explained by its failure class alone.
    """

    meaning: str
    advice: str
    source: str | None = None
