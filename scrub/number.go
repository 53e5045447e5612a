package scrub

import "strings"

// numbers adds numbers recognised by their digits: cards, social security numbers, telephones and bank
// accounts.
func numbers(s string, found []span) []span {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			if f, ok := ibanAt(s, i); ok {
				found = append(found, f)
				i = f.end - 1
			}
			continue
		}
		if !isDigit(c) && c != '+' && c != '(' || !beginsNumber(s, i) {
			continue
		}
		r := digitRun(s, i)
		if r.digits < 9 {
			i = max(i, r.end-1)
			continue
		}
		if f, ok := r.judge(s); ok {
			found = append(found, f)
			i = f.end - 1
			continue
		}
		if c != '+' && c != '(' {
			i = r.ends[0] - 1
		}
	}
	return found
}

// beginsNumber reports whether a number may begin at a place: not in a word, nor behind the point of another.
func beginsNumber(s string, at int) bool {
	return !wordBefore(s, at) && (at < 2 || s[at-1] != '.' || !isDigit(s[at-2]))
}

const (
	// maxDigits is more digits than any sought number has.
	maxDigits = 24
	maxGroups = 8
)

// run is a number as people write it: digits with single separators between them.
type run struct {
	start    int
	digits   int
	value    [maxDigits]byte
	count    int             // how many groups it has
	groups   [maxGroups]int  // how many digits each group has
	ends     [maxGroups]int  // where each group ends in the text
	marks    [maxGroups]byte // the separator behind each group: ' ', '-', '.' or ')'; 0 behind the last
	end      int             // where its last group ends
	plus     bool            // it begins with a plus
	brackets bool            // its first group, or the group behind the country's, is in brackets
	before   int             // the length of the figure before it in a row of figures; 0: none
	behind   int             // the length of the figure behind it in a row of figures; 0: none
}

// digitRun reads the number that begins at a place.
func digitRun(s string, start int) run {
	r := run{start: start, end: start}
	i := start
	if s[i] == '+' {
		r.plus = true
		i++
	}
	for i < len(s) && r.count < maxGroups {
		if s[i] == '(' && !r.brackets {
			r.brackets = true
			i++
		}
		from := i
		for ; i < len(s) && isDigit(s[i]) && i-from <= maxDigits; i++ {
			if r.digits < maxDigits {
				r.value[r.digits] = s[i]
			}
			r.digits++
		}
		if i == from {
			break
		}
		r.groups[r.count], r.ends[r.count], r.end = i-from, i, i
		mark, width := separator(s, i, r.brackets)
		if second, more := separator(s, i+width, false); mark == ' ' && second == ' ' {
			width += more
		}
		if next := i + width; width == 0 || next >= len(s) || !isDigit(s[next]) && s[next] != '(' {
			r.count++
			break
		}
		r.marks[r.count] = mark
		r.count++
		i += width
	}
	r.before = figureBefore(s[:start])
	return r
}

// figureBefore returns the length of the figure, perhaps of a dump, that stands before a place with a blank
// between.
func figureBefore(s string) int {
	end := len(s) - 1
	if end < 0 || s[end] != ' ' && s[end] != '\t' {
		return 0
	}
	i := end
	for i > 0 && end-i < 9 && isHex(s[i-1]) {
		i--
	}
	if i > 0 && !blank(s[i-1]) || !strings.ContainsAny(s[i:end], digits) {
		return 0
	}
	return end - i
}

// separator returns the separator at a place and its width: ' ', '-', '.' or ')', with a blank behind a
// bracket. Many kinds of blanks and dashes occur in people's texts, documents and escapes.
func separator(s string, at int, brackets bool) (mark byte, width int) {
	if at >= len(s) || isDigit(s[at]) || isLetter(s[at]) {
		return 0, 0
	}
	c, width := charAt(s, at)
	switch {
	case c == ')' && brackets:
		if at+1 < len(s) && s[at+1] == ' ' {
			width++
		}
		return ')', width
	case c == ' ' || c == '\t' || c == '\u00a0' || c >= '\u2000' && c <= '\u200a' || c == '\u202f' || c == '\u3000':
		return ' ', width
	case c == '-' || c == '\u00ad' || c >= '\u2010' && c <= '\u2015' || c == '\u2212':
		return '-', width
	case c == '.' || c == '\u00b7':
		return '.', width
	}
	return 0, 0
}

// judge decides the kind of the number. Another number may follow, so its first groups are judged alone too.
func (r *run) judge(s string) (span, bool) {
	for n := r.count; n > 0; n-- {
		part := r.first(n)
		if part.digits > maxDigits || wordAt(s, part.end) {
			continue
		}
		kind := part.kind()
		if kind == "" {
			continue
		}
		return span{part.start, part.end, kind, string(kind)}, true
	}
	return span{}, false
}

func (r *run) kind() Family {
	switch {
	case r.isCard():
		return Card
	case r.isSSN():
		return SSN
	case r.isPhone():
		return Phone
	}
	return ""
}

// first returns the number's first groups.
func (r *run) first(n int) run {
	part := *r
	part.count, part.end, part.digits = n, r.ends[n-1], 0
	for _, g := range part.groups[:n] {
		part.digits += g
	}
	if n < r.count {
		part.behind = r.groups[n]
	}
	return part
}

func (r *run) text() string { return string(r.value[:min(r.digits, maxDigits)]) }

// mark returns the separator behind all groups but the last, or 0 if they differ.
func (r *run) mark() byte {
	for _, m := range r.marks[:r.count-1] {
		if m != r.marks[0] {
			return 0
		}
	}
	return r.marks[0]
}

// isCard checks the issuer's range, the length and the Luhn checksum.
func (r *run) isCard() bool {
	if r.digits < 13 || r.digits > 19 || r.plus || r.brackets {
		return false
	}
	number := r.text()
	if !isIssued(number) || r.count > 1 && (r.groups[0] != 4 || r.mark() == 0 || r.before == 4 || r.behind == 4) {
		return false
	}
	sum := 0
	for i := range len(number) {
		d := int(number[len(number)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// isIssued checks the number ranges of card issuers.
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

// amid reports whether the number is part of a row of figures.
func (r *run) amid() bool { return r.before > 1 || r.behind > 0 }

// isSSN checks the form, and excludes numbers that are never issued.
func (r *run) isSSN() bool {
	if r.plus || r.brackets || r.count != 3 || r.groups[0] != 3 || r.groups[1] != 2 || r.groups[2] != 4 {
		return false
	}
	if m := r.mark(); m != '-' && (m != ' ' || r.amid()) {
		return false
	}
	d := r.text()
	return d[:3] != "000" && d[:3] != "666" && d[0] != '9' && d[3:5] != "00" && d[5:] != "0000"
}

// isPhone accepts international numbers, and North American numbers as people write them.
func (r *run) isPhone() bool {
	d := r.text()
	if r.plus {
		return r.digits >= 9 && r.digits <= 15 && d[0] != '0' && (r.count > 1 || r.digits >= 10)
	}
	if r.amid() && r.mark() == ' ' {
		return false
	}
	if r.count == 4 && r.groups[0] == 1 && d[0] == '1' {
		d = d[1:]
	} else if r.count != 3 {
		return false
	}
	last := r.count
	if len(d) != 10 || r.groups[last-1] != 4 || r.groups[last-2] != 3 || r.groups[last-3] != 3 {
		return false
	}
	return d[0] >= '2' && d[3] >= '2'
}
