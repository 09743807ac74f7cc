"""Failed requests, with the provider's reason and its explanation."""

from __future__ import annotations

import attrs

from outreach.models.dispatch import ASSUMED_SENT, DispatchCount
from outreach.models.reports import ProviderFailure
from outreach.models.states import DispatchState
from outreach.providers.registry import explain
from outreach.rules.explanations import FAULT_WITHOUT_ANSWER
from outreach.storage.unit_of_work.tables.reports import RequestRow


def is_failure(row: RequestRow | DispatchCount) -> bool:
    """Return whether requests with one outcome count as failed."""
    failed = bool(row.reason or row.error_code) and row.reason != ASSUMED_SENT
    return failed and row.state is not DispatchState.WITHDRAWN


def leaves_acceptance_open(state: DispatchState, reason: str | None) -> bool:
    """Return whether an error response leaves open whether a request was accepted; one during a call does not."""
    return state is DispatchState.UNKNOWN and reason == "provider_error"


def explained_failure(
    provider: str, reason: str | None, code: str | None, unknown: bool, error_message: str | None
) -> ProviderFailure:
    """Return a failure with its explanation; `unknown` is that of `leaves_acceptance_open`."""
    explanation = explain(provider=provider, code=code, reason=FAULT_WITHOUT_ANSWER if unknown else reason)
    return ProviderFailure(
        provider=provider,
        reason=reason,
        error_code=code,
        error_message=error_message,
        **({} if explanation is None else attrs.asdict(explanation)),
    )
