package scrub

import "strings"

// assigned finds NAME = VALUE, "name": "value", name := 'value', <name>value</name>, --name value and name is
// value. SQL's NAME 'value' and "name": "NAME", "value": "value" count too. All forms also count in the escapes
// of JSON and URLs.
func assigned(kind nameKind) func(t *text, start, end int) (from, to int, found bool) {
	return func(t *text, start, end int) (from, to int, found bool) {
		n := nameAt(t.s, start, end, kind)
		if n.kind == noSecret {
			return 0, 0, false
		}
		a := assignment{name: n}
		if !a.readSign(t.s) {
			return 0, 0, false
		}
		if !a.readValue(t) || !a.isSecret(t.s) {
			return 0, 0, false
		}
		return a.from, a.to, true
	}
}

// assignment is a value and the name that it is assigned to.
type assignment struct {
	name     name
	sign     sign
	attached bool // there are no blanks around the sign
	from, to int  // the value
	quoted   bool
	value    string // as much of it as is judged
}

// sign is the text between a name and its value.
type sign int

const (
	equals   sign = iota // = and its like
	colon                // :
	says                 // is, was
	tag                  // <name>value
	follows              // a blank: a flag, or SQL
	pairs                // "name": "X", "value": "y"
	encloses             // a list begins
)

// mostBlanks is the most blanks on each side of a sign, as in a table of names and values.
const mostBlanks = 24

// readSign reads the sign behind the name, and sets a.from to the beginning of the value.
func (a *assignment) readSign(s string) bool {
	at := a.name.end
	bare := at
	at = skipQuote(s, at)
	closed := at > bare
	if at < len(s) && s[at] == ']' {
		at++
	}
	after := skipBlanks(s, at)
	if (closed || strings.IndexByte(",\n", s[min(after, len(s)-1)]) >= 0) && a.isPair(s, after) {
		return true
	}
	known, width := signAt(s, after)
	if width == 0 || known == tag && !a.isTag(s) {
		return a.readBlank(s, after, closed)
	}
	begin := after + width
	a.sign, a.from = known, skipBlanks(s, begin)
	a.attached = after == at && a.from == begin
	if a.from < len(s) && s[a.from] == '[' && known != tag {
		a.from++
	}
	a.skipType(s)
	return a.from < len(s)
}

// signAt returns the sign at a place and its width: =, :, :=, =>, ==, != or >.
func signAt(s string, at int) (sign, int) {
	first, width := charAt(s, at)
	second, more := charAt(s, at+width)
	switch {
	case second == '=' && (first == ':' || first == '=' || first == '!'), first == '=' && second == '>':
		return equals, width + more
	case first == '=':
		return equals, width
	case first == ':':
		return colon, width
	case first == '>':
		return tag, width
	}
	return 0, 0
}

// readBlank reads a value that follows without a sign.
func (a *assignment) readBlank(s string, after int, closed bool) bool {
	if after >= len(s) {
		return false
	}
	if a.name.kind == passwordName && strings.Contains(s[max(0, a.name.start-longestName):a.name.start], "login ") {
		a.name.flag = true // machine X login Y password Z, in .netrc
	}
	if a.name.flag {
		a.sign, a.from = follows, after
		return after > a.name.end && (!closed || a.isListed(s, after))
	}
	if strings.HasPrefix(s[after:], "('") && strings.EqualFold(s[a.name.start:a.name.end], "password") {
		a.sign, a.from = follows, after+1 // SQL's PASSWORD('x')
		return true
	}
	if after == a.name.end {
		return false
	}
	for _, word := range []string{"is ", "was ", "of ", "to "} {
		if len(s) >= after+len(word) && strings.EqualFold(s[after:after+len(word)], word) {
			a.sign, a.from = says, skipBlanks(s, after+len(word))
			return a.from < len(s)
		}
	}
	a.sign, a.from = follows, after
	return a.name.kind == passwordName && (s[after] == '\'' || s[after] == '"' || isPrefixed(s, after))
}

// isListed reports whether the quoted text behind a quoted flag is its value: "--token", "X".
func (a *assignment) isListed(s string, at int) bool {
	if s[at] == ',' {
		at = skipBlanks(s, at+1)
	}
	a.from = at
	open := skipQuote(s, at)
	next := strings.IndexAny(s[open:min(len(s), open+judged)], quotes)
	return open > at && (next < 0 || !strings.HasPrefix(s[open+next+1:], ":"))
}

// isPair reports whether the name is itself a value, and its own value follows: "name": "API_KEY", "value":
// "…".
func (a *assignment) isPair(s string, at int) bool {
	if at < len(s) && (s[at] == ',' || s[at] == '\n') {
		at = skipBlanks(s, at+1)
	}
	at = skipQuote(s, at)
	if len(s) < at+len("value") || !strings.EqualFold(s[at:at+len("value")], "value") {
		return false
	}
	at = skipBlanks(s, skipQuote(s, at+len("value")))
	if at >= len(s) || s[at] != ':' && s[at] != '=' {
		return false
	}
	a.sign, a.from = pairs, skipBlanks(s, at+1)
	return a.from < len(s)
}

// isTag reports whether the name is an element's: <name> or <ns:name>.
func (a *assignment) isTag(s string) bool {
	before := s[max(0, a.name.start-24):a.name.start]
	if space, is := strings.CutSuffix(before, ":"); is {
		before = strings.TrimRight(space, letters+digits+"-_")
		if strings.HasSuffix(before, `\`) && strings.HasPrefix(space[len(before):], "u003c") {
			return true
		}
	}
	return strings.HasSuffix(before, "<") || strings.HasSuffix(before, `\u003c`) || strings.HasSuffix(before, "&lt;") || strings.HasSuffix(before, "%3C")
}

// skipType skips the type in password: str = "x".
func (a *assignment) skipType(s string) {
	for _, kind := range []string{"string", "String", "str", "&str"} {
		rest, is := strings.CutPrefix(s[a.from:], kind)
		if at := len(rest) - len(strings.TrimLeft(rest, " ")); is && at < len(rest) && rest[at] == '=' {
			a.sign, a.from = equals, skipBlanks(s, a.from+len(kind)+at+1)
			return
		}
	}
}

// skipQuote skips a quote and the backslashes before it.
func skipQuote(s string, at int) int {
	i := skipBackslashes(s, at)
	if i < len(s) && isQuote(s[i]) {
		return i + 1
	}
	return at
}

func skipBlanks(s string, at int) int {
	for limit := at + mostBlanks; at < len(s) && at < limit && (s[at] == ' ' || s[at] == '\t'); {
		at++
	}
	return at
}

const quotes = "\"'`"

// isPrefixed reports whether a quote with a letter before it begins: E'…' of SQL, b'…' of Python.
func isPrefixed(s string, at int) bool {
	return at+1 < len(s) && isLetter(s[at]) && (s[at+1] == '\'' || s[at+1] == '"')
}

// readValue reads the value that begins at a.from.
func (a *assignment) readValue(t *text) bool {
	if a.sign == tag {
		a.readTag(t)
		a.value = t.s[a.from:min(a.to, a.from+judged)]
		return a.to > a.from
	}
	if isPrefixed(t.s, a.from) {
		a.from++
	}
	a.readQuoted(t)
	if !a.quoted {
		a.to = t.until(plainStretch, a.from, endsPlain)
		a.to = trimmed(t.s, a.from, a.to)
	}
	a.value = t.s[a.from:min(a.to, a.from+judged)]
	return a.to > a.from
}

// readTag reads the value of an element, up to the end tag.
func (a *assignment) readTag(t *text) {
	if c, width := charAt(t.s, a.from); c == '<' && strings.HasPrefix(t.s[a.from+width:], "![CDATA[") {
		a.from += width + len("![CDATA[")
	}
	a.to = t.until(tagStretch, a.from, func(s string, i int) bool {
		return s[i] == '<' || s[i] == ']' || s[i] == '\n' || s[i] == '\\' || s[i] == '&' || isQuote(s[i])
	})
	if c, _ := charAt(t.s, a.to); a.to < len(t.s) && c != '<' && c != ']' {
		a.to = a.from
	}
}

// trimmed removes punctuation behind a value, and closing brackets that were not opened in it.
func trimmed(s string, from, to int) int {
	for to > from {
		if to-from > 1 && s[to-2] == '\\' && (s[to-1] == 'n' || s[to-1] == 'r') {
			to -= 2 // an escaped line end
			continue
		}
		if strings.IndexByte(".,;:)]}>!?", s[to-1]) < 0 {
			break
		}
		opening := strings.IndexByte(")]}", s[to-1])
		if opening >= 0 && strings.IndexByte(s[from:min(to, from+judged)], "([{"[opening]) > 0 {
			break
		}
		to--
	}
	return to
}

// readQuoted reads a value in quotes. Quotes inside it are of another kind, or have more backslashes before
// them.
func (a *assignment) readQuoted(t *text) {
	open := a.from
	for open < len(t.s) && t.s[open] == '\\' && open-a.from < maxEscapes {
		open++
	}
	depth := open - a.from
	if open >= len(t.s) || !isQuote(t.s[open]) || depth >= maxEscapes {
		return
	}
	quote := t.s[open]
	if depth == 0 && strings.HasPrefix(t.s[open+1:], t.s[open:open+1]) {
		a.from, a.to, a.quoted = open+1, open+1, true // an empty value
		return
	}
	kind := quotedStretch + strings.IndexByte(quotes, quote)*maxEscapes + depth
	end := t.until(kind, open+1, func(s string, i int) bool {
		return s[i] == '\n' || s[i] == '\r' || s[i] == quote && closes(s, i, depth)
	})
	if end >= len(t.s) || t.s[end] != quote {
		a.from = open + 1 // the text was cut off
		return
	}
	a.from, a.to, a.quoted = open+1, end-depth, true
}

// closes reports whether the quote at a place ends a text that began with that many backslashes.
func closes(s string, at, depth int) bool {
	if depth == 0 && s[at] == '\'' && (s[at-1] == '\'' || at+1 < len(s) && s[at+1] == '\'') {
		return false // a doubled quote in a text of SQL
	}
	before := 0
	for before <= at-1 && before < 4*maxEscapes && s[at-1-before] == '\\' {
		before++
	}
	return before%(2*(depth+1)) == depth || depth == 0 && s[at] == '\'' && (at+1 >= len(s) || !isWord(s[at+1]))
}

// endsPlain reports whether a value without quotes ends at a place. A sign that may belong to a value ends it
// only if the text behind the sign is no value.
func endsPlain(s string, at int) bool {
	switch c := s[at]; c {
	case ' ', '\n', '\t', '\r', 0:
		return true
	case '"', '\'', '`':
		return at+1 >= len(s) || !isWord(s[at+1])
	case '\\':
		return at+1 < len(s) && isQuote(s[at+1]) && (at+2 >= len(s) || !isWord(s[at+2])) || strings.HasPrefix(s[at:], `\u0026`)
	case '&', ';', ',':
		return at+1 >= len(s) || !isWord(s[at+1]) || beginsName(s, at+1)
	case '<':
		return at+1 < len(s) && s[at+1] == '/'
	case '}', ']', ')':
		return at+1 >= len(s) || !isWord(s[at+1])
	}
	return false
}

// beginsName reports whether a name and a sign begin at a place.
func beginsName(s string, at int) bool {
	i := at
	for i < len(s) && i-at < longestName && (nameBytes[s[i]] || s[i] == ' ') {
		i++
	}
	return i < len(s) && (s[i] == '=' || s[i] == ':')
}
