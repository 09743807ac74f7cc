"""The tables of the ordinary app, as SQLAlchemy's guide would have them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import JSON, ForeignKey, Index, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


def new_id() -> str:
    """Return a new identifier."""
    return str(uuid4())


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


class Base(DeclarativeBase):
    """All tables."""


class Workspace(Base):
    """A workspace."""

    __tablename__ = "workspaces"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str]


class ApiKey(Base):
    """A key of a workspace."""

    __tablename__ = "api_keys"
    digest: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey("workspaces.id"))


class Agent(Base):
    """A voice agent."""

    __tablename__ = "agents"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    workspace_id: Mapped[str] = mapped_column(ForeignKey("workspaces.id"))
    name: Mapped[str]
    provider: Mapped[str]


class Unsubscribe(Base):
    """A number that is not to be contacted."""

    __tablename__ = "unsubscribes"
    workspace_id: Mapped[str] = mapped_column(ForeignKey("workspaces.id"), primary_key=True)
    phone: Mapped[str] = mapped_column(primary_key=True)


class Campaign(Base):
    """A campaign, with the fields that the interface has."""

    __tablename__ = "campaigns"
    __table_args__ = (Index("campaigns_of_workspace", "workspace_id", "created_at"),)
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    workspace_id: Mapped[str] = mapped_column(ForeignKey("workspaces.id"))
    agent_id: Mapped[str | None]
    name: Mapped[str]
    description: Mapped[str | None]
    status: Mapped[str]
    schedule_type: Mapped[str] = mapped_column(default="immediate")
    scheduled_start_at: Mapped[datetime | None]
    scheduled_expires_at: Mapped[datetime | None]
    business_hours_config: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    holidays_config: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    total_recipients: Mapped[int] = mapped_column(default=0)
    pending_calls: Mapped[int] = mapped_column(default=0)
    completed_calls: Mapped[int] = mapped_column(default=0)
    successful_calls: Mapped[int] = mapped_column(default=0)
    failed_calls: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    channel: Mapped[str] = mapped_column(default="sms")
    batch_concurrency: Mapped[int] = mapped_column(default=10)
    csv_column_headers: Mapped[list[str]] = mapped_column(JSON, default=list)
    sms_mode: Mapped[str] = mapped_column(default="one_way")
    sms_message_source: Mapped[str] = mapped_column(default="custom")
    sms_message_body: Mapped[str | None]
    sms_flow_id: Mapped[str | None]
    sms_carrier: Mapped[str | None]
    sms_from_number: Mapped[str | None]
    sms_rate_per_minute: Mapped[int] = mapped_column(default=60)


class Recipient(Base):
    """A contact of a campaign."""

    __tablename__ = "recipients"
    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[str] = mapped_column(ForeignKey("campaigns.id"), index=True)
    phone_number: Mapped[str]
    first_name: Mapped[str | None]
    last_name: Mapped[str | None]
    email: Mapped[str | None]
    company: Mapped[str | None]
    custom_variables: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    status: Mapped[str] = mapped_column(default="pending")


class Call(Base):
    """A single call."""

    __tablename__ = "calls"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    workspace_id: Mapped[str] = mapped_column(ForeignKey("workspaces.id"))
    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id"))
    to_number: Mapped[str]
    variables: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    status: Mapped[str] = mapped_column(default="queued")
    provider_call_id: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(default=now)


def open_database(file: str) -> AsyncEngine:
    """Return an engine on a file, in WAL mode, with durable commits as SQLite has them by default."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{file}")

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    return engine
