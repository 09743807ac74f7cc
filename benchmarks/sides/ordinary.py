"""The ordinary app: FastAPI, pydantic, async SQLAlchemy on SQLite, written as their guides have it.

It has the three operations that are compared, keys, and the register; it has no request limit, no idempotency keys, no
normalisation of numbers beyond their form, no check of holidays, hours or placeholders, no audit trail, and no
dispatching.

Told: `database`, a file that is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import func, insert, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from benchmarks.sides.answering import serve
from benchmarks.sides.ordinary_tables import (
    Agent,
    ApiKey,
    Call,
    Campaign,
    Recipient,
    Unsubscribe,
    new_id,
    open_database,
)
from benchmarks.sides.telling import told

Status = Literal["draft", "ready", "scheduled", "active", "paused", "completed", "cancelled", "expired"]
Phone = Annotated[str, Field(pattern=r"^\+?[1-9]\d{6,14}$")]


class RecipientIn(BaseModel):
    """A contact."""

    phone_number: Phone
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    company: str | None = None
    custom_variables: dict[str, Any] = {}


class CampaignIn(BaseModel):
    """A new campaign."""

    name: str = Field(min_length=1, max_length=100)
    description: str | None = Field(default=None, max_length=500)
    sms_mode: Literal["one_way", "conversational"] = "one_way"
    sms_message_source: Literal["custom", "flow"] = "custom"
    message_body: str | None = Field(default=None, max_length=1600)
    sms_carrier: Literal["twilio", "telnyx", "vonage"] | None = None
    sms_from_number: str | None = None
    sms_rate_per_minute: int = Field(default=60, ge=1, le=600)
    recipients: list[RecipientIn] = Field(min_length=1)


class CampaignOut(BaseModel):
    """A campaign."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    workspace_id: str
    agent_id: str | None
    name: str
    description: str | None
    status: str
    schedule_type: str
    scheduled_start_at: datetime | None
    scheduled_expires_at: datetime | None
    business_hours_config: dict[str, Any] | None
    holidays_config: dict[str, Any] | None
    total_recipients: int
    pending_calls: int
    completed_calls: int
    successful_calls: int
    failed_calls: int
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    channel: str
    batch_concurrency: int
    csv_column_headers: list[str]
    sms_mode: str
    sms_message_source: str
    sms_message_body: str | None
    sms_flow_id: str | None
    sms_carrier: str | None
    sms_from_number: str | None
    sms_rate_per_minute: int


class CreatedOut(CampaignOut):
    """A campaign that was made."""

    sms_opted_out_excluded: int


class Pagination(BaseModel):
    """Which page it is."""

    page: int
    page_size: int
    total: int


class ListOut(BaseModel):
    """A page of campaigns."""

    data: list[CampaignOut]
    pagination: Pagination


class CallIn(BaseModel):
    """A new call."""

    agent_id: UUID
    to: Phone
    variables: dict[str, Any] = {}


class CallOut(BaseModel):
    """A call that was placed."""

    success: bool
    provider: str
    callId: str  # noqa: N815 - the interface's name


_MAX_ASKED_FOR = 5000
"""Numbers that are asked for by name; of more, the whole register is read, which is quicker then."""

_TOLD = told()
_sessions = async_sessionmaker(open_database(_TOLD["database"]), expire_on_commit=False)
_bearer = HTTPBearer()
app = FastAPI()


async def session_of() -> AsyncIterator[AsyncSession]:
    """Return a session for a request."""
    async with _sessions() as session:
        yield session


Session = Annotated[AsyncSession, Depends(session_of)]


async def workspace_of(session: Session, credentials: Annotated[HTTPAuthorizationCredentials, Depends(_bearer)]) -> str:
    """Return whose request it is."""
    digest = hashlib.sha256(credentials.credentials.encode()).hexdigest()
    key = await session.get(ApiKey, digest)
    if key is None:
        raise HTTPException(401)
    return key.workspace_id


Caller = Annotated[str, Depends(workspace_of)]


@app.get("/sms-campaigns")
async def list_campaigns(
    session: Session,
    workspace_id: Caller,
    page: Annotated[int, Query(ge=1)] = 1,
    page_size: Annotated[int, Query(ge=1, le=100)] = 20,
    status: Status | None = None,
    search: str | None = None,
) -> ListOut:
    """Return a page of campaigns, newest first."""
    wanted = select(Campaign).where(Campaign.workspace_id == workspace_id, Campaign.channel == "sms")
    if status is not None:
        wanted = wanted.where(Campaign.status == status)
    if search is not None:
        wanted = wanted.where(Campaign.name.icontains(search, autoescape=True))
    total = await session.scalar(select(func.count()).select_from(wanted.subquery()))
    newest = wanted.order_by(Campaign.created_at.desc(), Campaign.id.desc())
    found = await session.scalars(newest.offset((page - 1) * page_size).limit(page_size))
    return ListOut(
        data=[CampaignOut.model_validate(campaign) for campaign in found],
        pagination=Pagination(page=page, page_size=page_size, total=total or 0),
    )


@app.post("/sms-campaigns", status_code=201)
async def create_campaign(session: Session, workspace_id: Caller, new: CampaignIn) -> CreatedOut:
    """Make a campaign of all contacts who are not on the register."""
    register = select(Unsubscribe.phone).where(Unsubscribe.workspace_id == workspace_id)
    if len(new.recipients) <= _MAX_ASKED_FOR:
        register = register.where(Unsubscribe.phone.in_([person.phone_number for person in new.recipients]))
    registered = set(await session.scalars(register))
    people = [person for person in new.recipients if person.phone_number not in registered]
    if not people:
        raise HTTPException(400)
    ready = new.message_body and new.sms_carrier and new.sms_from_number
    campaign = Campaign(
        **new.model_dump(exclude={"recipients", "message_body"}),
        id=new_id(),
        workspace_id=workspace_id,
        sms_message_body=new.message_body,
        status="ready" if ready else "draft",
        total_recipients=len(people),
        pending_calls=len(people),
    )
    session.add(campaign)
    await session.flush()
    await session.execute(insert(Recipient), [{"campaign_id": campaign.id, **person.model_dump()} for person in people])
    await session.commit()
    return CreatedOut(
        **CampaignOut.model_validate(campaign).model_dump(), sms_opted_out_excluded=len(new.recipients) - len(people)
    )


@app.post("/calls", status_code=201)
async def create_call(session: Session, workspace_id: Caller, new: CallIn) -> CallOut:
    """Commit a call, place it, and commit what became of it; its provider answers at once."""
    agent = await session.get(Agent, str(new.agent_id))
    if agent is None or agent.workspace_id != workspace_id:
        raise HTTPException(404)
    call = Call(workspace_id=workspace_id, agent_id=agent.id, to_number=new.to, variables=new.variables)
    session.add(call)
    await session.commit()
    call.provider_call_id, call.status = str(uuid4()), "ringing"
    await session.commit()
    return CallOut(success=True, provider=agent.provider, callId=call.id)


if __name__ == "__main__":
    serve(app)
