"""Where a contact is, and what tells it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from importlib import resources

import pytest

from outreach.core.clock import is_zone
from outreach.errors import InvalidRequest
from outreach.models.campaign import Recipient
from outreach.models.settings import DAYS, PlaceHours, TimeWindow
from outreach.models.workspace import NewWorkspace, WorkspaceUpdate
from outreach.rules.contact_hours import hours_key, hours_of_place, next_common_open
from outreach.rules.contact_places import place_of, us_place_of
from outreach.rules.deciding import LocalRules, contact_rules_key
from outreach.rules.us_places import as_address, read_us_place, state_of_area, us_place
from outreach.testing.builders import make_recipient, make_workspace

NEW_YORK, MIAMI, TOLL_FREE, LONDON = "+12125552368", "+13055550100", "+18002345678", "+442079460000"
EVENING = TimeWindow(start_minute=8 * 60, end_minute=20 * 60)
FLORIDA = PlaceHours(place="US-FL", schedule=dict.fromkeys(DAYS, (EVENING,)), source="Fla. Stat. 501.616(6)(a)")


def contact(phone: str, *, time_zone: str | None = None, place: str | None = None) -> Recipient:
    """Return a recipient with this number."""
    return make_recipient(phone_number=phone, phone=phone, time_zone=time_zone, us_place=place)


@pytest.mark.parametrize(
    ("time_zone", "place", "zones", "source"),
    [
        ("America/Denver", "331", ("America/Denver",), "own"),
        (None, "331", ("America/New_York",), "zip"),
        (None, "324", ("America/Chicago", "America/New_York"), "zip"),
        (None, "ID", ("America/Denver", "America/Los_Angeles"), "state"),
        (None, None, ("America/New_York",), "number"),
        (None, "ZZ", ("America/New_York",), "number"),
        ("Mars/Olympus", None, (), "own"),
    ],
)
def test_the_zone_of_a_contact_comes_from_the_first_that_is_known(
    time_zone: str | None, place: str | None, zones: tuple[str, ...], source: str
) -> None:
    """Its own zone, its ZIP code, its state, its number; a place with two zones has both."""
    found = place_of(contact(NEW_YORK, time_zone=time_zone, place=place))
    assert (found.zones, found.source) == (zones, source)


@pytest.mark.parametrize(
    ("phone", "place", "regions"),
    [
        (MIAMI, None, ("US", "US-FL")),
        (MIAMI, "100", ("US", "US-NY")),
        (MIAMI, "063", ("US", "US-CT", "US-NY")),
        (TOLL_FREE, None, ("US",)),
        (LONDON, None, ("GB",)),
        ("+14165550100", "NY", ("CA", "US", "US-NY")),
        ("+17875550100", None, ("PR", "US", "US-PR")),
        ("", None, ()),
    ],
)
def test_the_regions_of_a_contact_are_all_in_which_it_may_be(
    phone: str, place: str | None, regions: tuple[str, ...]
) -> None:
    """Its country, and the states of its ZIP code, or else of its area code; whatever tells the zone."""
    for zone in (None, "Europe/Paris"):
        assert place_of(contact(phone, time_zone=zone, place=place)).regions == regions


@pytest.mark.parametrize(
    ("zip_code", "state", "place"),
    [
        ("33101", None, "331"),
        ("33101-1234", "NY", "331"),
        (" 2134 ", None, "021"),
        ("601", None, "006"),
        ("331011234", None, "331"),
        ("21341234", None, "021"),
        ("33101.0", None, "331"),
        ("00000", "Florida", "FL"),
        ("K1A 0B1", "fl", "FL"),
        (None, "N.Y.", "NY"),
        (None, "north carolina", "NC"),
        (None, "Bavaria", None),
        ("", "", None),
        ("09012", None, None),
        ("\u0663\u0663\u0661\u0660\u0661", None, None),
    ],
)
def test_zip_codes_and_states_are_read_as_people_write_them(
    zip_code: str | None, state: str | None, place: str | None
) -> None:
    """A ZIP code wins over a state; what is neither says nothing. Spreadsheets remove zeros."""
    assert read_us_place(zip_code, state) == place
    assert place is None or read_us_place(**as_address(place)) == place


def test_only_numbers_that_may_be_american_have_a_place_there() -> None:
    """Many countries have postal codes with five digits."""
    assert us_place_of(NEW_YORK, "33101", None) == us_place_of("+14165550100", "33101", None) == "331"
    assert us_place_of("+525512345678", "33101", "FL") is us_place_of(None, "33101", None) is None


def test_every_line_of_the_table_is_whole() -> None:
    """Each zone exists, each prefix and area code stands there once, and each state has a name, a zone and a number."""
    text = resources.files("outreach.rules").joinpath("us_places.txt").read_text("utf-8")
    lines = [line.split(" ") for line in text.splitlines() if not line.startswith("#")]
    names = [line[1] for line in lines if line[0] == "name"]
    prefixes = [prefix for line in lines if line[0] == "zip" for prefix in line[3:]]
    areas = [area for line in lines if line[0] == "area" for area in line[2:]]
    assert len({*names}) == len(names) == 59
    assert len({*prefixes}) == len(prefixes) > 900
    assert len({*areas}) == len(areas) > 350
    assert all(re.fullmatch("[0-9]{3}", one) for one in (*prefixes, *areas))
    for name in names:
        known = us_place(name)
        assert known is not None, name
        assert known.zones, name
    assert all(is_zone(zone) for line in lines if line[0] == "zip" for zone in line[2].split("&"))
    assert {line[1] for line in lines if line[0] == "area"} == {*names} - {"FM", "MH", "PW"}
    assert state_of_area("800") is None


def test_narrower_hours_hold_where_the_contact_may_be() -> None:
    """The hours of a state narrow those of 8 to 21 for its contacts alone."""
    local = LocalRules(make_workspace(contact_hours=True, narrower_hours=(FLORIDA,)))
    half_past_eight = datetime(2026, 7, 2, 0, 30, tzinfo=UTC)
    for phone, opening in ((MIAMI, datetime(2026, 7, 2, 12, tzinfo=UTC)), (NEW_YORK, half_past_eight)):
        place = place_of(contact(phone))
        assert next_common_open(place.zones, local.of(place.regions).hours, half_past_eight) == opening
    assert hours_of_place(FLORIDA) is hours_of_place(FLORIDA)
    assert not LocalRules(make_workspace(narrower_hours=(FLORIDA,))).apply


def test_changed_windows_change_the_rules_that_contacts_wait_under() -> None:
    """The same places with other hours are other rules; without narrower hours the text is that of earlier versions."""
    other = PlaceHours(place="US-FL", schedule={"monday": (EVENING,)}, source=FLORIDA.source)
    assert hours_key([FLORIDA]) != hours_key([other])
    assert contact_rules_key(make_workspace()) == "contact_hours=False frequency_cap=None"
    assert " narrower_hours=US-FL:" in contact_rules_key(make_workspace(narrower_hours=(FLORIDA,)))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"place": "Florida"}, "place"),
        ({"place": "CA-ON"}, "place"),
        ({"schedule": {}}, "schedule"),
        ({"schedule": {"monday": ()}}, "schedule"),
        ({"schedule": {"monday": (TimeWindow(start_minute=0, end_minute=1260),)}}, "schedule.monday"),
        ({"schedule": {"monday": (TimeWindow(start_minute=480, end_minute=1261),)}}, "schedule.monday"),
        ({"schedule": {"monday": (TimeWindow(start_minute=1200, end_minute=480),)}}, "schedule.monday"),
        ({"source": ""}, "source"),
    ],
)
def test_hours_of_a_place_are_narrower_and_have_a_source(changes: dict[str, object], path: str) -> None:
    """Nothing widens 8 to 21."""
    given: dict[str, object] = {"place": "US-FL", "schedule": {"monday": (EVENING,)}, "source": "A law"}
    with pytest.raises(InvalidRequest) as refused:
        PlaceHours(**given | changes)  # type: ignore[arg-type]
    assert [detail.path for detail in refused.value.details] == [path]


@pytest.mark.parametrize("model", [WorkspaceUpdate, lambda **given: NewWorkspace(name="A", **given)])
def test_each_place_has_its_hours_once(model: type[WorkspaceUpdate]) -> None:
    """Two sets of hours for one place would leave open which one is meant."""
    with pytest.raises(InvalidRequest) as refused:
        model(narrower_hours=[FLORIDA, FLORIDA])
    assert [detail.path for detail in refused.value.details] == ["narrower_hours[1].place"]
