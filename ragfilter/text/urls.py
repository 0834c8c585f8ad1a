"""URLs of the deployment, whose credentials are never shown. Source: docs/deployment.md#security."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

UNSHOWN = "(an address that is not shown)"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def shown(url: str) -> str:
    """Prepare `url` for messages: without user, password, query and fragment, but with the host that the query of a
    database's address names. A URL that cannot be parsed is not shown at all, since a misplaced password may be what is
    wrong with it."""
    parts = _parts(url)
    if parts is None:
        return UNSHOWN
    host = parts.netloc.rpartition("@")[2]
    named = ",".join(parse_qs(parts.query).get("host", [])) if parts.scheme.startswith("postgres") else ""
    if not re.fullmatch(r"[\w.:,/\[\]-]*", named):
        return UNSHOWN
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/") + (f"?host={named}" if named else "")


def web_address(url: str) -> SplitResult | None:
    """The parts of an http or https URL; None if it is not one."""
    parts = _parts(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return parts


def served_names(allowed: str) -> frozenset[str]:
    """The names of a server: the loopback names and the `allowed` ones, separated by commas."""
    return frozenset((*LOOPBACK, *(name.strip().strip("[]").lower() for name in allowed.split(",") if name.strip())))


def host_name(header: str) -> str | None:
    """The name in a Host header; None if there is none."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def basic_auth(parts: SplitResult) -> Mapping[str, str]:
    """The header with the user and password of a URL; empty if it has none."""
    if not parts.username and not parts.password:
        return {}
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        usable = bool(parts.scheme) and parts.port != 0
    except ValueError:
        return None
    # A slash, question mark or number sign in a password ends the host early, so the rest looks
    # like a path; an encoded @ or colon makes credentials look like a host.
    rest = parts.path + parts.query + parts.fragment
    host = (parts.hostname or "").lower()
    misplaced = ("@" in rest and parts.scheme != "sqlite") or "%40" in host or "%3a" in host
    return parts if usable and "//" in url and not misplaced else None
