"""A server that is well: a database, an account, a certificate, a public address. Tests break one thing of it."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import httpx

from outreach import (
    Campaign,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    Outreach,
    SimulatorConfig,
    WorkspaceMode,
)
from outreach.core.clock import SystemClock
from outreach.insight.diagnosis import environment
from outreach.models import Diagnosis
from outreach.models.work import Lease, WorkerLease
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach_server.cli.doctor.examination import examine
from outreach_server.config import ServerConfig
from outreach_server.contract import contract_bytes
from tests.doctor.provider import NUMBER, StandIn
from tests.documents.provider import CREDENTIALS
from tests.listening.certificates import write_pair

T = TypeVar("T")

HOST: Final = "outreach.example.com"
PUBLIC_URL: Final = f"https://{HOST}"
KEPT_INSIDE: Final = ("/healthz", "/readyz")
DAY: Final = timedelta(days=1)


@attrs.define(kw_only=True)
class System:
    """A system of which a test may break something.

    Attributes:
        directory: Where its files are.
        provider: Its carrier.
        settings: Its configuration.
        answer: What answers at the public address.
        addresses: What the public host resolves to; empty for an unknown host.
        closing: Called at the end of the test.
    """

    directory: Path
    provider: StandIn
    settings: dict[str, Any]
    answer: httpx.Response = attrs.field(factory=lambda: httpx.Response(200, content=contract_bytes()))
    addresses: Sequence[str] = ("93.184.215.14",)
    closing: list[Callable[[], object]] = attrs.field(factory=list)
    workspace_id: str = ""
    account_id: str = ""

    @property
    def database(self) -> Path:
        """The database's file."""
        return self.directory / "outreach.db"

    @property
    def certificate(self) -> tuple[Path, Path]:
        """The files of its certificate and key."""
        return self.directory / "certificate.pem", self.directory / "key.pem"

    @property
    def config(self) -> ServerConfig:
        """Its configuration."""
        return ServerConfig(**self.settings)

    async def diagnose(self, *, network: bool = True) -> Diagnosis:
        """Let the doctor look."""
        return await examine(
            self.config,
            SimulatorConfig(),
            config_file=self.directory / "outreach.toml",
            network=network,
            transport=httpx.MockTransport(self.proxied),
        )

    def proxied(self, request: httpx.Request) -> httpx.Response:
        """Answer as behind the proxies of examples/hosting."""
        return httpx.Response(404) if request.url.path in KEPT_INSIDE else self.answer

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of the public host."""
        if not self.addresses:
            raise OSError(f"no such host: {host}")
        return self.addresses

    async def within(self, work: Callable[[Outreach], Awaitable[T]]) -> T:
        """Do something with an engine on the database."""
        async with Outreach.open(f"sqlite:///{self.database}", config=self.config) as engine:
            return await work(engine)

    async def write(self, operation: Callable[[Transaction], object]) -> None:
        """Write to the database what only an engine that sends would."""
        async with SqliteStorage(self.database, clock=SystemClock()) as storage:
            await storage.write(operation)

    async def campaign(self, **changes: Any) -> Campaign:
        """Make a campaign that waits for next week, and change its row."""
        start = datetime.now(UTC) + 7 * DAY

        async def make(engine: Outreach) -> Campaign:
            new = NewSmsCampaign(
                name="Spring",
                body="Hi",
                carrier="twilio",
                from_number=NUMBER,
                schedule_type="scheduled",
                scheduled_start_at=start,
            )
            people = [NewRecipient(phone_number="+14155550101")]
            made = (await engine.campaigns.create_sms(self.workspace_id, new, people)).campaign
            return await engine.campaigns.start(self.workspace_id, made.id)

        started = await self.within(make)
        if changes:
            await self.write(lambda tx: tx.campaigns.update(attrs.evolve(started, **changes)))
        return started


async def healthy(directory: Path, provider: StandIn) -> System:
    """Make a system without a fault."""
    directory.chmod(0o700)
    system = System(directory=directory, provider=provider, settings={})
    certificate, key = system.certificate
    write_pair(certificate, key, name=HOST, host=HOST, since=-DAY, until=60 * DAY)
    key.chmod(0o600)
    file = directory / "outreach.toml"
    file.write_text("", encoding="utf-8")
    file.chmod(0o600)
    system.settings = settings_of(system)

    async def set_up(engine: Outreach) -> None:
        workspace = await engine.workspaces.create(
            NewWorkspace(name="Clinic", mode=WorkspaceMode.LIVE, default_region="US")
        )
        await engine.numbers.create(workspace.id, NewNumber(phone=NUMBER, carrier="twilio"))
        account = await engine.accounts.connect(
            workspace.id, "twilio", {**CREDENTIALS["twilio"], "api_base": provider.url}
        )
        system.workspace_id, system.account_id = workspace.id, account.id

    await system.within(set_up)
    await system.write(somebody_dispatches)
    return system


def settings_of(system: System) -> dict[str, Any]:
    """Return the configuration of a healthy system."""
    certificate, key = system.certificate
    return {
        "database_url": f"sqlite:///{system.database}",
        "public_url": PUBLIC_URL,
        "tls_certificate": certificate,
        "tls_key": key,
    }


def copied(system: System, directory: Path) -> System:
    """Return a copy of a healthy system for one test, with its provider as it was."""
    shutil.copytree(system.directory, directory, dirs_exist_ok=True)
    directory.chmod(0o700)
    provider = system.provider
    provider.reset(f"{PUBLIC_URL}/webhooks/{system.account_id}")
    copy = attrs.evolve(system, directory=directory, closing=[])
    copy.settings = settings_of(copy)
    return copy


def somebody_dispatches(tx: Transaction) -> None:
    """Write the heartbeat of a server, an hour ahead, so that it lasts for the test."""
    at = datetime.now(UTC) + timedelta(hours=1)
    tx.leases.put(Lease(epoch=1, home=None, renewed_at=at))
    tx.workers.put(WorkerLease(epoch=1, place=1, renewed_at=at, until=at))


def no_dispatcher(tx: Transaction) -> None:
    """Write that the last heartbeat was long ago."""
    at = datetime.now(UTC) - timedelta(hours=1)
    tx.leases.put(Lease(epoch=1, home=None, renewed_at=at))
    tx.workers.put(WorkerLease(epoch=1, place=1, renewed_at=at, until=at))


def use_resolver_of(system: System, monkeypatch: Any) -> None:
    """Let names be resolved as the system says: no test asks a name server."""
    monkeypatch.setattr(environment, "resolve", system.resolve)
