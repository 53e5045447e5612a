package deadletter

import (
	"net/netip"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// The marks that normalise writes in place of the parts that differ from message to message.
const (
	someNumber   = "<n>"
	someID       = "<id>"
	someText     = "<text>"
	someTime     = "<time>"
	someDuration = "<duration>"
	someAddress  = "<address>"
)

// normalise removes the parts of a message that differ from time to time. These are numbers, IDs, hexadecimal
// digits, addresses, instants, durations, quoted texts, variable parts of URLs and line numbers.
//
// A second normalise changes nothing. Of JSON, normalise keeps the keys, and the values that say what happened.
func normalise(text string) string {
	n := normaliser{in: strings.ToValidUTF8(text, "\uFFFD")}
	n.out.Grow(len(text))
	for n.at < len(n.in) {
		if !n.blank() && !n.quoted() && !n.url() && !n.word() {
			n.out.WriteByte(n.in[n.at])
			n.at++
		}
	}
	return strings.TrimSpace(n.out.String())
}

// normaliser walks once through a text.
type normaliser struct {
	in  string
	at  int
	out strings.Builder
	key string // of JSON: the last quoted text, if it was a key
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// blank writes one blank for many.
func (n *normaliser) blank() bool {
	from := n.at
	for n.at < len(n.in) && isBlank(n.in[n.at]) {
		n.at++
	}
	if n.at > from {
		n.out.WriteByte(' ')
	}
	return n.at > from
}

// quotes are the signs that open and close a quoted text.
var quotes = []struct{ open, shut string }{{`"`, `"`}, {`'`, `'`}, {"`", "`"}, {"«", "»"}, {"“", "”"}}

// quoted handles a quoted text.
func (n *normaliser) quoted() bool {
	for _, q := range quotes {
		if strings.HasPrefix(n.in[n.at:], q.open) && n.opens(q.open) {
			begin := n.at + len(q.open)
			length := n.shuts(begin, q.shut)
			if length < 0 {
				return false
			}
			n.putQuoted(q.open, n.in[begin:begin+length], q.shut, begin+length+len(q.shut))
			return true
		}
	}
	return false
}

// opens reports whether a quote opens a text, unlike the apostrophe in «can't».
func (n *normaliser) opens(quote string) bool {
	return quote != "'" || n.at == 0 || !inName(n.in[n.at-1], '>')
}

// inName reports whether a character is a letter, a digit, or the edge of a mark.
func inName(c, taken byte) bool { return isLetter(c) || isDigit(c) || c == taken }

// shuts returns the length of a quoted text. -1: it has no end.
func (n *normaliser) shuts(begin int, shut string) int {
	for i := begin; i < len(n.in); i++ {
		if n.in[i] == '\\' {
			i++
			continue
		}
		if !strings.HasPrefix(n.in[i:], shut) {
			continue
		}
		after := i + len(shut)
		if shut != "'" || after == len(n.in) || !inName(n.in[after], '<') {
			return i - begin
		}
	}
	return -1
}

// telling are the keys of JSON whose values say what happened.
var telling = map[string]bool{
	"message": true, "msg": true, "error": true, "code": true, "type": true, "reason": true, "status": true, "detail": true, "title": true,
}

// putQuoted writes the parts of a quoted text that say what happened: a URL, and in JSON the keys and some values.
func (n *normaliser) putQuoted(open, inner, shut string, next int) {
	before := byte(0)
	if told := strings.TrimRight(n.out.String(), " "); told != "" && open == `"` {
		before = told[len(told)-1]
	}
	key := (before == '{' || before == ',') && strings.HasPrefix(strings.TrimLeft(n.in[next:], " "), ":") && isWord(inner)
	value := before == ':' && n.key != "" && telling[n.key]
	n.at, n.key = next, ""
	switch {
	case key:
		n.key = inner
		n.out.WriteString(open + inner + shut)
	case value || beginsURL(inner):
		n.out.WriteString(open + normalise(inner) + shut)
	default:
		n.out.WriteString(someText)
	}
}

// isWord reports whether a text consists of letters and underlines.
func isWord(text string) bool {
	for i := range len(text) {
		if !isLetter(text[i]) && text[i] != '_' {
			return false
		}
	}
	return text != ""
}

// schemeOf returns the length of a URL's scheme, such as «https://». 0: no URL.
func schemeOf(text string) int {
	i := 0
	for i < len(text) && isLetter(text[i]) {
		i++
	}
	if i > 0 && strings.HasPrefix(text[i:], "://") {
		return i + len("://")
	}
	return 0
}

func beginsURL(text string) bool { return schemeOf(text) > 0 }

// urlEnd are the characters that end a URL.
const urlEnd = " \n\t\r\"'`<>()[]{},;|»”"

// url writes the scheme, the host and the path of a URL, without their variable parts.
func (n *normaliser) url() bool {
	if n.at > 0 && isLetter(n.in[n.at-1]) {
		return false
	}
	begin := schemeOf(n.in[n.at:])
	if begin == 0 {
		return false
	}
	n.out.WriteString(n.in[n.at : n.at+begin])
	n.at += begin
	whole := n.in[n.at:]
	if end := strings.IndexAny(whole, urlEnd); end >= 0 {
		whole = whole[:end]
	}
	n.at += len(whole)
	if cut := strings.IndexAny(whole, "?#"); cut >= 0 {
		whole = whole[:cut]
	}
	host, path, hasPath := strings.Cut(whole, "/")
	if _, after, found := strings.Cut(host, "@"); found {
		host = after
	}
	n.putWord(host)
	if hasPath {
		n.out.WriteByte('/')
		n.putRuns(path)
	}
	return true
}

func inWord(c byte) bool {
	return isLetter(c) || isDigit(c) || strings.IndexByte("_-.:/+@%~", c) >= 0
}

// word handles the text between blanks and other characters.
func (n *normaliser) word() bool {
	from := n.at
	for n.at < len(n.in) && inWord(n.in[n.at]) && (n.at == from || !n.quoteAt(n.at)) {
		n.at++
	}
	if n.at == from {
		return false
	}
	n.putWord(n.in[from:n.at])
	return true
}

// quoteAt reports whether a quote of several bytes begins. Its bytes look like letters.
func (n *normaliser) quoteAt(i int) bool {
	return n.in[i] >= 0x80 && (strings.HasPrefix(n.in[i:], "«") || strings.HasPrefix(n.in[i:], "“"))
}

// putWord writes a word, or a mark for its kind.
func (n *normaliser) putWord(word string) {
	bare := strings.TrimRight(word, ".:-/")
	rest := word[len(bare):]
	switch {
	case bare == "":
	case isMail(bare), isAddress(bare):
		bare = someAddress
	case isInstant(bare):
		bare = someTime
	case isSpan(bare):
		bare = someDuration
	default:
		n.putRuns(bare)
		bare = ""
	}
	n.out.WriteString(bare + rest)
}

func isMail(word string) bool {
	name, host, found := strings.Cut(word, "@")
	return found && name != "" && strings.Contains(host, ".")
}

func isAddress(word string) bool {
	if strings.IndexByte(word, ':') < 0 && strings.Count(word, ".") != 3 || !isHex(word[0]) && word[0] != ':' {
		return false
	}
	if _, err := netip.ParseAddr(word); err == nil {
		return true
	}
	_, err := netip.ParseAddrPort(word)
	return err == nil
}

// isInstant recognises dates and times of day: digits with at least two dashes, slashes or colons between them.
func isInstant(word string) bool {
	if len(word) < 5 || !isDigit(word[0]) {
		return false
	}
	parts, digits := 0, 0
	for i := range len(word) {
		switch c := word[i]; {
		case isDigit(c):
			digits++
		case c == '-' || c == ':' || c == '/':
			parts++
		case c != '.' && c != 'T' && c != 'Z' && c != '+':
			return false
		}
	}
	return parts >= 2 && digits >= 5
}

func isSpan(word string) bool {
	if !isDigit(word[0]) || isDigit(word[len(word)-1]) {
		return false
	}
	_, err := time.ParseDuration(word)
	return err == nil
}

// putRuns writes a word without the variable parts of its letters and digits.
func (n *normaliser) putRuns(word string) {
	for i := 0; i < len(word); {
		if isUUID(word[i:]) {
			n.out.WriteString(someID)
			i += 36
			continue
		}
		end := i
		for end < len(word) && (isLetter(word[end]) || isDigit(word[end])) {
			end++
		}
		if end == i {
			n.out.WriteByte(word[i])
			i++
			continue
		}
		run := word[i:end]
		i = end
		if strings.Trim(run, "0123456789") == "" {
			n.out.WriteString(someNumber)
			i = n.restOfNumber(word, i)
			continue
		}
		n.putRun(run)
	}
}

// restOfNumber skips the rest of a number after its first digits, as in 1.5 and 1,000. A comma ends a word.
func (n *normaliser) restOfNumber(word string, i int) int {
	for i+1 < len(word) && word[i] == '.' && isDigit(word[i+1]) {
		for i++; i < len(word) && isDigit(word[i]); i++ {
		}
	}
	for i == len(word) && n.at+1 < len(n.in) && n.in[n.at] == ',' && isDigit(n.in[n.at+1]) {
		for n.at++; n.at < len(n.in) && (isDigit(n.in[n.at]) || n.in[n.at] == '.'); n.at++ {
		}
	}
	return i
}

func isUUID(text string) bool {
	if len(text) < 36 || text[8] != '-' {
		return false
	}
	_, err := sluice.ParseID(text[:36])
	return err == nil && (len(text) == 36 || !isLetter(text[36]) && !isDigit(text[36]))
}

// putRun writes letters and digits: a mark if they are mixed as in no word, else the letters.
func (n *normaliser) putRun(run string) {
	digits, changes, hexadecimal := 0, 0, true
	for i := range len(run) {
		if isDigit(run[i]) {
			digits++
		}
		hexadecimal = hexadecimal && isHex(run[i])
		if i > 0 && isDigit(run[i]) != isDigit(run[i-1]) {
			changes++
		}
	}
	switch {
	case digits == 0:
		n.out.WriteString(run)
	case hexadecimal && len(run) >= 8, changes >= 3, len(run) >= 12 && digits >= 3, isPointer(run):
		n.out.WriteString(someID)
	default:
		n.putLetters(run)
	}
}

func isPointer(run string) bool {
	rest, begins := strings.CutPrefix(run, "0x")
	return begins && strings.Trim(rest, "0123456789abcdefABCDEF") == ""
}

// putLetters writes letters and digits, with marks for the digits.
func (n *normaliser) putLetters(run string) {
	for i := range len(run) {
		if !isDigit(run[i]) {
			n.out.WriteByte(run[i])
		} else if i == 0 || !isDigit(run[i-1]) {
			n.out.WriteString(someNumber)
		}
	}
}
