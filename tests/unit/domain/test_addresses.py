"""Which addresses count as the public internet."""

from ipaddress import ip_network

import pytest

from carillon.domain.addresses import is_public, lies_in, parse_address


@pytest.mark.parametrize(
    "text",
    [
        "8.8.8.8",
        "52.94.236.248",
        "2606:4700:4700::1111",
        "::ffff:8.8.8.8",  # IPv4-mapped
        "64:ff9b::808:808",  # 8.8.8.8 by NAT64
    ],
)
def test_public_addresses(text: str) -> None:
    assert is_public(parse_address(text))


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",  # shared by carriers
        "169.254.169.254",  # instance metadata
        "169.254.170.2",  # container credentials
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "203.0.113.9",
        "224.0.0.251",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",  # 127.0.0.1, IPv4-compatible
        "::808:808",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:10.0.0.1",
        "::ffff:224.0.0.1",
        "64:ff9b::7f00:1",  # 127.0.0.1 by NAT64
        "64:ff9b::a9fe:a9fe",  # metadata by NAT64
        "64:ff9b:1::808:808",  # NAT64 of a local network
        "2002:808:808::1",  # 8.8.8.8 by 6to4
        "2002:7f00:1::",  # 127.0.0.1 by 6to4
        "2002:a00:1::1",  # 10.0.0.1 by 6to4
        "2001:0:808:808:0:0:80ff:fffe",  # 127.0.0.1 by Teredo
        "100::1",
        "2001:db8::1",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",  # instance metadata
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_addresses_that_are_not_public(text: str) -> None:
    assert not is_public(parse_address(text))


def test_an_allowed_network_covers_the_mapped_form_of_its_addresses() -> None:
    networks = [ip_network("127.0.0.0/8"), ip_network("fd00::/8")]
    assert lies_in(parse_address("127.0.0.1"), networks)
    assert lies_in(parse_address("::ffff:127.0.0.1"), networks)
    assert lies_in(parse_address("fd00::1"), networks)
    assert not lies_in(parse_address("10.0.0.1"), networks)
    assert not lies_in(parse_address("2002:7f00:1::"), networks)


@pytest.mark.parametrize("text", ["0177.0.0.1", "2130706433", "127.1", "localhost", ""])
def test_odd_notations_are_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        parse_address(text)
