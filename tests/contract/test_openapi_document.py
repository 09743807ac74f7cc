"""Hold openapi.yaml to the interface specification and to its own rules. The server is not asked here."""

from __future__ import annotations

import copy
import functools
import hashlib
import re
import zoneinfo
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import holidays
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis.core import NotSet
from schemathesis.generation import GenerationMode

from outreach_server.auth import scopes_of
from tests.contract.document import DOCUMENT, SCHEMAS, operations, resolve
from tests.interface.sentences import CAMPAIGN_FIELDS

PATH = Path(__file__).parents[2] / "openapi.yaml"
CARRIERS = ["twilio", "telnyx", "vonage"]
UUID = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"

Json = Any  # what read_yaml returns: any JSON value


OPERATIONS = {operation["operationId"]: (path, method, operation) for path, method, operation in operations()}


def validator(schema: Json) -> Draft202012Validator:
    """Return a validator that knows the components and checks formats."""
    if not isinstance(schema, dict):
        return Draft202012Validator(schema)
    return Draft202012Validator(
        {**schema, "components": DOCUMENT["components"]}, format_checker=Draft202012Validator.FORMAT_CHECKER
    )


def body_schema(operation_id: str) -> dict[str, Json]:
    """Return the schema of an operation's request body."""
    content = OPERATIONS[operation_id][2]["requestBody"]["content"]
    [media] = content.values()
    return cast("dict[str, Json]", media["schema"])


def sub_schemas(schema: Json, where: str, seen: set[str]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield every schema within a schema, references followed once."""
    if not isinstance(schema, dict):
        return
    reference = schema.get("$ref")
    if reference is not None:
        if reference in seen:
            return
        seen.add(reference)
        schema = resolve(schema)
    yield where, schema
    for key in ("items", "additionalProperties", "propertyNames", "not"):
        yield from sub_schemas(schema.get(key), f"{where}/{key}", seen)
    for key in ("properties", "patternProperties"):
        for name, child in schema.get(key, {}).items():
            yield from sub_schemas(child, f"{where}/{name}", seen)
    for key in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(schema.get(key, [])):
            yield from sub_schemas(child, f"{where}/{key}[{index}]", seen)


def request_schemas() -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield every schema that a request has to match: of parameters, then of bodies."""
    for operation_id, (_, _, operation) in OPERATIONS.items():
        for parameter in map(resolve, operation.get("parameters", [])):
            yield from sub_schemas(parameter["schema"], f"{operation_id} {parameter['name']}", set())
        if "requestBody" in operation:
            yield from sub_schemas(body_schema(operation_id), f"{operation_id} body", set())


def types(schema: Mapping[str, Json]) -> list[str]:
    """Return the types that a schema names, none if it names none."""
    named = schema.get("type", [])
    return [named] if isinstance(named, str) else list(named)


def nodes(node: Json, where: str = "#") -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield every object of the document, except what is inside an example."""
    if isinstance(node, dict):
        yield where, node
        for key, child in node.items():
            if key in {"example", "examples", "default", "const", "enum"} and where != "#/components":
                continue
            yield from nodes(child, f"{where}/{key}")
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from nodes(child, f"{where}[{index}]")


def examples() -> Iterator[tuple[str, Json, Json]]:
    """Yield every example, with the schema it has to match: of parameters, headers, bodies and schemas."""
    for where, node in nodes(DOCUMENT):
        if isinstance(node.get("schema"), dict):
            if "example" in node:
                yield where, node["schema"], node["example"]
            for name, example in node.get("examples", {}).items():
                yield f"{where}/{name}", node["schema"], resolve(example)["value"]
        elif isinstance(node.get("examples"), list):
            for example in node["examples"]:
                yield where, {key: value for key, value in node.items() if key != "examples"}, example
        if ("default" in node and "/properties" in where) or ("default" in node and where.endswith("/schema")):
            yield f"{where} default", node, node["default"]


EXAMPLES = list(examples())
BESIDE_JSON = {"listEvents": ["text/event-stream"], "reportCampaign": ["text/html"]}
"""What operations answer beside JSON."""
FILES = {
    "exportCampaign": [
        "text/csv",
        "application/jsonl",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ],
    "listUploadRejects": ["text/csv"],
}
"""What operations answer in place of JSON."""
BYTES = {"addUploadChunk": ["application/octet-stream"]}
"""What operations take in place of JSON."""


# -------------------------------------------------------------------------------------------- the document itself


def test_it_is_a_valid_openapi_3_1_document() -> None:
    """The document is valid against the specification of OpenAPI 3.1."""
    assert DOCUMENT["openapi"].startswith("3.1.")
    assert [str(error) for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()] == []


def test_every_schema_is_a_valid_json_schema() -> None:
    """Each component schema is valid against its own dialect."""
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


def is_ours(operation_id: str) -> bool:
    """Return whether an operation is this project's own, and not of the interface."""
    return OPERATIONS[operation_id][0].startswith("/manage/")


def test_the_operations_of_the_interface_are_as_they_were() -> None:
    """Names, paths, methods, statuses and links, byte by byte: what is added beside them changes none of them."""
    text = PATH.read_bytes()
    of_interface = text[text.index(b"\npaths:\n") : text.index(b"  # ----------", text.index(b"\npaths:\n"))]
    assert (
        hashlib.sha256(of_interface.strip()).hexdigest()
        == "2830a43aa2848d745a509b22fb22c8807a42ce37ec1c5001a36bab5eb7ddf10d"
    )


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_our_own_operations_say_so_and_name_their_scopes(operation_id: str) -> None:
    """By the tag `manage`, and by `x-scopes`, which the server requires."""
    _, method, operation = OPERATIONS[operation_id]
    assert (operation["tags"] == ["manage"]) is is_ours(operation_id)
    if is_ours(operation_id):
        assert set(operation["x-scopes"]) == set(scopes_of(operation_id, method.upper()))
    else:
        assert "x-scopes" not in operation


def test_it_says_what_it_is() -> None:
    """Version, licence, servers and tags are there, and every tag in use is declared."""
    info = DOCUMENT["info"]
    assert (info["version"], info["license"]["identifier"]) == ("0.1.0", "Apache-2.0")
    for word in ("Authorization: Bearer", "request_id", "RateLimit", "Retry-After", "Idempotency-Key", "/healthz"):
        assert word in info["description"]
    assert [server["url"] for server in DOCUMENT["servers"]] == ["/"]
    declared = {tag["name"] for tag in DOCUMENT["tags"]}
    webhooks = [item["post"] for item in DOCUMENT["webhooks"].values()]
    used = [operation for _, _, operation in operations()] + webhooks
    assert {tag for operation in used for tag in operation["tags"]} == declared


def test_every_operation_needs_an_api_key() -> None:
    """No operation opts out of the bearer key (docs/interface.md#5)."""
    assert DOCUMENT["security"] == [{"apiKey": []}]
    scheme = DOCUMENT["components"]["securitySchemes"]["apiKey"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert not [path for path, _, operation in operations() if "security" in operation]


def test_nothing_is_null_by_accident() -> None:
    """No key has lost its value: a comma in an unquoted YAML flow text would make one."""
    allowed = {"enum", "example", "examples", "default", "const"}
    assert [
        f"{where}/{key}" for where, node in nodes(DOCUMENT) for key, value in node.items() if value is None
        if key not in allowed and "/examples/" not in where
    ] == []  # fmt: skip


def test_every_field_is_described() -> None:
    """Each property of each component says what it means."""
    missing = []
    for name, schema in SCHEMAS.items():
        for where, sub in sub_schemas(schema, name, set()):
            # A condition repeats the name of a field that is described elsewhere; the days describe themselves.
            if re.search(r"/not(/anyOf\[[0-9]\])?$", where) or "monday" in sub.get("properties", {}):
                continue
            missing += [
                f"{where}/{key}"
                for key, child in sub.get("properties", {}).items()
                if "description" not in resolve(child)
            ]
    assert missing == []


@pytest.mark.parametrize(("where", "schema", "example"), EXAMPLES, ids=[where for where, _, _ in EXAMPLES])
def test_every_example_matches_its_schema(where: str, schema: Json, example: Json) -> None:
    """Examples and defaults are valid, formats included."""
    assert [error.message for error in validator(schema).iter_errors(example)] == [], where


def test_every_request_and_every_answer_has_an_example() -> None:
    """Each body, in and out, shows at least one example."""
    for operation_id, (_, _, operation) in OPERATIONS.items():
        bodies = [resolve(response) for response in operation["responses"].values()]
        bodies += [operation["requestBody"]] if "requestBody" in operation else []
        for body in bodies:
            content = body["content"]
            other = (FILES.get(operation_id), BYTES.get(operation_id))
            assert list(content) in other or content["application/json"]["examples"], operation_id


# ---------------------------------------------------------------------------------------- statuses, headers, links

MAY_BE_MISSING = {"addNumber", "listCalls", "decideDispatches"}
"""Operations of ours that name in a body or query what may not be there."""
MAY_CONFLICT = {
    *("updateCampaign", "startCampaign", "unscheduleCampaign", "pauseCampaign", "resumeCampaign", "cancelCampaign"),
    *("resolveUnsubscribe", "addNumber", "removeNumber", "updateFlow", "removeFlow", "listEvents"),
    *("deleteCampaign", "sendTestMessage", "cloneCampaign", "followUpCampaign", "archiveCampaign"),
    *("createUpload", "addUploadChunk", "checkUpload", "listUploadRejects", "loadUpload", "addUpload"),
    *("setCallOutcome", "erasePerson", "skipRecipient", "simulateEvent", "addRecipients", "closeCampaign"),
    "lookUpDispatch",
    *("updateSchedule", "removeSchedule", "pauseSchedule", "resumeSchedule", "runSchedule", "skipNextRun"),
    "testWebhook",
}
CREATING = {
    *("addUnsubscribes", "createAgent", "addNumber", "createFlow", "createSchedule"),
    "createWebhook",
    *("sendTestMessage", "cloneCampaign", "followUpCampaign", "createUpload", "loadUpload", "addRecipients"),
    "addUpload",
}
REPEATABLE = {
    *("checkCallback", "checkUpload", "countAudience", "listUploadRejects", "simulateEvent", "skipRecipient"),
    *("lookUpDispatch", "previewSchedule"),
    *("pauseWebhook", "enableWebhook", "testWebhook", "replayWebhook"),
}
"""POSTs that may be repeated without a key: nobody is contacted by a simulated event."""


def statuses(operation_id: str) -> set[str]:
    """Return the statuses of an operation of ours, without 5XX."""
    missing = {"404"} if "{" in OPERATIONS[operation_id][0] or operation_id in MAY_BE_MISSING else set()
    conflict = {"409"} if operation_id in MAY_CONFLICT else set()
    return {"201" if operation_id in CREATING else "200", "400", "401", "403", "429"} | missing | conflict


@pytest.mark.parametrize("operation_id", [name for name in OPERATIONS if is_ours(name)])
def test_an_operation_of_ours_has_its_own_statuses_and_5xx(operation_id: str) -> None:
    """As those of the interface, and 5XX in the same envelope."""
    assert set(OPERATIONS[operation_id][2]["responses"]) == statuses(operation_id) | {"5XX"}


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_an_error_has_the_one_envelope(operation_id: str) -> None:
    """Every answer that is not 2xx is the error envelope, as JSON."""
    for status, response in OPERATIONS[operation_id][2]["responses"].items():
        content = resolve(response)["content"]
        if operation_id in FILES and status == "200":
            assert list(content) == FILES[operation_id]
            continue
        beside = BESIDE_JSON.get(operation_id, []) if status == "200" else []
        assert list(content) == ["application/json", *beside]
        is_error = content["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
        assert is_error is (not status.startswith("2")), status


def test_the_envelope_has_code_message_request_id_and_details() -> None:
    """The envelope holds its four fields, and each detail a path and a message."""
    error = resolve(SCHEMAS["Error"]["properties"]["error"])
    assert error["required"] == list(error["properties"]) == ["code", "message", "request_id", "details"]
    assert resolve(error["properties"]["details"]["items"])["required"] == ["path", "message"]


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_answers_have_their_headers(operation_id: str) -> None:
    """X-Request-Id is on all, the limit where it was counted, and 401 and 429 say how to go on."""
    for status, response in OPERATIONS[operation_id][2]["responses"].items():
        headers = {name: resolve(header) for name, header in resolve(response)["headers"].items()}
        assert headers["X-Request-Id"]["required"]
        assert ("RateLimit" in headers) is ("RateLimit-Policy" in headers) is (status not in {"401", "403", "5XX"})
        assert ("WWW-Authenticate" in headers) is (status == "401")
        assert ("Retry-After" in headers) is (status == "429")
        assert ("Location" in headers) is ((operation_id, status) == ("createCall", "201"))


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_a_post_takes_an_idempotency_key(operation_id: str) -> None:
    """Each POST that changes anything lists the header, so that generated clients offer it, and nothing else does."""
    _, method, operation = OPERATIONS[operation_id]
    makes = method == "post" and operation_id not in REPEATABLE
    listed = [parameter["name"] for parameter in map(resolve, operation.get("parameters", []))]
    assert ("Idempotency-Key" in listed) is makes
    if makes:
        assert "Idempotency-Key" in operation["description"]
    if "x-scopes" in operation:
        assert ("Idempotency-Days" in listed) is makes


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        ("8e03978e-40d5", True),
        ("!", True),
        ("~" * 255, True),
        ("", False),
        ("a b", False),
        ("é", False),
        ("~" * 256, False),
    ],
)
def test_an_idempotency_key_is_1_to_255_visible_ascii_characters(key: str, valid: bool) -> None:
    """The key's schema takes visible ASCII only."""
    parameter = DOCUMENT["components"]["parameters"]["IdempotencyKey"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("Idempotency-Key", "header", False)
    assert validator(parameter["schema"]).is_valid(key) is valid


def test_no_type_null_stands_within_a_not() -> None:
    """Generators make a class of what stands there, and openapi-generator's Python target ends at such a field."""
    found = [where for where, schema in request_schemas() if "/not/" in f"{where}/" and "null" in types(schema)]
    assert found == []


def test_a_pattern_begins_at_the_beginning() -> None:
    """Clients in Python that openapi-generator makes look for a pattern there alone."""
    patterns = re.findall(r"pattern: *[\"']?([^\"'},\n]+)", PATH.read_text("utf-8"))
    # The one exception stands in a `not`.
    assert {pattern for pattern in patterns if not pattern.startswith("^")} == {r"\x00"}


def test_a_reference_leads_to_a_schema_and_not_to_a_reference() -> None:
    """Of a component that is a reference with a description, openapi-generator knows no type."""
    assert [name for name, schema in SCHEMAS.items() if "$ref" in schema] == []


def test_links_name_operations_and_their_parameters() -> None:
    """Each link leads to an operation that is there, through parameters that it has."""
    found = set()
    for operation_id, (_, _, operation) in OPERATIONS.items():
        for response in map(resolve, operation["responses"].values()):
            for link in response.get("links", {}).values():
                target = OPERATIONS[link["operationId"]][2]
                assert set(link["parameters"]) <= {resolve(parameter)["name"] for parameter in target["parameters"]}
                found.add((operation_id, link["operationId"]))
    assert found


# ----------------------------------------------------------------------------- the fields of docs/interface.md#2

STRING, INTEGER, BOOLEAN, OBJECT, ARRAY = "string", "integer", "boolean", "object", "array"

# docs/interface.md#2.2: type and nullability of every field of a campaign; those that are not named are texts.
CAMPAIGN_TYPES = {
    INTEGER: {"total_recipients", "pending_calls", "completed_calls", "successful_calls", "failed_calls"}
    | {"batch_concurrency", "sms_rate_per_minute"},
    BOOLEAN: {"business_hours_only", "ivr_enabled", "call_screen_enabled", "double_dial"},
    OBJECT: {"business_hours_config", "holidays_config", "agent"},
    ARRAY: {"cli_group_config", "csv_column_headers"},
}
CAMPAIGN = {
    field: (
        next((kind for kind, fields in CAMPAIGN_TYPES.items() if field in fields), STRING),
        field not in {"id", "workspace_id", "name", "agent"},
    )
    for field in CAMPAIGN_FIELDS
}
CAMPAIGN_UUIDS = {"id", "workspace_id", "agent_id", "sip_trunk_id", "sms_flow_id"}
CAMPAIGN_TIMES = {name for name in CAMPAIGN if name.endswith("_at")}
STATES = ["draft", "ready", "scheduled", "active", "paused", "completed", "cancelled", "expired"]
CAMPAIGN_ENUMS = {
    "status": STATES,
    "effective_status": STATES,
    "schedule_type": ["immediate", "scheduled"],
    "channel": ["call", "sms"],
    "cli_mode": ["default", "group"],
    "sms_mode": ["one_way", "conversational"],
    "sms_message_source": ["custom", "flow"],
    "sms_carrier": CARRIERS,
}


def shape(schema: Json) -> tuple[str, bool]:
    """Return the type of a field that is not null, and whether it may be null."""
    schema = resolve(schema)
    named = types(schema)
    for branch in schema.get("anyOf", []) + schema.get("oneOf", []):
        named += types(resolve(branch))
    (kind,) = set(named) - {"null"}
    return kind, "null" in named


@pytest.mark.parametrize("field", CAMPAIGN)
def test_a_campaign_has_every_field_of_section_2_2(field: str) -> None:
    """Each field of a campaign has the type and the nullability of the interface."""
    schema = SCHEMAS["Campaign"]["properties"][field]
    assert shape(schema) == CAMPAIGN[field]
    assert (schema.get("format") == "uuid") is (field in CAMPAIGN_UUIDS)
    assert (schema.get("format") == "date-time") is (field in CAMPAIGN_TIMES)
    branches = [resolve(branch) for branch in schema.get("anyOf", [])]
    assert [branch["enum"] for branch in branches if "enum" in branch] == (
        [CAMPAIGN_ENUMS[field]] if field in CAMPAIGN_ENUMS else []
    )


def test_a_campaign_has_no_other_field_and_always_has_all_but_its_agent() -> None:
    """All fields are required in an answer, except `agent`: it is absent without an agent."""
    assert set(SCHEMAS["Campaign"]["properties"]) == set(CAMPAIGN)
    assert SCHEMAS["Campaign"]["required"] == [field for field in CAMPAIGN if field != "agent"]
    assert set(SCHEMAS["AgentSnapshot"]["properties"]) == {"id", "name", "provider", "is_active"}
    assert SCHEMAS["Campaign"]["properties"]["agent"]["readOnly"] is True


def test_only_a_created_campaign_counts_the_opted_out() -> None:
    """`sms_opted_out_excluded` is an integer of the create answers, and of no other."""
    added = SCHEMAS["CampaignCreated"]["allOf"][1]
    assert added["required"] == list(added["properties"]) == ["sms_opted_out_excluded"]
    assert added["properties"]["sms_opted_out_excluded"]["type"] == INTEGER
    for operation_id, status in (("createSmsCampaign", "201"), ("createCampaign", "201")):
        response = resolve(OPERATIONS[operation_id][2]["responses"][status])
        assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/CampaignCreated"}


# Other tables: the component, and for each field its type, whether it may be null, and whether it is required.
FIELDS: dict[str, dict[str, tuple[str, bool, bool]]] = {
    # docs/interface.md#2.1.
    "CallCreated": {
        "success": (BOOLEAN, False, True),
        "provider": (STRING, False, False),
        "callId": (STRING, False, False),
    },
    # docs/interface.md#2.3.
    "Recipient": {
        "phone_number": (STRING, False, True),
        "first_name": (STRING, True, False),
        "last_name": (STRING, True, False),
        "email": (STRING, True, False),
        "company": (STRING, True, False),
        "custom_variables": (OBJECT, False, False),
    },
    # docs/interface.md#2.4; in a PATCH nothing is required.
    "SmsSettingsUpdate": {
        "footer_enabled": (BOOLEAN, False, False),
        "footer_text": (STRING, False, False),
        "max_segments": (INTEGER, False, False),
        "retry_enabled": (BOOLEAN, False, False),
        "retry_max_attempts": (INTEGER, False, False),
        "retry_delay_minutes": (INTEGER, False, False),
        "custom_variables": (ARRAY, False, False),
    },
    # docs/interface.md#2.5.
    "Pagination": {
        "page": (INTEGER, False, True),
        "page_size": (INTEGER, False, True),
        "total": (INTEGER, False, True),
    },
    # docs/interface.md#4.1.
    "CallCreate": {
        "agent_id": (STRING, False, True),
        "to": (STRING, False, True),
        "variables": (OBJECT, False, False),
    },
    # docs/interface.md#4.2.
    "CampaignList": {"data": (ARRAY, False, True), "pagination": (OBJECT, False, True)},
    # docs/interface.md#4.3; `channel` is ignored there whatever it holds, and so has no type.
    "SmsCampaignCreate": {
        "name": (STRING, False, True),
        "description": (STRING, False, False),
        "sms_mode": (STRING, False, False),
        "sms_message_source": (STRING, False, False),
        "message_body": (STRING, False, False),
        "sms_flow_id": (STRING, True, False),
        "sms_carrier": (STRING, True, False),
        "sms_from_number": (STRING, True, False),
        "sms_rate_per_minute": (INTEGER, False, False),
        "recipients": (ARRAY, False, True),
        "csv_column_headers": (ARRAY, False, False),
        "schedule_type": (STRING, False, False),
        "scheduled_start_at": (STRING, True, False),
        "scheduled_expires_at": (STRING, True, False),
        "business_hours_config": (OBJECT, True, False),
        "holidays_config": (OBJECT, True, False),
    },
    # docs/interface.md#2.2, in the row of cli_group_config.
    "CliGroupEntry": {
        "phoneNumberId": (STRING, False, True),
        "phoneE164": (STRING, False, True),
        "count": (INTEGER, False, True),
    },
}

BESIDE_THE_INTERFACE = {
    ("CallCreate", "external_id"),
    ("CallCreate", "metadata"),
    ("Recipient", "external_id"),
    ("Recipient", "time_zone"),
    ("SmsCampaignCreate", "external_id"),
    ("SmsCampaignCreate", "metadata"),
    ("SmsCampaignCreate", "leave_out"),
    ("SmsCampaignCreate", "replace_characters"),
    ("SmsCampaignCreate", "sms_from_numbers"),
    ("SmsCampaignCreate", "stay_open"),
}
"""Optional fields of requests that the interface document does not have."""


@pytest.mark.parametrize("name", FIELDS)
def test_a_component_has_the_fields_of_the_interface(name: str) -> None:
    """Each table of the interface is there field by field: type, nullability, whether it is required."""
    schema = SCHEMAS[name]
    fields = {
        field: child
        for field, child in schema["properties"].items()
        if shape_is_known(child) and (name, field) not in BESIDE_THE_INTERFACE
    }
    required = schema.get("required", [])
    assert {field: (*shape(child), field in required) for field, child in fields.items()} == FIELDS[name]


def shape_is_known(schema: Json) -> bool:
    """Tell whether a field is restricted at all."""
    return not set(resolve(schema)) <= {"description", "examples"}


def test_the_settings_of_an_answer_are_all_there() -> None:
    """PATCH /sms/settings answers with every field of docs/interface.md#2.4."""
    whole = SCHEMAS["SmsSettings"]["allOf"]
    assert whole[0] == {"$ref": "#/components/schemas/SmsSettingsUpdate"}
    assert whole[1]["required"] == list(SCHEMAS["SmsSettingsUpdate"]["properties"])


def test_carriers_are_the_three_of_the_interface() -> None:
    """One enumeration names the carriers, and whatever names a carrier refers to it."""
    assert [where for where, node in nodes(DOCUMENT) if "vonage" in node.get("enum", [])] == [
        "#/components/schemas/Carrier"
    ]
    assert SCHEMAS["Carrier"]["enum"] == CARRIERS
    properties = {name: child for _, node in nodes(DOCUMENT) for name, child in node.get("properties", {}).items()}
    assert {name for name, child in properties.items() if "Carrier" in _references(child)} == {"sms_carrier", "carrier"}


def _references(node: dict[str, Json]) -> set[str]:
    """Return the components that a schema refers to, itself or as one of its alternatives."""
    parts = [node, *node.get("anyOf", [])]
    return {part["$ref"].rpartition("/")[2] for part in parts if "$ref" in part}


def test_defaults_are_those_of_section_4() -> None:
    """Fields and parameters with a default in the interface have the same one.

    Other fields state theirs in the description: types that openapi-typescript makes require a field with a default.
    """
    defaults = {
        (where.removeprefix("#/components/schemas/"), name): resolve(child)["default"]
        for where, node in nodes(DOCUMENT)
        for name, child in node.get("properties", {}).items()
        if "default" in resolve(child)
    }
    assert defaults == {
        ("SmsCampaignCreate", "sms_mode"): "one_way",
        ("SmsCampaignCreate", "sms_message_source"): "custom",
        ("SmsCampaignCreate", "sms_rate_per_minute"): 60,
        ("SmsCampaignCreate", "csv_column_headers"): [],
        ("SmsCampaignCreate", "schedule_type"): "immediate",
        ("CallCampaignCreate", "csv_column_headers"): [],
        ("Recipient", "custom_variables"): {},
    }
    parameters = DOCUMENT["components"]["parameters"]
    assert parameters["Page"]["schema"]["default"] == 1
    assert parameters["PageSize"]["schema"]["default"] == 20


def test_no_schema_is_named_as_the_constructor_of_another() -> None:
    """A client in Go has a function `NewSimulation` for a schema `Simulation`."""
    assert not SCHEMAS.keys() & {f"New{name}" for name in SCHEMAS}


@pytest.mark.parametrize("operation_id", ["listSmsCampaigns", "listCampaigns"])
def test_a_list_takes_the_query_of_section_4_2(operation_id: str) -> None:
    """Both lists take page, page_size, status and search, all optional."""
    parameters = [resolve(parameter) for parameter in OPERATIONS[operation_id][2]["parameters"]]
    assert [(p["name"], p["in"], p["required"]) for p in parameters] == [
        (name, "query", False) for name in ("page", "page_size", "status", "search")
    ]
    assert resolve(parameters[2]["schema"])["enum"] == STATES


# -------------------------------------------------------------------- destinations and names, strictness


@pytest.mark.parametrize("component", ["CallCreate", "SmsSend"])
@pytest.mark.parametrize(
    ("number", "valid"),
    [
        ("+14155550102", True),
        ("1234567", True),
        ("+123456789012345", True),
        ("123456", False),
        ("1234567890123456", False),
        ("+0123456789", False),
        ("++14155550102", False),
        ("+1 415 555 0102", False),
        ("+1415555010٢", False),
        ("", False),
    ],
)
def test_a_destination_is_7_to_15_ascii_digits(component: str, number: str, valid: bool) -> None:
    """`to` matches the pattern of docs/interface.md#4.1, with digits that are ASCII in every engine."""
    schema = SCHEMAS[component]["properties"]["to"]
    assert schema["pattern"] == r"^\+?[1-9]\d{6,14}$".replace(r"\d", "[0-9]")
    assert validator(schema).is_valid(number) is valid


@pytest.mark.parametrize(
    ("name", "valid"), [("plan", True), ("A_9", True), ("a" * 40, True), ("a" * 41, False), ("", False), ("a-b", False)]
)
def test_a_custom_variable_is_letters_digits_underscores(name: str, valid: bool) -> None:
    """An entry of `custom_variables` has at most 40 such characters."""
    assert validator(body_schema("updateSmsSettings")).is_valid({"custom_variables": [name]}) is valid


def test_every_integer_of_a_request_has_a_minimum_and_a_maximum() -> None:
    """Only `page`, past whose end lies an empty page, and `page_size`, which is capped, have no maximum."""
    unbounded = set()
    for where, schema in request_schemas():
        if "integer" in types(schema) and "/not" not in where:
            assert "minimum" in schema, where
            if "maximum" not in schema:
                unbounded.add(where.split()[1])
    assert unbounded == {"page", "page_size"}


def test_every_text_of_a_request_refuses_nul() -> None:
    """A string of a request is an enumeration, has a format, or has a pattern that NUL does not match."""
    for where, schema in request_schemas():
        # An identifier in a path is looked up, not stored: with NUL in it, it names nothing.
        in_path = len(where.split()) > 1 and f"{{{where.split()[1]}}}" in OPERATIONS[where.split()[0]][0]
        if "string" in types(schema) and not in_path and "const" not in schema and "enum" not in schema:
            if schema.get("format") in {"uuid", "date", "date-time", "binary"} or "/not/" in f"{where}/":
                continue
            assert not re.search(schema["pattern"], "a\x00b"), where


def test_no_pattern_depends_on_the_engine() -> None:
    r"""No pattern has \d, \w or \s, which in some engines match other scripts too."""
    patterns = [node["pattern"] for _, node in nodes(DOCUMENT) if isinstance(node.get("pattern"), str)]
    assert patterns
    assert [pattern for pattern in patterns if re.search(r"\\[dDwWsSbB]", pattern)] == []


def test_only_the_settings_and_our_own_operations_refuse_unknown_fields() -> None:
    """A body is open, except that of PATCH /sms/settings (docs/interface.md#4.4) and those under /manage.

    So are the objects within, but for whom to leave out: a misspelt name there would leave out nobody.
    """
    closed = {where for where, schema in request_schemas() if schema.get("additionalProperties") is False}
    ours = {key: one for key, (_, _, one) in OPERATIONS.items() if is_ours(key) and "requestBody" in one}
    bodies = {f"{key} body" for key in ours if key not in BYTES}
    within = {f"{key} body/steps/items" for key in ("createFlow", "updateFlow")} | {
        *("setPrices body/prices/items", "decideDispatches body/which", "setContactHours body/narrower_hours/items"),
    }
    assert {where for where in closed if not where.endswith(("/schedule", "/leave_out"))} == {
        "updateSmsSettings body"
    } | bodies | within


def test_countries_exist() -> None:
    """The long list names only what the library knows."""
    assert set(SCHEMAS["Country"]["enum"]) <= set(holidays.list_supported_countries())
    assert SCHEMAS["Country"]["enum"] == sorted(set(SCHEMAS["Country"]["enum"]))


def test_every_time_zone_fits_and_the_examples_exist() -> None:
    """A time zone is a text that every name of the database matches, and no enumeration: names collide."""
    zone = SCHEMAS["TimeZone"]
    assert (zone["type"], zone["format"], "enum" in zone) == ("string", "iana-time-zone", False)
    names = zoneinfo.available_timezones()
    assert [name for name in names if not validator(zone).is_valid(name)] == []
    assert set(zone["examples"]) <= names


# -------------------------------------------------------------------------------------------------- what tools can take


def test_no_schema_is_written_as_tools_drop_it() -> None:
    """Conditions are said by `not`, `allOf` joins objects only, and no dialect is named: some then check nothing."""
    assert "jsonSchemaDialect" not in DOCUMENT
    for where, node in nodes(DOCUMENT["components"]["schemas"]):
        assert not {"if", "then", "else", "$defs", "$dynamicRef"} & set(node), where
        for part in node.get("allOf", []):
            joined = resolve(part)
            assert "allOf" in joined or joined["type"] == "object", where


def test_no_schema_refers_to_itself() -> None:
    """Generators of clients drop what is recursive, and what needs it."""

    def refuse_a_circle(schema: Json, path: tuple[str, ...]) -> None:
        if isinstance(schema, dict):
            reference = schema.get("$ref")
            if isinstance(reference, str):
                assert reference not in path, path
                refuse_a_circle({**resolve(schema)}, (*path, reference))
            else:
                for child in schema.values():
                    refuse_a_circle(child, path)
        elif isinstance(schema, list):
            for child in schema:
                refuse_a_circle(child, path)

    for name in SCHEMAS:
        refuse_a_circle({"$ref": f"#/components/schemas/{name}"}, ())


def test_brackets_close_further_in_than_their_key() -> None:
    """YAML 1.2 wants it, PyYAML does not, and the readers of most tools stop at it."""
    assert [line for line in PATH.read_text(encoding="utf-8").splitlines() if re.fullmatch(r" *[\]}]", line)] == []


# ------------------------------------------------------------------------------------------------ rules between fields

WEEK = {"monday": [{"start": "09:00", "end": "17:00"}]}
STORED = {"enabled": True, "timezone": "Europe/Lisbon", "schedule": WEEK, "batchConcurrency": 5}
BY_DAY = {"timezone": "UTC", "days": {"monday": {"enabled": True, "start": "09:00", "end": "17:00"}}}
FOR_DAYS = {"timezone": "UTC", "days": ["mon", "Tuesday"], "start": "09:00", "end": "24:00"}
PERSON = {"phone_number": "1"}
SMS = {"name": "n", "message_body": "m", "recipients": [PERSON]}
CALL = {"agent_id": UUID, "name": "n", "recipients": [PERSON]}


def without(body: dict[str, Json], *names: str) -> dict[str, Json]:
    """Return a body without some of its fields."""
    return {name: value for name, value in body.items() if name not in names}


NO_TEXT = without(SMS, "message_body")
START = "2026-12-01T09:00:00Z"

HOURS: list[tuple[str, Json, bool]] = [
    ("null", None, True),
    ("stored", STORED, True),
    ("stored, smallest", without(STORED, "enabled", "batchConcurrency"), True),
    ("by day", BY_DAY, True),
    ("by day, a closed one", {**BY_DAY, "days": {"SUN": {"enabled": False}}}, True),
    ("by day, no window", {**BY_DAY, "days": {"sun": {"enabled": True}}}, False),
    ("by day, no such day", {**BY_DAY, "days": {"someday": {"enabled": False}}}, False),
    ("for days", FOR_DAYS, True),
    ("for days, no end", without(FOR_DAYS, "end"), False),
    ("for days, no such day", {**FOR_DAYS, "days": ["mond"]}, False),
    ("both forms", {**STORED, **BY_DAY}, False),
    ("empty", {}, False),
    ("text", "9 to 5", False),
    ("zone with a blank", {**STORED, "timezone": "Europe/Lisbon "}, False),
    ("empty zone", {**STORED, "timezone": ""}, False),
    ("no zone", without(STORED, "timezone"), False),
    ("40 at once", {**STORED, "batchConcurrency": 40}, True),
    ("41 at once", {**STORED, "batchConcurrency": 41}, False),
    ("no time", {**STORED, "schedule": {"monday": [{"start": "9:00", "end": "17:00"}]}}, False),
    ("25:00", {**STORED, "schedule": {"monday": [{"start": "09:00", "end": "25:00"}]}}, False),
    ("24:00 as a start", {**STORED, "schedule": {"monday": [{"start": "24:00", "end": "17:00"}]}}, False),
    ("over midnight", {**STORED, "schedule": {"friday": [{"start": "22:00", "end": "02:00"}]}}, True),
    ("misspelt day", {**STORED, "schedule": {"Monday": []}}, False),
]

HOLIDAYS: list[tuple[str, Json, bool]] = [
    ("null", None, True),
    ("country", {"country": "US"}, True),
    ("dates", {"country": "NO", "holidays": [{"date": "2026-12-25", "name": "Jul", "enabled": False}]}, True),
    ("a part of the country", {"country": "GB", "subdivision": "ENG"}, True),
    ("part null", {"country": "GB", "subdivision": None}, False),
    ("part empty", {"country": "GB", "subdivision": ""}, False),
    ("no country", {"holidays": []}, False),
    ("no such country", {"country": "ZZ"}, False),
    ("no such date", {"country": "US", "holidays": [{"date": "2026-02-30"}]}, False),
]

BODIES: list[tuple[str, str, Json, bool]] = [
    # Which fields a call needs, and of which types they are.
    ("createCall", "smallest", {"agent_id": UUID, "to": "+14155550102"}, True),
    ("createCall", "unknown fields are ignored", {"agent_id": UUID, "to": "+14155550102", "x": 1}, True),
    ("createCall", "variables of any type", {"agent_id": UUID, "to": "1415555", "variables": {"a": [1, None]}}, True),
    ("createCall", "NUL in variables", {"agent_id": UUID, "to": "1415555", "variables": {"a": "\x00"}}, False),
    ("createCall", "NUL in a key", {"agent_id": UUID, "to": "1415555", "variables": {"\x00": 1}}, False),
    ("createCall", "agent is no UUID", {"agent_id": "a", "to": "+14155550102"}, False),
    ("createCall", "no object", [], False),
    # The message of an SMS campaign, docs/interface.md#4.3.
    ("createSmsCampaign", "smallest", SMS, True),
    ("createSmsCampaign", "empty message", {**SMS, "message_body": ""}, True),
    ("createSmsCampaign", "no message", NO_TEXT, False),
    ("createSmsCampaign", "custom without message", {**NO_TEXT, "sms_message_source": "custom"}, False),
    ("createSmsCampaign", "flow", {**NO_TEXT, "sms_message_source": "flow", "sms_flow_id": UUID}, True),
    ("createSmsCampaign", "flow and message", {**SMS, "sms_message_source": "flow", "sms_flow_id": UUID}, True),
    ("createSmsCampaign", "flow without id", {**SMS, "sms_message_source": "flow"}, False),
    ("createSmsCampaign", "flow with null", {**SMS, "sms_message_source": "flow", "sms_flow_id": None}, False),
    ("createSmsCampaign", "custom with a null flow", {**SMS, "sms_flow_id": None}, True),
    ("createSmsCampaign", "flow is no UUID", {**SMS, "sms_flow_id": "x"}, False),
    # Other fields of it.
    ("createSmsCampaign", "any channel", {**SMS, "channel": ["call"]}, True),
    ("createSmsCampaign", "unknown fields", {**SMS, "batch": "\x00"}, True),
    ("createSmsCampaign", "NUL in the name", {**SMS, "name": "a\x00"}, False),
    ("createSmsCampaign", "name of two lines", {**SMS, "name": "a\nb\n"}, True),
    *[("createSmsCampaign", f"carrier {name}", {**SMS, "sms_carrier": name}, True) for name in [*CARRIERS, None]],
    ("createSmsCampaign", "unknown carrier", {**SMS, "sms_carrier": "Twilio"}, False),
    ("createSmsCampaign", "empty sending number", {**SMS, "sms_from_number": ""}, True),
    ("createSmsCampaign", "empty recipients", {**SMS, "recipients": []}, False),
    ("createSmsCampaign", "empty phone number", {**SMS, "recipients": [{"phone_number": ""}]}, False),
    ("createSmsCampaign", "any variables", {**SMS, "recipients": [{**PERSON, "custom_variables": {"a": 1}}]}, True),
    # The schedule.
    ("createSmsCampaign", "scheduled", {**SMS, "schedule_type": "scheduled", "scheduled_start_at": START}, True),
    ("createSmsCampaign", "offset", {**SMS, "scheduled_expires_at": "2026-12-01T09:00:00.123456-08:00"}, True),
    ("createSmsCampaign", "scheduled without start", {**SMS, "schedule_type": "scheduled"}, False),
    ("createCampaign", "start null", {**CALL, "schedule_type": "scheduled", "scheduled_start_at": None}, False),
    ("createSmsCampaign", "immediate with null", {**SMS, "scheduled_start_at": None}, True),
    ("createSmsCampaign", "no timestamp", {**SMS, "scheduled_start_at": "tomorrow"}, False),
    ("createSmsCampaign", "no such day", {**SMS, "scheduled_start_at": "2026-02-30T09:00:00Z"}, False),
    ("createSmsCampaign", "first year", {**SMS, "scheduled_start_at": "0001-01-01T00:00:00+23:59"}, False),
    ("createSmsCampaign", "last year", {**SMS, "scheduled_start_at": "9999-12-31T23:59:59-23:59"}, False),
    # Business hours: the stored form and two days-shaped ones.
    *[("createSmsCampaign", f"hours {name}", {**SMS, "business_hours_config": hours}, valid)
      for name, hours, valid in HOURS],
    # Holidays.
    *[("createSmsCampaign", f"holidays {name}", {**SMS, "holidays_config": days}, valid)
      for name, days, valid in HOLIDAYS],
    # Both channels.
    ("createCampaign", "call", CALL, True),
    ("createCampaign", "call, by name", {**CALL, "channel": "call"}, True),
    ("createCampaign", "sms", {**SMS, "channel": "sms"}, True),
    ("createCampaign", "sms without channel", SMS, False),
    ("createCampaign", "sms without message", {**NO_TEXT, "channel": "sms"}, False),
    ("createCampaign", "call body as sms", {**CALL, "channel": "sms"}, False),
    ("createCampaign", "both bodies at once", {**CALL, **SMS}, True),
    ("createCampaign", "unknown channel", {**CALL, "channel": "fax"}, False),
    ("createCampaign", "channel null", {**CALL, "channel": None}, False),
    ("createCampaign", "no agent", without(CALL, "agent_id"), False),
    ("createCampaign", "scheduled without start", {**CALL, "schedule_type": "scheduled"}, False),
    ("createCampaign", "trunk null", {**CALL, "sip_trunk_id": None}, True),
    ("createCampaign", "group", {**CALL, "cli_mode": "group", "cli_group_config": [
        {"phoneNumberId": "n1", "phoneE164": "+14155550199", "count": 50}]}, True),
    ("createCampaign", "group without numbers", {**CALL, "cli_mode": "group"}, False),
    ("createCampaign", "group of none", {**CALL, "cli_mode": "group", "cli_group_config": []}, False),
    ("createCampaign", "group of null", {**CALL, "cli_mode": "group", "cli_group_config": None}, False),
    ("createCampaign", "count 0", {**CALL, "cli_group_config": [
        {"phoneNumberId": "n1", "phoneE164": "+14155550199", "count": 0}]}, False),
    ("createCampaign", "double dial as number", {**CALL, "double_dial": 1}, False),
    # Settings, docs/interface.md#4.4.
    ("updateSmsSettings", "nothing", {}, True),
    ("updateSmsSettings", "unknown field", {"footer": "x"}, False),
    ("updateSmsSettings", "empty footer", {"footer_text": ""}, True),
    # Single messages.
    ("sendSms", "smallest", {"to": "+14155550102", "body": "x"}, True),
    ("sendSms", "no text", {"to": "+14155550102", "body": ""}, False),
    ("sendSms", "nulls", {"to": "+14155550102", "body": "x", "from_number": None, "carrier": None}, True),
    ("sendSms", "unknown carrier", {"to": "+14155550102", "body": "x", "carrier": "bird"}, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation_id", "name", "body", "valid"),
    BODIES,
    ids=[f"{operation_id}: {name}" for operation_id, name, _, _ in BODIES],
)
def test_a_body_is_accepted_or_refused(operation_id: str, name: str, body: Json, valid: bool) -> None:
    """The schemas of bodies say the interface's conditional rules, formats included."""
    errors = [error.message for error in validator(body_schema(operation_id)).iter_errors(body)]
    assert (not errors) is valid, errors


# -------------------------------------------------------------------------------------------------------- generators


@functools.cache
def generators() -> schemathesis.BaseSchema:
    """Return what makes requests, read once for all operations."""
    return schemathesis.openapi.from_dict(copy.deepcopy(DOCUMENT))


@pytest.mark.sample(24, turn=8)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["positive", "negative"])
@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_requests_can_be_generated(operation_id: str, mode: GenerationMode) -> None:
    """Schemathesis makes valid and invalid requests of each operation, and bodies meant as valid are."""
    path, method, operation = OPERATIONS[operation_id]
    strategy = generators()[path][method].as_strategy(generation_mode=mode)
    cases: list[schemathesis.Case] = []

    # The body of a generated request has to be judged inside: a failure names the case.
    @settings(
        max_examples=8,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],  # of a machine, not of the schema
    )
    @given(strategy)
    def generate(case: schemathesis.Case) -> None:
        cases.append(case)
        # A body that may be left out sometimes is.
        has_json = "requestBody" in operation and operation_id not in BYTES
        if mode is GenerationMode.POSITIVE and has_json and not isinstance(case.body, NotSet):
            assert [error.message for error in validator(body_schema(operation_id)).iter_errors(case.body)] == []

    generate()
    assert cases
