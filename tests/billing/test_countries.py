"""Countries, and the VAT ids that fit them."""

import pycountry
import pytest

from billing.countries import (
    MEANT,
    MEMBER_STATES,
    PREFIXES,
    TREATED_AS,
    country_complaint,
    vat_id_complaint,
)

# One for each member state, with its check digits.
VALID = {
    "AT": "ATU13585627",
    "BE": "BE0428759497",
    "BG": "BG175074752",
    "CY": "CY10259033P",
    "CZ": "CZ25123891",
    "DE": "DE136695976",
    "DK": "DK13585628",
    "EE": "EE100931558",
    "ES": "ESB58378431",
    "FI": "FI20774740",
    "FR": "FR40303265045",
    "GR": "EL094259216",
    "HR": "HR33392005961",
    "HU": "HU12892312",
    "IE": "IE6433435F",
    "IT": "IT00743110157",
    "LT": "LT119511515",
    "LU": "LU15027442",
    "LV": "LV40003521600",
    "MT": "MT11679112",
    "NL": "NL004495445B01",
    "PL": "PL8567346215",
    "PT": "PT501964843",
    "RO": "RO18547290",
    "SE": "SE123456789701",
    "SI": "SI50223054",
    "SK": "SK2022749619",
}


def test_every_member_state_is_known():
    assert VALID.keys() == MEMBER_STATES
    for code in MEMBER_STATES | PREFIXES.keys() | TREATED_AS.keys() | set(MEANT.values()):
        assert country_complaint(code) == ""


@pytest.mark.parametrize("country", sorted(VALID))
def test_a_vat_id_fits_its_country_alone(country):
    vat_id = VALID[country]
    assert vat_id_complaint(country, vat_id) == ""
    others = MEMBER_STATES - {country}
    assert all("begins with" in vat_id_complaint(other, vat_id) for other in others)


@pytest.mark.parametrize("country", sorted(VALID))
def test_another_digit_or_length_is_refused(country):
    vat_id = VALID[country]
    place = max(n for n, character in enumerate(vat_id) if character.isdigit() and n < 11)
    digits = [vat_id[:place] + str(digit) + vat_id[place + 1 :] for digit in range(10)]
    # Of ten last digits one has the right check digits, in some states two.
    assert sum(not vat_id_complaint(country, text) for text in digits) <= 2
    # Romania's have 2 to 10 digits.
    lengths = () if country == "RO" else (vat_id[:-1], vat_id + "0")
    for wrong in (*lengths, vat_id[:2] + vat_id, vat_id[:2]):
        assert "check digits" in vat_id_complaint(country, wrong)


@pytest.mark.parametrize(
    ("country", "vat_id", "complaint"),
    [
        ("FR", "XX00", "begins with FR"),
        ("FR", "DE99", "begins with FR"),
        ("FR", "FR00000000000", "check digits"),
        ("GR", "GR094259216", "begins with EL"),
        ("US", "DE136695976", "begins with US"),
        ("", "DE136695976", "Set the country too"),
        ("GB", "XI980780684", ""),
        ("GB", "GB980780684", ""),
        ("MC", "FR53000004605", ""),
        ("CH", "CHE123456788", ""),
        ("", "", ""),
        ("FR", "", ""),
    ],
)
def test_what_is_wrong_is_said(country, vat_id, complaint):
    said = vat_id_complaint(country, vat_id)
    assert complaint in said
    assert bool(complaint) == bool(said)


def test_countries_are_those_of_iso_3166():
    assert country_complaint("EL") == "Use GR, the country's code of ISO 3166-1."
    assert "Use GB" in country_complaint("UK")
    assert "Use GB" in country_complaint("XI")
    for code in ("ZZ", "AA", "EU", "AN", "XK"):
        assert "no country" in country_complaint(code)
    assert sum(not country_complaint(country.alpha_2) for country in pycountry.countries) == 249
