from __future__ import annotations

import attrs
import pytest

from outreach_server.listening.connection_limiter import ConnectionLimiter, address_of
from outreach_server.listening.descriptors import KEPT_BACK, MAX_CONNECTIONS, connections_for


@attrs.define(eq=False)
class LimitedConnection:
    """Somebody who notes that he was sent away."""

    gone: bool = False

    def leave(self) -> None:
        """Go."""
        assert not self.gone
        self.gone = True


def fill(room: ConnectionLimiter, count: int, address: str) -> list[LimitedConnection]:
    """Let so many in who all wait."""
    guests = [LimitedConnection() for _ in range(count)]
    for guest in guests:
        assert room.admit(address)
        room.enter(guest, address)
    return guests


def test_who_has_waited_longest_goes_where_there_is_no_place() -> None:
    """A half-sent request keeps nobody out; who was answered last waits for the shortest time."""
    room = ConnectionLimiter(4, share=4)
    first, second, third, fourth = fill(room, 4, "a")
    room.serve(first)
    room.wait(first)
    assert room.admit("b")
    assert [guest.gone for guest in (first, second, third, fourth)] == [False, True, False, False]
    assert len(room) == 3


def test_who_is_being_served_stays() -> None:
    """Where all are, there is no place; the next one who waits makes one."""
    room = ConnectionLimiter(2, share=2)
    guests = fill(room, 2, "a")
    for guest in guests:
        room.serve(guest)
    assert not room.admit("b")
    room.wait(guests[1])
    assert room.admit("b")
    assert [guest.gone for guest in guests] == [False, True]


def test_one_address_takes_its_share_from_itself_alone() -> None:
    """However many connections one client makes, those of others stay."""
    room = ConnectionLimiter(6)
    others = fill(room, 3, "b")
    mine = fill(room, 10, "a")
    assert not any(guest.gone for guest in others)
    assert [guest.gone for guest in mine] == [True] * 7 + [False] * 3
    for guest in mine[7:]:
        room.serve(guest)
    assert not room.admit("a")
    assert not any(guest.gone for guest in others)


def test_a_connection_that_has_left_is_forgotten() -> None:
    """A second exit changes nothing, nor does any later call for a connection that has left."""
    room = ConnectionLimiter(2)
    (guest,) = fill(room, 1, "a")
    for _ in range(2):
        room.exit(guest)
    room.wait(guest)
    room.serve(guest)
    assert len(room) == 0
    fill(room, 1, "a")
    assert len(room) == 1


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        (("192.0.2.7", 4000), "192.0.2.7"),
        (("::ffff:192.0.2.7", 4000, 0, 0), "192.0.2.7"),
        (("2001:db8:1:2:3::4", 4000, 0, 0), "2001:db8:1:2::"),
        (("2001:db8:1:2:aaaa::9", 4000, 0, 0), "2001:db8:1:2::"),
        (("fe80::1%eth0", 4000, 0, 2), "fe80::"),
        ("", ""),
        ((), ""),
        (None, ""),
    ],
)
def test_a_network_of_one_customer_is_one_address(peer: object, address: str) -> None:
    """One customer with IPv6 has 2^64 addresses."""
    assert address_of(peer) == address


@pytest.mark.parametrize(
    ("descriptors", "connections"),
    [(64, 32), (256, 128), (1000, 500), (1200, 1200 - KEPT_BACK), (100_000, MAX_CONNECTIONS)],
)
def test_descriptors_are_kept_back(descriptors: int, connections: int) -> None:
    """The engine has its own, whatever clients do."""
    assert connections_for(descriptors) == connections
