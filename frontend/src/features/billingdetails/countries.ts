/** The codes of ISO 3166-1 alpha-2. */
const CODES =
  "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR " +
  "BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ " +
  "EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW " +
  "GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY " +
  "KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV " +
  "MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY " +
  "QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG " +
  "TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW";

export interface Country {
  value: string;
  label: string;
}

/** Returns all countries sorted by their English names. */
export function countries(): Country[] {
  const names = new Intl.DisplayNames("en", { type: "region" });
  return CODES.split(" ")
    .map((value) => ({ value, label: names.of(value) ?? value }))
    .sort((a, b) => a.label.localeCompare(b.label, "en"));
}

/** Returns what is wrong with a VAT id; null where nothing is. The service checks it again. */
export function vatIdComplaint(vatId: string): string | null {
  const plain = plainVatId(vatId);
  if (plain === "" || /^[A-Z]{2}[A-Z0-9+*]{2,13}$/.test(plain)) return null;
  return "Two letters of the country, then 2 to 13 letters and digits";
}

/** Returns a VAT id without spaces and dots. */
export function plainVatId(vatId: string): string {
  return vatId.replace(/[\s.-]/g, "").toUpperCase();
}

/** Returns the lines of a typed address, without empty ones. */
export function addressLines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}
