package scrub

import "strings"

// The length of the shortest and the longest IBAN.
const (
	minIBAN = 15
	maxIBAN = 34
)

// ibanCountries are the countries with IBANs.
const ibanCountries = "AD AE AL AT AZ BA BE BG BH BI BR BY CH CR CY CZ DE DJ DK DO EE EG ES FI FK FO FR GB GE GI GL GR GT HN HR HU IE IL IQ IS IT " +
	"JO KW KZ LB LC LI LT LU LV LY MC MD ME MK MN MR MT MU NI NL NO OM PK PL PS PT QA RO RS RU SA SC SD SE SI SK SM SO ST SV TL TN TR UA VA VG XK YE "

// ibanAt finds the IBAN that begins at a place: two capitals, two check digits, and up to 30 letters and
// digits. They stand in groups of four or without blanks.
func ibanAt(s string, at int) (span, bool) {
	if at+minIBAN > len(s) || !isUpper(s[at+1]) || !isDigit(s[at+2]) || !isDigit(s[at+3]) ||
		!strings.Contains(ibanCountries, s[at:at+2]+" ") || wordBefore(s, at) {
		return span{}, false
	}
	var chars [maxIBAN]byte
	n := 0
	best := 0
	for i := at; i < len(s) && n < maxIBAN; {
		if !isUpper(s[i]) && !isDigit(s[i]) {
			mark, width := separator(s, i, false)
			if n%4 != 0 || mark != ' ' && mark != '-' || i+width >= len(s) || !isUpper(s[i+width]) && !isDigit(s[i+width]) {
				break
			}
			i += width
		}
		chars[n] = s[i]
		n++
		i++
		if n >= minIBAN && !wordAt(s, i) && isIBAN(chars[:n]) {
			best = i
		}
	}
	return span{at, best, IBAN, "iban"}, best > 0
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// isIBAN checks the check digits: ISO 7064, mod 97.
func isIBAN(chars []byte) bool {
	rest := 0
	for i := range chars {
		c := chars[(i+4)%len(chars)]
		if isDigit(c) {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return rest == 1
}
