"""Later data of a campaign in a replaced database, which the database that was restored in its place lacks."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class ContactedMeanwhile:
    """The contacts of a restored campaign for which the replaced database has later data.

    Attributes:
        contacts: Contacts whose requests are taken over, so that none is repeated.
        sent: Those of them to whom something was sent, or may have been: the others failed or were put off.
        unknown: Those of them with a request whose outcome is unknown; it is looked up at the provider.
        reported: Contacts with nothing later there but reports, such as the end of a call.
        left_out: Contacts who had opted out, were erased, or whom a person had left out: they are left out here too.
        kept: Contacts to whom this database has sent since it was restored; they stay as they are.
        missing: Contacts whom the replaced database has alone: they were added after the backup.
    """

    contacts: int = 0
    sent: int = 0
    unknown: int = 0
    reported: int = 0
    left_out: int = 0
    kept: int = 0
    missing: int = 0

    def __add__(self, other: ContactedMeanwhile) -> ContactedMeanwhile:
        """Return the sum, field by field."""
        return ContactedMeanwhile(
            **{
                field.name: getattr(self, field.name) + getattr(other, field.name)
                for field in attrs.fields(ContactedMeanwhile)
            }
        )


@attrs.frozen(kw_only=True)
class ListedContacts:
    """The contacts of a restored campaign with a request that the provider alone lists.

    Attributes:
        provider: The provider that was asked; None if it cannot list what it was sent.
        contacts: Contacts with a listed request that neither database has.
        ambiguous: Those of them whose request may have been another one: without this text, or one of several.
    """

    provider: str | None = None
    contacts: int = 0
    ambiguous: int = 0

    def __add__(self, other: ListedContacts) -> ListedContacts:
        """Return the sum, of the provider that is named."""
        return ListedContacts(
            provider=self.provider or other.provider,
            contacts=self.contacts + other.contacts,
            ambiguous=self.ambiguous + other.ambiguous,
        )
