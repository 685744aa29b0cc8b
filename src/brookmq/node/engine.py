"""The engine under a node: its own store process or a store elsewhere, as soon as the data folder can be used.

Two kinds of trouble are told apart. What only an operator can change (no program, one too old, settings refused, a port
in use, a folder that another node has) ends the start of a node. What passes (a full disk, a folder that cannot be
written, servers that do not answer) does not: clients that need no store are served meanwhile, and the engine keeps
trying, so that it is back within 5 s once the reason is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from brookmq.base.config import Config
from brookmq.base.errors import OperationError
from brookmq.ops.pipeline_view import StoreAccess
from brookmq.store.diagnosis import Diagnosis, Trouble
from brookmq.store.external import ExternalStore
from brookmq.store.folder import DataFolder, FolderFullError, FolderUnwritableError
from brookmq.store.link import LinkSettings
from brookmq.store.readers import Readers
from brookmq.store.server import StoreOptions, StoreServer
from brookmq.store.settings_file import READER_INBOX, Credentials
from brookmq.store.tls import tls_of

log = logging.getLogger("brookmq.node")

RETRY_S: Final = 1.0  # between two looks at a folder that cannot be used
RETRY_OPERATOR_S: Final = 4.0  # between two starts that need an operator, in a node that serves already


def open_folder(path: Path) -> DataFolder | None:
    """The data folder, locked. None: it cannot be used now, and the engine looks again.

    Blocks while another process still has the lock, so it is called before there is a loop to stall.
    """
    try:
        return DataFolder.open(path)
    except (FolderFullError, FolderUnwritableError) as error:
        log.warning("the node starts without its store: %s", error)
        return None


class Engine:
    """``on_change()`` is called on the loop whenever `ready`, `reason` or `addresses` may have changed.

    ``on_deleted(line)``: the node's own store says that it deletes a stream by itself.
    """

    def __init__(
        self,
        config: Config,
        folder: DataFolder | None,
        on_change: Callable[[], None],
        on_deleted: Callable[[str], None],
    ) -> None:
        self._config = config
        self._folder = folder
        self._on_change = on_change
        self._on_deleted = on_deleted
        self._store: StoreServer | ExternalStore | None = None
        self._readers: Readers | None = None  # of a store of our own
        self._trouble: Diagnosis | None = None  # why there is no store to ask
        self._starting: asyncio.Task[None] | None = None
        self._checked: asyncio.Future[None] | None = None  # done when nothing is known that needs an operator
        self._serving = False  # the node goes on whatever happens
        self._last_pid: int | None = None
        self.restarts = 0  # of the store's process

    @property
    def ready(self) -> bool:
        return self._store is not None and self._store.ready

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What is wrong; None while nothing is, and while the first start is under way."""
        if self._trouble is not None:
            return self._trouble
        return self._store.diagnosis if self._store else None

    @property
    def reason(self) -> str:
        """Why it does not serve, as a sentence; empty while it does."""
        if self._trouble is not None:
            return self._trouble.text
        return self._store.reason if self._store else "the store is starting"

    @property
    def addresses(self) -> list[str]:
        return self._store.addresses if self._store else []

    def link_settings(self, role: str) -> LinkSettings:
        """For a connection to it; known once it was ready."""
        assert self._store is not None
        user, password = self._store.credentials or (None, None)
        token = self._config.store.token.get_secret_value() or None
        return LinkSettings(self._store.addresses, role, user, password, self._store.tls, token)

    async def reader_access(self) -> StoreAccess:
        """For who reads the journal from the store; OperationError says why there is no way."""
        settings = self._config.store
        if not settings.servers:
            if self._readers is None:
                raise OperationError(self.reason)
            credentials, expires_at = await self._readers.grant()
            return StoreAccess(self.addresses, *credentials, expires_at, READER_INBOX, None)
        if not settings.reader_user:
            raise OperationError(
                "readers need a user of their own at the servers of the store: "
                "set store.reader_user and store.reader_password_file"
            )
        authority = await asyncio.to_thread(Path(settings.ca).read_text, "utf-8") if settings.ca else None
        password = settings.reader_password.get_secret_value()
        return StoreAccess(settings.servers, settings.reader_user, password, None, READER_INBOX, authority)

    @property
    def replicas(self) -> int:
        """Copies of every stream: three where there are three servers to hold them."""
        if isinstance(self._store, StoreServer):
            return self._store.replicas
        return 3 if len(self._config.store.servers) >= 3 else 1

    def begin(self) -> None:
        """Start it; `wait` says how that went."""
        loop = asyncio.get_running_loop()
        self._checked = loop.create_future()
        self._starting = loop.create_task(self._bring_up())

    async def wait(self, seconds: float) -> None:
        """Until it supervises itself, or this time is over; OperationError for what only an operator can change.

        What an operator has to change is found out first, whatever the time: it has bounds of its own.
        """
        assert self._starting is not None
        assert self._checked is not None
        await asyncio.wait([self._starting, self._checked], return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait([self._starting], timeout=max(seconds, 0.0))
        self._serving = True
        if self._starting.done():
            self._starting.result()

    async def stop(self) -> None:
        """End the store, the last process of the node; then the folder is free."""
        if self._starting is not None:
            self._starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, OperationError):
                await self._starting
        if self._readers is not None:
            await self._readers.close()
        if self._store is not None:
            await self._store.stop()
        if self._folder is not None:
            self._folder.close()

    async def _bring_up(self) -> None:
        """Until there is a store that supervises itself."""
        while True:
            try:
                if self._folder is None:
                    path = Path(self._config.node.data_dir)
                    self._folder = await asyncio.to_thread(DataFolder.open, path, 0.0)
                self._store = self._make(self._folder)
                if isinstance(self._store, StoreServer):
                    await self._store.prepare()
                self._check_done()
                await self._store.start()
            except (FolderFullError, FolderUnwritableError) as error:
                full = isinstance(error, FolderFullError)
                self._tell(Diagnosis(Trouble.DISK_FULL if full else Trouble.UNWRITABLE, str(error)))
                await asyncio.sleep(RETRY_S)
            except OperationError as error:
                if not self._serving:
                    raise
                self._tell(Diagnosis(Trouble.OTHER, str(error)))
                await asyncio.sleep(RETRY_OPERATOR_S)
            else:
                return

    def _make(self, folder: DataFolder) -> StoreServer | ExternalStore:
        settings = self._config.store
        if settings.servers:
            credentials = Credentials(settings.user, settings.password.get_secret_value()) if settings.user else None
            token = settings.token.get_secret_value() or None
            return ExternalStore(settings.servers, credentials, self._ready, self._down, tls_of(settings), token)
        options = StoreOptions(self._config.node.name, settings.binary or None, port=settings.port or None)
        store = StoreServer(folder, options, self._ready, self._down, self._on_deleted)
        self._readers = Readers(store.admit, time.time)
        return store

    def _check_done(self) -> None:
        if self._checked is not None and not self._checked.done():
            self._checked.set_result(None)

    def _tell(self, trouble: Diagnosis) -> None:
        self._check_done()
        if trouble != self._trouble:
            self._trouble = trouble
            self._on_change()

    def _ready(self) -> None:
        self._trouble = None
        if isinstance(self._store, StoreServer):
            pid = self._store.pid
            self.restarts += self._last_pid not in (None, pid)
            self._last_pid = pid
        self._on_change()

    def _down(self, _: Diagnosis) -> None:
        self._trouble = None
        self._on_change()
