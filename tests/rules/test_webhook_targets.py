"""Where webhooks may be sent."""

from __future__ import annotations

import pytest

from outreach.rules.webhook_targets import Allowed, TargetRefused, check_addresses, check_url

NONE = Allowed()

SPECIAL = [
    "0.0.0.0",  # noqa: S104 - an address among others
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.254",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.0.170",
    "192.0.0.192",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "192.175.48.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2620:4f:8000::1",
    "3fff::1",
    "3fff:fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]

PUBLIC = ["8.8.8.8", "93.184.216.34", "100.63.255.255", "172.32.0.1", "192.0.1.1", "2606:4700::1111", "2a00:1450::1"]


def test_the_list_of_special_addresses_is_long_enough() -> None:
    """The list of special addresses is long enough."""
    assert len(set(SPECIAL)) >= 60


@pytest.mark.parametrize("address", SPECIAL)
def test_a_special_address_is_refused_in_the_url_and_by_name(address: str) -> None:
    """A special address is refused in the url and by name."""
    with pytest.raises(TargetRefused):
        check_url(f"https://[{address}]/hooks" if ":" in address else f"https://{address}/hooks", NONE)
    with pytest.raises(TargetRefused) as refused:
        check_addresses(["8.8.8.8", address], "hooks.example.com", NONE)
    assert address not in refused.value.message.split()


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    """A public address is allowed."""
    check_url(f"https://[{address}]/hooks" if ":" in address else f"https://{address}/hooks", NONE)
    assert [str(one) for one in check_addresses([address], "hooks.example.com", NONE)] == [address]


def test_a_mapped_public_address_is_connected_to_as_ipv4() -> None:
    """A mapped public address is connected to as ipv4."""
    assert [str(one) for one in check_addresses(["::ffff:8.8.8.8"], "hooks.example.com", NONE)] == ["8.8.8.8"]


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "localhost",
        "LocalHost.",
        "a.localhost",
    ],
)
def test_other_spellings_of_this_machine_are_refused(host: str) -> None:
    """Other spellings of this machine are refused."""
    with pytest.raises(TargetRefused):
        check_url(f"https://{host}/hooks", NONE)


@pytest.mark.parametrize("found", [[], ["no address"], ["8.8.8.8", "fe80::1%eth0"], ["8.8.8.8", "no address"]])
def test_what_is_no_public_address_is_refused(found: list[str]) -> None:
    """What is no public address is refused."""
    with pytest.raises(TargetRefused):
        check_addresses(found, "hooks.example.com", NONE)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "ftp://example.com/",
        "//example.com/",
        "https:///hooks",
        "https://",
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://@example.com/",
        "https://example.com:80/",
        "https://example.com:22/",
        "https://example.com:1023/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:x/",
        "https://example.com/#part",
        "https://example.com/a b",
        "https://example.com/\n",
        "https://example.com\\@10.0.0.1/",
        "https://exämple.com/",
        "https://[::1/",
        "https://example.com/" + "a" * 2000,
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    """Other urls are refused."""
    with pytest.raises(TargetRefused):
        check_url(url, NONE)


@pytest.mark.parametrize(
    "url",
    ["https://example.com", "https://example.com:443/a?b=c", "https://example.com:1024/", "https://example.com:8443/"],
)
def test_https_to_public_hosts_is_allowed(url: str) -> None:
    """Https to public hosts is allowed."""
    check_url(url, NONE)


def test_the_operator_allows_networks_and_names() -> None:
    """The operator allows networks and names."""
    allowed = Allowed.from_settings("10.2.0.0/16, Mattermost.internal,fd12::/16", http=False)

    check_url("https://10.2.3.4/hooks", allowed)
    check_addresses(["10.2.3.4", "fd12::1"], "hooks.example.com", allowed)
    check_addresses(["192.168.1.1"], "mattermost.INTERNAL", allowed)
    for address, host in (("10.3.0.1", "hooks.example.com"), ("192.168.1.1", "internal")):
        with pytest.raises(TargetRefused):
            check_addresses([address], host, allowed)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "::a9fe:a9fe",
        "fd00:ec2::254",
    ],
)
def test_no_setting_opens_a_metadata_service(address: str) -> None:
    """No setting opens a metadata service."""
    allowed = Allowed.from_settings("0.0.0.0/0,::/0,metadata.internal", http=True)

    with pytest.raises(TargetRefused):
        check_addresses([address], "metadata.internal", allowed)
    with pytest.raises(TargetRefused):
        check_url(f"http://[{address}]/" if ":" in address else f"http://{address}/", allowed)


def test_http_is_allowed_by_a_setting() -> None:
    """Http is allowed by a setting."""
    allowed = Allowed.from_settings("127.0.0.0/8,localhost", http=True)

    check_url("http://127.0.0.1:8080/", allowed)
    check_url("http://localhost/", allowed)
    check_url("http://example.com:80/", allowed)
