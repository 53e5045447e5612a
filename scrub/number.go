package scrub

import (
	"math/big"
	"regexp"
	"strings"
	"sync"
)

// numbers finds what is known by its digits: cards, social security numbers, telephones and bank accounts.
func numbers(text string) []span {
	var found []span
	for i := 0; i < len(text); i++ {
		c := text[i]
		if (c < '0' || c > '9') && c != '+' && c != '(' || i > 0 && isWord(text[i-1]) {
			continue
		}
		run := digitRun(text, i)
		if run.digits < 9 {
			i = max(i, run.end-1)
			continue
		}
		if f, ok := run.judge(text); ok {
			found = append(found, f)
			i = f.end - 1
			continue
		}
		if c != '+' && c != '(' {
			i = run.firstEnd - 1
		}
	}
	return append(found, ibans(text)...)
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

// maxDigits is more than any number has that is looked for.
const maxDigits = 24

// run is a number as people write it: digits with single separators between them.
type run struct {
	start    int
	digits   int
	value    [maxDigits]byte
	groups   []int  // how many digits each group has
	ends     []int  // where each group ends in the text
	firstEnd int    // where its first group ends
	end      int    // where its last group ends
	marks    string // the separators
	plus     bool   // it begins with a plus
	brackets bool   // its first group is in brackets, or the one behind the country's
}

// digitRun reads the number that begins somewhere.
func digitRun(text string, start int) run {
	r := run{start: start}
	i, group := start, 0
	endGroup := func() {
		if group > 0 {
			r.groups, r.ends = append(r.groups, group), append(r.ends, i)
			if len(r.groups) == 1 {
				r.firstEnd = i
			}
			r.end, group = i, 0
		}
	}
	if i < len(text) && text[i] == '+' {
		r.plus = true
		i++
	}
	for ; i < len(text) && len(r.groups) < 8; i++ {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			if r.digits < maxDigits {
				r.value[r.digits] = c
			}
			r.digits++
			group++
			continue
		case c == '(' && group == 0 && !r.brackets:
			r.brackets = true
			continue
		case c == ')' && group > 0 && r.brackets:
			endGroup()
			if i+1 < len(text) && text[i+1] == ' ' {
				i++
			}
			r.marks += ")"
			continue
		case (c == ' ' || c == '-' || c == '.') && group > 0 && i+1 < len(text) && (isDigit(text[i+1]) || text[i+1] == '('):
			endGroup()
			r.marks += string(c)
			continue
		}
		break
	}
	endGroup()
	return r
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// judge says what the number is. It may be followed by another, so its first groups count alone too.
func (r run) judge(text string) (span, bool) {
	for n := len(r.groups); n > 0; n-- {
		part := r.first(n)
		if part.digits > maxDigits || part.end < len(text) && isWord(text[part.end]) {
			continue
		}
		for _, kind := range []struct {
			family Family
			is     func() bool
		}{{Card, part.isCard}, {SSN, part.isSSN}, {Phone, part.isPhone}} {
			if kind.is() {
				return span{part.start, part.end, kind.family, string(kind.family)}, true
			}
		}
	}
	return span{}, false
}

// first gives the number's first groups.
func (r run) first(n int) run {
	part := r
	part.groups, part.end, part.digits = r.groups[:n], r.ends[n-1], 0
	for _, g := range part.groups {
		part.digits += g
	}
	part.marks = r.marks[:min(len(r.marks), n-1)]
	return part
}

func (r *run) text() string { return string(r.value[:min(r.digits, maxDigits)]) }

// isCard goes by the issuer's range, the length and Luhn's check.
func (r *run) isCard() bool {
	digits := r.text()
	if r.plus || r.brackets || strings.Contains(r.marks, ".") || !isIssued(digits) {
		return false
	}
	if len(r.groups) > 1 && (r.groups[0] != 4 || strings.Trim(r.marks, r.marks[:1]) != "") {
		return false
	}
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// isIssued goes by what the issuers of cards use.
func isIssued(digits string) bool {
	switch len(digits) {
	case 13, 19:
		return digits[0] == '4' || len(digits) == 19 && strings.HasPrefix(digits, "62")
	case 14:
		return digits[:2] == "36" || digits[:2] == "38" || digits[:3] >= "300" && digits[:3] <= "305"
	case 15:
		return digits[:2] == "34" || digits[:2] == "37"
	case 16:
		return digits[0] == '4' || digits[:2] >= "51" && digits[:2] <= "55" || digits[:4] >= "2221" && digits[:4] <= "2720" ||
			digits[:4] == "6011" || digits[:2] == "65" || digits[:3] >= "644" && digits[:3] <= "649" || digits[:2] == "62" || digits[:4] >= "3528" && digits[:4] <= "3589"
	}
	return false
}

// isSSN goes by the form and by what is never given out.
func (r *run) isSSN() bool {
	if r.plus || r.brackets || len(r.groups) != 3 || r.groups[0] != 3 || r.groups[1] != 2 || r.groups[2] != 4 || r.marks != "--" && r.marks != "  " {
		return false
	}
	d := r.text()
	return d[:3] != "000" && d[:3] != "666" && d[0] != '9' && d[3:5] != "00" && d[5:] != "0000"
}

// isPhone takes international numbers, and those of North America in the forms in which people write them.
func (r *run) isPhone() bool {
	d := r.text()
	if r.plus {
		return r.digits >= 9 && r.digits <= 15 && d[0] != '0' && (len(r.groups) > 1 || r.digits >= 10)
	}
	if len(r.groups) == 4 && r.groups[0] == 1 && d[0] == '1' {
		d = d[1:]
	} else if len(r.groups) != 3 {
		return false
	}
	last := len(r.groups)
	if len(d) != 10 || r.groups[last-1] != 4 || r.groups[last-2] != 3 || r.groups[last-3] != 3 {
		return false
	}
	return d[0] >= '2' && d[3] >= '2'
}

var ibanPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b`)
})

// ibans finds bank accounts.
func ibans(text string) []span {
	if !mayHaveIBAN(text) {
		return nil
	}
	var found []span
	for _, place := range ibanPattern().FindAllStringIndex(text, -1) {
		for end := place[1]; end-place[0] >= 15; end-- { // a word in capitals may follow
			if (end == len(text) || !isWord(text[end])) && isIBAN(text[place[0]:end]) {
				found = append(found, span{place[0], end, IBAN, "iban"})
				break
			}
		}
	}
	return found
}

// mayHaveIBAN looks for two capitals and two digits, which few texts have.
func mayHaveIBAN(text string) bool {
	for i := 0; i+4 < len(text); i++ {
		if isDigit(text[i+2]) && isDigit(text[i+3]) && text[i] >= 'A' && text[i] <= 'Z' && text[i+1] >= 'A' && text[i+1] <= 'Z' {
			return true
		}
	}
	return false
}

// isIBAN goes by the check digits: ISO 7064, mod 97.
func isIBAN(text string) bool {
	text = strings.ReplaceAll(text, " ", "")
	if len(text) < 15 || len(text) > 34 {
		return false
	}
	var digits strings.Builder
	for _, c := range text[4:] + text[:4] {
		if c >= 'A' {
			digits.WriteString(big.NewInt(int64(c - 'A' + 10)).String())
		} else {
			digits.WriteRune(c)
		}
	}
	number, ok := new(big.Int).SetString(digits.String(), 10)
	return ok && new(big.Int).Mod(number, big.NewInt(97)).Int64() == 1
}
