"""Lists in which an earlier program damaged characters: loaded as they are, with a warning."""

from __future__ import annotations

import pytest

from outreach.server_support import decoded_once
from tests.cli.conftest import Cli, Write

PLAIN = ("--name", "C", "--message", "Hi {{first_name}}", "--from", "+14155550100")
LIST = (
    "phone,first_name,city\n"
    "+14155550101,M\ufffdller,Z\ufffdrich\n"
    "+14155550102,MÃ¼ller,Köln\n"
    "+14155550103,José,Itâ€™s\n"
    "+14155550104,Anna,Berlin\n"
)


@pytest.mark.parametrize("dry_run", [False, True])
def test_damaged_cells_are_counted_and_loaded_as_they_are(
    cli: Cli, workspace_id: str, csv_file: Write, dry_run: bool
) -> None:
    """Each row counts once; a name may be meant so, and is not changed."""
    file = csv_file(LIST)
    command = ("campaigns", "import", workspace_id, file, *PLAIN, *(("--dry-run",) if dry_run else ()))
    made = cli.ask(*command)
    assert made["damaged"] == [
        {
            "what": "replaced",
            "rows": 1,
            "first": [{"row": 2, "column": "first_name", "cell": "M\ufffdller", "probably": None}],
        },
        {
            "what": "encoded_twice",
            "rows": 2,
            "first": [
                {"row": 3, "column": "first_name", "cell": "MÃ¼ller", "probably": "Müller"},
                {"row": 4, "column": "city", "cell": "Itâ€™s", "probably": "It’s"},
            ],
        },
    ]
    if not dry_run:
        contacts = cli.ask("campaigns", "recipients", made["id"])
        assert [one["first_name"] for one in contacts] == ["M\ufffdller", "MÃ¼ller", "José", "Anna"]
    result = cli.run("campaigns", "import", workspace_id, file, *PLAIN, "--dry-run")
    said = " ".join(result.stderr.split())
    assert (
        "1 row has characters that were lost before this file was written (\ufffd): row 2, first_name 'M\ufffdller'"
        in said
    )
    assert (
        "2 rows have text that was probably encoded twice: row 3, first_name 'MÃ¼ller', probably 'Müller'; row 4"
        in said
    )


def test_the_first_rows_of_many_are_shown(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """The count is of all."""
    rows = "".join(f"+141555501{n:02},Jos\ufffd {n}\n" for n in range(20))
    [found] = cli.ask("campaigns", "import", workspace_id, csv_file(f"phone,first_name\n{rows}"), *PLAIN)["damaged"]
    assert (found["rows"], [one["row"] for one in found["first"]]) == (20, [2, 3, 4])


def test_a_damaged_header_is_warned_of(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """A placeholder would not find its column."""
    [found] = cli.ask("campaigns", "import", workspace_id, csv_file("phone,StraÃŸe\n+14155550101,A\n"), *PLAIN)[
        "damaged"
    ]
    assert found["first"] == [{"row": 1, "column": "header", "cell": "StraÃŸe", "probably": "Straße"}]


def test_a_list_without_damage_has_no_warning(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Letters of all scripts, and French quotation marks."""
    rows = "+14155550101,«\xa0café\xa0»\n+14155550102,MENÜ»\n+14155550103,Ångström\n+14155550104,Иван\n"
    file = csv_file(f"phone,first_name\n{rows}")
    assert cli.ask("campaigns", "import", workspace_id, file, *PLAIN)["damaged"] == []
    assert "encoded twice" not in cli.run("campaigns", "import", workspace_id, file, *PLAIN, "--dry-run").stderr


def test_a_damaged_text_of_a_campaign_is_warned_of(cli: Cli, workspace_id: str, csv_file: Write) -> None:
    """Word by word, in import and preflight."""
    text = ("--name", "C", "--message", "Hi, the cafÃ© is open, caf\ufffd!", "--from", "+14155550100")
    made = cli.ask("campaigns", "import", workspace_id, csv_file("phone\n+14155550101\n"), *text)
    assert [(one["written"], one["meant"]) for one in made["text_warnings"]] == [
        ("cafÃ©", "café"),
        ("caf\ufffd!", None),
    ]
    assert cli.ask("campaigns", "preflight", made["id"])["text_warnings"] == made["text_warnings"]


@pytest.mark.parametrize(
    "text",
    "Müller José Łukasz Žižek Øre Иван Ελένη שלום محمد 日本 한국 œuvre ’so’ “x” –x €5 😀 Å Ü".split(),  # noqa: SIM905 - words
)
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_a_text_that_was_encoded_twice_is_known(text: str, encoding: str) -> None:
    """In all scripts; the text itself is not taken for one."""
    letters = (bytes([one]) for one in text.encode())
    twice = "".join(one.decode(encoding, "ignore") or one.decode("latin-1") for one in letters)
    assert decoded_once(twice) == text
    assert decoded_once(text) is None
