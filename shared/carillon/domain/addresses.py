"""The addresses that a webhook may reach. Pure."""

import re
import socket
from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_OF_TWO_RULES = re.compile("[ßς\u200c\u200d]")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_SPECIAL = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by carriers
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: the registry leaves open whether it is public
        "3fff::/20",  # documentation
    )
)
"""The IANA IPv4 and IPv6 Special-Purpose Address Registries as of 2026-11 and multicast, as far as
they lie in what may be public at all. A table of our own: that of `ipaddress` is the interpreter's,
and Pythons differ. The few anycast services in these blocks are left out with them."""


def parse_address(text: str) -> Address:
    """The address that a lookup answered; raises ValueError for anything else."""
    return ip_address(text)


def literal_address(host: str) -> Address | None:
    """The address that the host of a URL is, None for a name.

    Resolvers also take numbers in the notations of C: `2130706433`, `0x7f.1`, `0177.0.0.1`.
    """
    try:
        return ip_address(host)
    except ValueError:
        pass
    if not re.fullmatch(r"[0-9a-fx.]+", host, re.ASCII | re.IGNORECASE):
        return None
    try:
        return IPv4Address(socket.inet_aton(host.removesuffix(".")))
    except OSError:
        return None


def ascii_host(name: str) -> str:
    """The host of a URL as a lookup takes it; raises UnicodeError.

    Python's codec goes by the rules of 2003, by which a few characters are others, or none:
    `faß.de` would be `fass.de`, which is somebody else's today.
    """
    if _OF_TWO_RULES.search(name):
        raise UnicodeError("the rules for it have changed: it must be written as xn--…")
    return name.encode("idna").decode()


def reachable_address(address: Address) -> Address:
    """The address that a connection really goes to: IPv4-mapped IPv6 is IPv4."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def lies_in(address: Address, networks: Sequence[Network]) -> bool:
    real = reachable_address(address)
    return any(real.version == network.version and real in network for network in networks)


def is_public(address: Address) -> bool:
    """True if it is a unicast address of the public internet.

    Not so are private, shared, loopback, link-local (with the metadata services), unique local,
    multicast, reserved and documentation addresses, 6to4 and Teredo, nor IPv6 addresses that stand
    for such an IPv4 address: mapped, NAT64.
    """
    real = reachable_address(address)
    if lies_in(real, _SPECIAL):
        return False
    if isinstance(real, IPv4Address):
        return True
    if real not in _GLOBAL_UNICAST and real not in _NAT64:
        return False
    return all(is_public(inner) for inner in _embedded(real))


def _embedded(address: IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses that a packet to this address may be carried on to."""
    return [IPv4Address(int(address) & 0xFFFFFFFF)] if address in _NAT64 else []
