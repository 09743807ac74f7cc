"""The contract of a storage, as tests: every sentence of `outreach.protocols.Storage`.

An implementation is held to it by a subclass that says how a database is opened:

    @pytest.mark.anyio  # or pytest.mark.asyncio
    class TestMyStorage(StorageContract):
        @pytest.fixture
        def open_storage(self, tmp_path):
            return lambda: MyStorage(tmp_path / "test.db")

The fixture returns a function; each call of it gives a storage, not yet entered, over one and the same
database, which is new for each test. `pytest_plugins = ["outreach.testing.plugin"]` in `conftest.py` makes failures
show the values that an assertion compared.
"""

from __future__ import annotations

from outreach.testing.storage_tables.accounts_contract import AccountsContract
from outreach.testing.storage_tables.calls_contract import CallsContract
from outreach.testing.storage_tables.campaign_lists_contract import CampaignListsContract
from outreach.testing.storage_tables.campaigns_contract import CampaignsContract
from outreach.testing.storage_tables.directory_contract import DirectoryContract
from outreach.testing.storage_tables.dispatches_contract import DispatchesContract
from outreach.testing.storage_tables.due_contract import DueContract
from outreach.testing.storage_tables.erasures_contract import ErasuresContract
from outreach.testing.storage_tables.history_contract import HistoryContract
from outreach.testing.storage_tables.loading_contract import LoadingContract
from outreach.testing.storage_tables.recipients_contract import RecipientsContract
from outreach.testing.storage_tables.register_contract import RegisterContract
from outreach.testing.storage_tables.reports_contract import ReportsContract
from outreach.testing.storage_tables.requests_contract import RequestsContract
from outreach.testing.storage_tables.schedules_contract import SchedulesContract
from outreach.testing.storage_tables.subscriptions_contract import SubscriptionsContract
from outreach.testing.storage_tables.trail_contract import TrailContract
from outreach.testing.storage_tables.transactions_contract import TransactionsContract
from outreach.testing.storage_tables.users_contract import UsersContract
from outreach.testing.storage_tables.webhooks_contract import WebhooksContract
from outreach.testing.storage_tables.work_contract import WorkContract

__all__ = ["StorageContract"]


class StorageContract(
    TransactionsContract,
    DirectoryContract,
    AccountsContract,
    RegisterContract,
    LoadingContract,
    CampaignsContract,
    CampaignListsContract,
    RecipientsContract,
    DueContract,
    DispatchesContract,
    CallsContract,
    HistoryContract,
    WorkContract,
    RequestsContract,
    TrailContract,
    SubscriptionsContract,
    UsersContract,
    SchedulesContract,
    WebhooksContract,
    ReportsContract,
    ErasuresContract,
):
    """The contract of a storage: subclass it, and define the fixture `open_storage`."""
