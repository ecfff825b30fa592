"""Addresses that mean this machine alone."""

from __future__ import annotations

import ipaddress


def is_local(host: str) -> bool:
    """Return whether an address, a name or the folder of a socket leads to this machine from any machine."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
