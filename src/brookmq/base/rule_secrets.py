"""Secrets in documents: hidden where a person looks, and kept when a person sends back what was seen.

Secret are passwords and tokens, the password inside of an address, and parameters and headers whose names say so. A
document that comes back with ``******`` in such a place means the secret that is there already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

from brookmq.base.rule_documents import DocumentError

HIDDEN: Final = "******"
_SECRET_WORDS: Final = ("auth", "cookie", "key", "passw", "secret", "sig", "token")  # in names of headers, parameters
_SECRETS: Final = ("password", "token")
_ADDRESSES: Final = ("uri", "url")


def hidden(value: Any) -> Any:
    """Settings, or a list of actions, without secrets."""
    if isinstance(value, list):
        return [hidden(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {key: _seen(key, item) for key, item in value.items()}


def restored(value: Any, kept: Any) -> Any:
    """The same with secrets in place of ``******``: those of ``kept``, which is None where there is nothing yet."""
    known: dict[str, str] = {}
    _collect(kept, known)
    return _filled(value, kept, known, ())


def _seen(key: str, value: Any) -> Any:
    if key == "headers" and isinstance(value, Mapping):
        return {name: HIDDEN if _is_secret(name) else text for name, text in value.items()}
    if not isinstance(value, str):
        return hidden(value)
    if key in _SECRETS:
        return HIDDEN
    return _seen_address(value) if key in _ADDRESSES else value


def _seen_address(address: str) -> str:
    parts = urlsplit(address)
    if parts.password is not None:
        parts = parts._replace(netloc=_without_password(parts))
    if any(_is_secret(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        query = "&".join(f"{quote(name)}={HIDDEN if _is_secret(name) else quote(text)}" for name, text in pairs)
        parts = parts._replace(query=query)
    return parts.geturl()


def _without_password(parts: SplitResult) -> str:
    user, _, host = parts.netloc.rpartition("@")
    return f"{user.partition(':')[0]}:{HIDDEN}@{host}"


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET_WORDS)


def _collect(value: Any, known: dict[str, str]) -> None:
    """By what is seen of it: a secret. Where two look alike, only their places can tell them apart."""
    if isinstance(value, list):
        for item in value:
            _collect(item, known)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            seen = _seen(key, item)
            if key == "headers" and isinstance(item, Mapping):
                known.update({f"{name}: {HIDDEN}": text for name, text in item.items() if _is_secret(name)})
            elif isinstance(item, str) and seen != item:
                known[f"{key}: {seen}"] = item
            else:
                _collect(item, known)


def _filled(value: Any, kept: Any, known: Mapping[str, str], path: tuple[str | int, ...]) -> Any:
    if isinstance(value, list):
        old = kept if isinstance(kept, list) else []
        return [_filled(item, old[at] if at < len(old) else None, known, (*path, at)) for at, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    old_fields: Mapping[str, Any] = kept if isinstance(kept, Mapping) else {}
    in_headers = path[-1:] == ("headers",)
    found = {}
    for key, item in value.items():
        old_item = old_fields.get(key)
        if isinstance(item, str) and HIDDEN in item and _may_hide(key, item, in_headers=in_headers):
            found[key] = _secret(key, item, old_item, known, (*path, key), in_headers=in_headers)
        else:
            found[key] = _filled(item, old_item, known, (*path, key))
    return found


def _may_hide(key: str, value: str, *, in_headers: bool) -> bool:
    if in_headers:
        return _is_secret(key) and value == HIDDEN
    return key in _ADDRESSES or (key in _SECRETS and value == HIDDEN)


def _secret(
    key: str, seen: str, old: Any, known: Mapping[str, str], path: tuple[str | int, ...], *, in_headers: bool
) -> str:
    """At its own place first, then wherever the same is seen: an action may have moved."""
    looks = HIDDEN if in_headers else _seen(key, old)
    if isinstance(old, str) and looks == seen:
        return old
    found = known.get(f"{key}: {seen}")
    if found is None:
        where = ".".join(map(str, path))
        raise DocumentError(f"{where}: {HIDDEN} stands for a secret that is not kept here; write it out")
    return found
