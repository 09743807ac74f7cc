"""/manage/settings and /manage/accounts."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import NotFound, WorkspaceUpdate
from outreach.http import (
    document_of,
    read_call_settings_update,
    read_narrower_hours,
    read_price_table,
    read_reply_settings_update,
    write_account,
    write_contact_hours,
    write_price_table,
    write_reply_settings,
    write_settings,
)
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, list_response, path_id, read_body, refuse_body
from outreach_server.errors import json_response


class AllSettings(HTTPEndpoint):
    """Show the settings of a workspace."""

    async def get(self, request: Request) -> Response:
        """Return the workspace with its settings of messages, calls and replies."""
        workspace = await admit(request, "getSettings")
        engine = server_of(request).engine
        return json_response(
            write_settings(
                workspace,
                await engine.sms_settings.get(workspace.id),
                await engine.call_settings.get(workspace.id),
                await engine.reply_settings.get(workspace.id),
                await engine.reply_settings.effective_texts(workspace.id),
            )
        )


class CallSettings(HTTPEndpoint):
    """Change the settings of calling campaigns."""

    async def patch(self, request: Request) -> Response:
        """Change the given settings, and return all."""
        workspace = await admit(request, "updateCallSettings")
        change, _ = await read_body(request, read_call_settings_update)
        settings = await server_of(request).engine.call_settings.update(workspace.id, change, actor=ACTOR)
        return json_response(document_of(settings))


class ReplySettings(HTTPEndpoint):
    """Change the replies to keywords."""

    async def patch(self, request: Request) -> Response:
        """Change the given settings, and return all."""
        workspace = await admit(request, "updateReplySettings")
        change, _ = await read_body(request, read_reply_settings_update)
        replies = server_of(request).engine.reply_settings
        settings = await replies.update(workspace.id, change, actor=ACTOR)
        return json_response(write_reply_settings(settings, await replies.effective_texts(workspace.id)))


class ContactHours(HTTPEndpoint):
    """Replace the narrower contact hours."""

    async def put(self, request: Request) -> Response:
        """Replace all hours of countries and states, and return the contact hours."""
        workspace = await admit(request, "setContactHours")
        hours, _ = await read_body(request, read_narrower_hours)
        change = WorkspaceUpdate(narrower_hours=hours)
        changed = await server_of(request).engine.workspaces.update(workspace.id, change, actor=ACTOR)
        return json_response(write_contact_hours(changed))


class Prices(HTTPEndpoint):
    """Show, replace and remove what messages and calls cost."""

    async def get(self, request: Request) -> Response:
        """Return the prices; there is no currency without any."""
        workspace = await admit(request, "getPrices")
        return json_response(write_price_table(await server_of(request).engine.prices.get(workspace.id)))

    async def put(self, request: Request) -> Response:
        """Replace all prices, and return them."""
        workspace = await admit(request, "setPrices")
        table, _ = await read_body(request, read_price_table)
        changed = await server_of(request).engine.prices.update(workspace.id, table, actor=ACTOR)
        return json_response(write_price_table(changed))

    async def delete(self, request: Request) -> Response:
        """Remove all prices."""
        workspace = await admit(request, "removePrices")
        await refuse_body(request)
        await server_of(request).engine.prices.remove(workspace.id, actor=ACTOR)
        return json_response(write_price_table(None))


class Accounts(HTTPEndpoint):
    """List the accounts at providers."""

    async def get(self, request: Request) -> Response:
        """Return all accounts without their secrets, oldest first."""
        workspace = await admit(request, "listAccounts")
        return await list_response(server_of(request).engine.accounts.iter_all(workspace.id), write_account)


class OneAccount(HTTPEndpoint):
    """Show an account at a provider."""

    async def get(self, request: Request) -> Response:
        """Return an account without its secrets."""
        workspace = await admit(request, "getAccount")
        wanted = path_id(request, "account")
        async for account in server_of(request).engine.accounts.iter_all(workspace.id):
            if account.id == wanted:
                return json_response(write_account(account))
        raise NotFound("account", wanted)


class CheckCallback(HTTPEndpoint):
    """Test the callback URL of an account."""

    async def post(self, request: Request) -> Response:
        """Call it as the provider would, and return whether that reached the database."""
        workspace = await admit(request, "checkCallback")
        wanted = path_id(request, "account")
        await refuse_body(request)
        return json_response(document_of(await server_of(request).engine.accounts.check_callback(workspace.id, wanted)))
