"""The targets of a run: opened, claimed, given a schema of ours, and left as they were found."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from loadstone.engine import SCHEMA
from loadstone.engines import engine as engine_named
from loadstone.errors import LoadstoneError
from loadstone.model import PrivateServer
from loadstone.run.preflight import refuse_loads
from loadstone.run.server import Server
from loadstone.scenario.private_server import common_private_server
from loadstone.target import open_target
from loadstone.watch.watchers import Watchers, watchers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.model import Plan
    from loadstone.private_server import EmbeddedServer
    from loadstone.private_server.adoption import Adoption
    from loadstone.results.folder import RunFolder
    from loadstone.run.request import Listener, Request
    from loadstone.run.resume import ResumeState
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget, Target

_NO_PASSWORDS = (
    "The run folder contains no passwords: set the password in PGPASSWORD or ~/.pgpass, or repeat the "
    "target with its password next to --resume."
)


def private_server_of(plan: Plan, targets: Sequence[Target]) -> PrivateServer:
    """Return what the scenarios wish of a private server, where there is one."""
    if not any(target.embedded is not None for target in targets):
        return PrivateServer()
    return common_private_server({scenario.id: scenario.private_server for scenario in plan.scenarios})


def _lacks_password(target: Target) -> bool:
    reached = target.connection or (target.place.server if target.place is not None else None)
    return reached is not None and reached.password is None


class Opener:
    """Opens the targets; what it opens ends with the stack that it is given."""

    def __init__(
        self,
        request: Request,
        listener: Listener,
        folder: RunFolder,
        signals: Signals,
        left: ResumeState | None,
    ) -> None:
        """Open nothing yet; `left` is what the run that goes on has left."""
        self.watchers = Watchers(())
        self.request = request
        self.listener = listener
        self.folder = folder
        self.signals = signals
        self.left = left
        self.farewells: list[str] = []
        """How to reach the private servers that were asked to stay."""
        self._private: list[EmbeddedServer] = []

    def open(self, stack: contextlib.ExitStack, targets: Sequence[Target], plan: Plan) -> list[Server]:
        """Open all targets, or none; raises LoadstoneError."""
        self._watch(stack, targets)
        stack.callback(self._end_private_servers)
        clients = max((p.workload.clients for t in plan.targets for p in t.phases), default=1) or 1
        adopted = self._adopt(targets)  # before any is opened: that removes what killed runs have left
        # All targets are looked at before any of them is touched.
        demands = private_server_of(plan, targets)
        opened = [
            self._open_one(stack, target, clients, demands, adopted.get(target.id)) for target in targets
        ]
        servers = []
        for target in opened:
            for note in target.notes:
                self.folder.event("info", "note", note, target=target.id)
            server = Server(target, self.folder, self.watchers.of(target.id))
            stack.callback(server.close)
            server.claim()
            servers.append(server)
        for server, planned in zip(servers, plan.targets, strict=True):
            server.engine.refuse_read_only(server.control)
            refuse_loads(planned, server)
        for server in servers:
            has_data = self.left is not None or self.request.provision.copy_of is not None
            server.kept = has_data and server.engine.has_workspace(server.control, SCHEMA)
            if not server.kept:
                server.engine.create_workspace(server.control, SCHEMA, replace=self.request.replace)
            stack.callback(self._clean_up, server)
            server.claim()  # the schema that there is now bears the run's mark
        return servers

    def _watch(self, stack: contextlib.ExitStack, targets: Sequence[Target]) -> None:
        """Try what watches the servers' machines; before any server is touched."""
        request = self.request
        if not request.watch.urls:
            return
        names = {target.id: engine_named(target.engine).process_names for target in targets}
        self.watchers = watchers_of(request.watch, request.targets, targets, names, os.environ)
        stack.callback(self.watchers.close)
        self.watchers.check(self.listener.said)

    def _adopt(self, targets: Sequence[Target]) -> dict[str, Adoption]:
        """Take over what the run that goes on has left of private servers."""
        if self.left is None:
            return {}
        found = {}
        for target in targets:
            try:
                adoption = self.left.adopted(target)
            except LoadstoneError as error:
                words = f"the private server is created again: {error.message}"
                self.folder.event("info", "note", words, target=target.id)
            else:
                if adoption is not None:
                    found[target.id] = adoption
        return found

    def _open_one(
        self,
        stack: contextlib.ExitStack,
        target: Target,
        clients: int,
        demands: PrivateServer,
        adoption: Adoption | None,
    ) -> OpenTarget:
        self.listener.said(f"opening {target.id} …")
        request = self.request
        opening = open_target(
            target,
            clients,
            storage=request.storage,
            settings=request.settings,
            keep=request.keep,
            demands=demands,
            adopt=adoption,
            provision=request.provision,
        )
        try:
            opened = stack.enter_context(self.signals.closing(opening))
        except LoadstoneError as error:
            # Such as a password file that was ignored: it may well be the reason.
            notes = (*target.notes, *([_NO_PASSWORDS] if request.resume and _lacks_password(target) else ()))
            error.hint = "\n  ".join([error.hint, *notes])
            raise
        if self.request.keep:
            stack.callback(self._say_farewell, opened)
        elif opened.server is not None:
            self._private.append(opened.server)
        return opened

    def _end_private_servers(self) -> None:
        """End again what a second signal may have kept from ending; does nothing where all went well."""
        for server in self._private:
            server.close()

    def _say_farewell(self, opened: OpenTarget) -> None:
        words = opened.farewell()
        if words is not None:
            self.farewells.append(words)

    def _clean_up(self, server: Server) -> None:
        """Drop what we made on somebody else's server, however the run ended; tell of trouble, raise none."""
        # What is thrown away with its server, or kept on request, needs no dropping.
        if server.opened.private or self.request.keep:
            return
        trouble = "a second signal came" if self.signals.impatient else server.drop_workspace()
        if trouble is None:
            return
        message = f"the schema {SCHEMA} could not be dropped: {trouble}"
        with contextlib.suppress(LoadstoneError):
            self.folder.event(
                "warning", "warning", message, hint="The next run drops it first.", target=server.id
            )
        self.listener.said(f"{server.id}: {message}")
