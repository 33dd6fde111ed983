"""Which proxy leads to a host, from the environment (and the system settings of macOS and Windows)."""

import os
import sys
from ipaddress import ip_network

from llmstream_cli.errors import ConnectError
from llmstream_cli.urls import UrlParts, ip_address, is_loopback_host, redact_url, split_url

_SYSTEM_HAS_PROXY_SETTINGS = sys.platform in ("darwin", "win32")


def find_proxy(url: UrlParts) -> UrlParts | None:
    """The proxy to use for `url`, or None.

    Loopback never goes through a proxy: what a proxy calls localhost is not this machine. ConnectError if
    the variable that applies names a proxy of a kind that cannot be used.
    """
    if is_loopback_host(url.host) or not _may_have_proxy():
        return None
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    found = proxies.get(url.scheme) or proxies.get("all")
    if not found or is_excluded(proxies.get("no", ""), url.host, url.port_number):
        return None
    if _SYSTEM_HAS_PROXY_SETTINGS and proxy_bypass(url.netloc):
        return None
    return _usable(found, url)


def is_excluded(no_proxy: str, host: str, port: int) -> bool:
    """NO_PROXY covers `host`: ``*``, names and all below them, addresses, CIDR ranges; some ``:port``."""
    return any(_covers(entry.strip().lower(), host, port) for entry in no_proxy.split(","))


def _may_have_proxy() -> bool:
    # Looking here first saves importing urllib.request where nobody uses a proxy.
    return _SYSTEM_HAS_PROXY_SETTINGS or any(name.lower().endswith("_proxy") for name in os.environ)


def _covers(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    address = ip_address(host)
    if address is not None and "/" in entry:
        try:
            return address in ip_network(entry, strict=False)
        except ValueError:
            return False
    if ":" in entry and ip_address(entry.strip("[]")) is None:
        entry, _, wanted = entry.rpartition(":")
        if wanted != str(port):
            return False
    name = entry.strip("[]").lstrip("*.")
    if address is not None:
        return address == ip_address(name)
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _usable(text: str, url: UrlParts) -> UrlParts:
    try:
        proxy = split_url(text if "://" in text else f"http://{text}")
    except ValueError as error:
        raise _unusable(text, url, str(error)) from None
    if url.scheme == "https" and proxy.scheme == "https":
        raise _unusable(text, url, "TLS inside TLS is not supported: name the proxy with http://")
    return proxy


def _unusable(text: str, url: UrlParts, why: str) -> ConnectError:
    return ConnectError(
        f"the proxy {redact_url(text)} set for {url.host} cannot be used: {why}",
        url=redact_url(str(url)),
        hint=f"change {url.scheme.upper()}_PROXY or ALL_PROXY, or add {url.host} to NO_PROXY",
    )
