"""The whole diagnosis of a server: it reads, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import httpx

from outreach import ConfigError, Outreach, OutreachError, SimulatorConfig
from outreach.database import diagnose_database
from outreach.errors import Problem
from outreach.models import Diagnosis
from outreach.protocols import SystemClock
from outreach.server_support import Check, run_checks
from outreach_server.cli.doctor import answering, certificates, exposure
from outreach_server.cli.doctor.findings import config_invalid, finding
from outreach_server.cli.doctor.invocation import Invocation
from outreach_server.config import ServerConfig

CHECK_SECONDS: Final = 120.0
"""How long one check may take, that of the engine included; all run at the same time."""


async def examine(
    config: ServerConfig,
    simulator: SimulatorConfig,
    *,
    config_file: Path | None = None,
    network: bool = True,
    transport: httpx.AsyncBaseTransport | None = None,
    invocation: Invocation | None = None,
) -> Diagnosis:
    """Return what is wrong with a server of this configuration, which may run meanwhile.

    Args:
        config: Its configuration.
        simulator: That of the simulators.
        config_file: The file that the configuration comes from, if any.
        network: Whether providers, names and the public address may be queried.
        transport: The HTTP transport to the public address; None for the network.
        invocation: How the program was called, so that the commands of findings work; None for its name alone.
    """
    invocation = invocation or Invocation(config_file=config_file)
    now = SystemClock().now()
    skipped = [*certificates.expiry_unknown(config)]

    def of_files(*checks: Callable[[], Iterable[Problem]]) -> Check:
        return lambda: anyio.to_thread.run_sync(lambda: [one for check in checks for one in check()])

    async def of_engine() -> Sequence[Problem]:
        found = await _of_engine(config, simulator, network=network)
        skipped.extend(found.skipped)
        return found.findings

    checks: dict[str, Check] = {
        "the engine": of_engine,
        "the certificate": of_files(partial(certificates.of_certificate, config, now=now)),
        "listening": of_files(partial(exposure.of_listening, config), partial(exposure.of_paths, config)),
        "files": of_files(partial(exposure.of_files, config, config_file)),
    }
    if network:
        checks["the public address"] = lambda: answering.of_answer(config.public_url, transport=transport)
    found = [invocation.fitted(one, config.database_url) for one in await run_checks(checks, CHECK_SECONDS)]
    return Diagnosis(at=now).plus(found, skipped=skipped)


async def _of_engine(config: ServerConfig, simulator: SimulatorConfig, *, network: bool) -> Diagnosis:
    try:
        async with Outreach.open(config.database_url, create=False, config=config, simulator=simulator) as engine:
            return await engine.diagnose(network=network)
    except ConfigError as error:
        return _not_opened([config_invalid(error)])
    except OutreachError as error:
        found = await _of_database(config.database_url)
        if not any(one.severity == "critical" for one in found):
            unusable = finding(
                "database_not_usable",
                error.message,
                "the database",
                looks=["outreach-server db check", "outreach-server config"],
                severity="critical",
            )
            found = [*found, unusable]
        return _not_opened(found)


def _not_opened(found: Sequence[Problem]) -> Diagnosis:
    skipped = "The database cannot be opened: accounts, the key and the work were not looked at."
    return Diagnosis(at=SystemClock().now()).plus(found, skipped=[skipped])


async def _of_database(url: str) -> Sequence[Problem]:
    return await anyio.to_thread.run_sync(diagnose_database, url)
