"""docs/states.md shows the states and moves that the code has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

from outreach.models.campaign import PauseReason
from outreach.models.states import (
    CALL_STATUS_RANK,
    CAMPAIGN_TRANSITIONS,
    ENDED_CALL_STATUSES,
    MESSAGE_STATUS_RANK,
    OPEN_RECIPIENT_STATUSES,
    TERMINAL_CAMPAIGN_STATUSES,
    CallStatus,
    CampaignAction,
    CampaignStatus,
    DispatchState,
    MessageStatus,
    RecipientStatus,
    WorkspaceMode,
    WorkspaceStatus,
)
from outreach.policy.settlement import may_settle
from tests.documents.blocks import ROOT

PAGE = (ROOT / "docs" / "states.md").read_text(encoding="utf-8")


def table(title: str, column: str) -> list[list[str]]:
    """Return the cells of the rows of the table with this first column, in the section of this title."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = section.partition(f"| {column} |")[2].partition("\n\n")[0].splitlines()[2:]
    assert rows, (title, column)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def names(cell: str) -> list[str]:
    """Return the words in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def ranks(title: str) -> Mapping[str, int]:
    """Return the ranks in the table of a section, by the name of the status."""
    return {names(row[0])[0]: int(row[1]) for row in table(title, "Status")}


def test_every_move_of_a_campaign_is_in_the_table_and_no_other() -> None:
    """State, move and state; and which states are terminal."""
    moves = {(names(row[0])[0], names(row[1])[0]): names(row[2])[0] for row in table("Campaigns", "From")}
    assert moves == CAMPAIGN_TRANSITIONS
    terminal = set(CampaignStatus) - {before for before, move in moves if move != CampaignAction.REOPEN}
    assert terminal == TERMINAL_CAMPAIGN_STATUSES
    (sentence,) = re.findall(r"[^.]*are terminal", PAGE)
    assert set(names(sentence.rpartition(". ")[2])) == terminal


def test_every_reason_of_a_pause_is_in_the_table() -> None:
    """Those of the engine; the one by hand stands below it."""
    reasons = [name for row in table("Campaigns", "Reason") for name in names(row[0])]
    assert {*reasons, "operator"} == set(get_args(PauseReason))


def test_every_state_of_a_recipient_is_in_the_table() -> None:
    """In one order; and whether it is open."""
    rows = table("Recipients", "State")
    assert [names(row[0])[0] for row in rows] == list(RecipientStatus)
    assert {names(row[0])[0] for row in rows if row[1] == "yes"} == OPEN_RECIPIENT_STATUSES


def test_every_outcome_that_a_dispatch_may_take_is_in_the_table() -> None:
    """For each state, those that follow."""
    shown = {names(row[0])[0]: names(row[2]) for row in table("Dispatches", "State")}
    assert shown == {
        state.value: [after.value for after in DispatchState if may_settle(state, after)] for state in DispatchState
    }


def test_the_ranks_of_calls_and_messages_are_in_the_tables() -> None:
    """And which calls have ended."""
    assert ranks("Calls") == CALL_STATUS_RANK
    assert ranks("Messages") == MESSAGE_STATUS_RANK
    assert {CallStatus(name) for name in ranks("Calls")} == set(CallStatus)
    assert {MessageStatus(name) for name in ranks("Messages")} == set(MessageStatus)
    ended = {names(row[0])[0] for row in table("Calls", "Status") if row[2] == "yes"}
    assert ended == ENDED_CALL_STATUSES


def test_every_status_and_mode_of_a_workspace_is_in_the_tables() -> None:
    """In one order."""
    assert [names(row[0])[0] for row in table("Workspaces", "Status")] == list(WorkspaceStatus)
    assert [names(row[0])[0] for row in table("Workspaces", "Mode")] == list(WorkspaceMode)
