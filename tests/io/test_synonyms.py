"""Names that others use lead to the public one."""

from hockeystick._synonyms import SYNONYMS, meant
from hockeystick.io.vocabulary import ENCODERS, RELEASES


def test_a_synonym_is_no_public_name_and_stands_for_one() -> None:
    public = {name.lower() for name in RELEASES}
    of_encoders = {f"Encoder.{kind}" for kind in ENCODERS}
    assert set(SYNONYMS.values()) <= {*RELEASES, "FDP"} | of_encoders
    assert not public & SYNONYMS.keys()


def test_without_replacement_is_never_taken_for_with_it() -> None:
    samplings = ["fixed-size", "with-replacement", "poisson"]
    for name in ("without_replacement", "WithoutReplacement", "sample w/o replacement", "withoutt"):
        assert meant(name, samplings) != "with-replacement"
        assert meant(name, RELEASES) != "WithReplacementSubsampled"
    assert meant("WithoutReplacement", RELEASES) == "FixedSizeSubsampled"
    assert meant("with-replacment", samplings) == "with-replacement"
