"""The way to the node: one request, its answer, and for everything that can go wrong a sentence on what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

if TYPE_CHECKING:
    import httpx

URL_DEFAULT = "http://127.0.0.1:18083"
ANSWER_WAIT_S = 10.0
SLOW_ANSWER_WAIT_S = 150.0  # where Spark may have to start first
STREAM_WAIT_S = 60.0  # for the next piece of something long, and for the node to take one
PAGE_ROWS = 1000

EXIT_REFUSED = 1
EXIT_NO_ANSWER = 3


class NodeRefused(click.ClickException):
    """The node answered, and the answer is no. ``code`` and ``details`` are what it says to programs."""

    exit_code = EXIT_REFUSED

    def __init__(self, message: str, code: str = "", details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = details or {}


class NoAnswer(click.ClickException):
    """Nobody answered, or somebody else did."""

    exit_code = EXIT_NO_ANSWER


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


class Node:
    """A node by the URL of its HTTP API."""

    def __init__(self, url: str) -> None:
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")

    def get(self, path: str, **query: Any) -> Any:
        return self.request("GET", path, query={name: value for name, value in query.items() if value is not None})

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        wait_s: float = ANSWER_WAIT_S,
    ) -> Any:
        """The decoded answer of a request under ``/api/v1``; ``None`` where there is nothing to say."""
        status, answer = self._exchange(method, f"/api/v1{path}", query, body, wait_s)
        if status >= HTTPStatus.BAD_REQUEST:
            raise NodeRefused(f"the node says: {answer['message']}", answer.get("code", ""), answer.get("details"))
        return answer

    def ready(self) -> tuple[bool, str]:
        """Whether the node can serve clients, and if not, why."""
        status, answer = self._exchange("GET", "/readyz", None, None, ANSWER_WAIT_S)
        return status == HTTPStatus.OK, answer.get("message", "")

    def listing(self, path: str, limit: int | None, **query: Any) -> Iterator[Any]:
        """The rows of a listing, read page by page as they are asked for.

        ``limit`` is how many the caller will show: so many and one more, which says that there are more, are the first
        page. It does not end the iteration.
        """
        rows = PAGE_ROWS if limit is None else min(limit + 1, PAGE_ROWS)
        after = None
        while True:
            page = self.get(path, after=after, limit=rows, **query)
            yield from page["items"]
            after = page["next"]
            if after is None:
                return

    def stream(self, path: str, **query: Any) -> Iterator[bytes]:
        """The bytes of an answer that may be long, as they come; each piece has to come in time."""
        import httpx

        with (
            self._explained(long=True),
            httpx.stream(
                "GET", f"{self.url}/api/v1{path}", params=query, timeout=STREAM_WAIT_S, trust_env=False
            ) as response,
        ):
            if response.status_code >= HTTPStatus.BAD_REQUEST:
                response.read()
                raise NodeRefused(f"the node says: {self._answer(response)['message']}")
            yield from response.iter_raw()

    def send(self, path: str, pieces: Iterable[bytes], **query: Any) -> Any:
        """The decoded answer to a body that may be long."""
        import httpx

        with self._explained(long=True):
            response = httpx.put(
                f"{self.url}/api/v1{path}", content=pieces, params=query, timeout=STREAM_WAIT_S, trust_env=False
            )
            answer = self._answer(response)
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            raise NodeRefused(f"the node says: {answer['message']}")
        return answer

    def _exchange(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: object, wait_s: float
    ) -> tuple[int, Any]:
        import httpx

        with self._explained(wait_s):
            response = httpx.request(method, self.url + path, params=query, json=body, timeout=wait_s, trust_env=False)
            return response.status_code, self._answer(response)

    def _answer(self, response: httpx.Response) -> Any:
        answer = response.json() if response.content else None
        if response.status_code >= HTTPStatus.BAD_REQUEST and not (isinstance(answer, dict) and "message" in answer):
            raise self._not_ours()
        return answer

    @contextmanager
    def _explained(self, wait_s: float = STREAM_WAIT_S, *, long: bool = False) -> Iterator[None]:
        """Everything that can go wrong on the way, as a sentence. What breaks off a ``long`` exchange is the node's
        end; where a short one breaks off, nobody spoke HTTP."""
        import httpx

        try:
            yield
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise click.BadParameter(f"{self.url!r} is not a URL such as {URL_DEFAULT}", param_hint="--url") from None
        except httpx.ConnectError:
            raise NoAnswer(
                f"no node answers at {self.url}.\n"
                "Start one with `brookmq start`, or name another with --url or BROOKMQ_URL: its HTTP address stands in "
                "its ready line."
            ) from None
        except httpx.TimeoutException:
            raise NoAnswer(
                f"{self.url} did not answer within {wait_s:.0f} s. Is the node overloaded? Its log may tell."
            ) from None
        except (httpx.HTTPError, ValueError) as error:
            if long and isinstance(error, httpx.TransportError):
                raise NoAnswer(f"the connection to {self.url} was lost ({error}). Is the node still up?") from None
            raise self._not_ours() from None

    def _not_ours(self) -> NoAnswer:
        return NoAnswer(
            f"{self.url} answers, but not as BrookMQ's HTTP API does.\n"
            "Give the address after `http=` in the node's ready line, not that of an MQTT listener."
        )
