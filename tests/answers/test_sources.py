"""Every answer says which theorems it rests on."""

import pytest

from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.answers.sources import references_of
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import NOTIONS

EVERY: dict[str, type] = {
    **{name: type(one) for name, one in ACCOUNTANTS.items()},
    **MECHANISMS,
    **NOTIONS,
}


@pytest.mark.parametrize("name", EVERY)
def test_every_accountant_mechanism_and_notion_has_references(name: str) -> None:
    text = references_of(EVERY[name])
    assert len(text) > 20
    assert ">>>" not in text
    assert "\n" not in text
