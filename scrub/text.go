package scrub

// text is a piece of text for rules to search. The last stretch of each kind is kept, so that rules which start
// again and again inside one long stretch read it once.
type text struct {
	s         string
	stretches [stretchKinds]stretch
	work      int // bytes read by rules, for the tests that this number grows no faster than the text
}

// stretch is a part of a text that was read.
type stretch struct{ from, to int }

// The kinds of stretches. Quoted values have one for each quote and depth of escaping.
const (
	keyStretch    = iota // letters, digits, `_` and `-`
	dottedStretch        // the same and `.`
	base64Stretch        // the same and `+`, `/` and `=`
	plainStretch         // a value without quotes
	tagStretch           // up to `<`
	lineStretch          // up to the end of the line, or of the quotes around it
	tokenStretch         // up to a blank or a quote
	paramStretch         // the value of a parameter
	quotedStretch
	stretchKinds = quotedStretch + len(quotes)*maxEscapes
)

// until returns the end of the stretch of a kind that holds the place at. The end of a stretch must not depend
// on the place of entry.
func (t *text) until(kind, at int, ends func(s string, at int) bool) int {
	last := &t.stretches[kind]
	if at >= last.from && at < last.to {
		return last.to
	}
	to := at
	for to < len(t.s) && !ends(t.s, to) {
		to++
	}
	*last = stretch{at, to}
	t.work += to - at
	return to
}

// class is a set of bytes.
type class [256]bool

func classOf(chars string) *class {
	c := new(class)
	for i := range len(chars) {
		c[chars[i]] = true
	}
	return c
}

const (
	digits  = "0123456789"
	lowers  = "abcdefghijklmnopqrstuvwxyz"
	uppers  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters = lowers + uppers
)

var (
	keyBytes    = classOf(letters + digits + "_-")
	dottedBytes = classOf(letters + digits + "_-.")
	base64Bytes = classOf(letters + digits + "_-.~+/=")
)

func (t *text) key(at int) int {
	return t.until(keyStretch, at, func(s string, i int) bool { return !keyBytes[s[i]] })
}

func (t *text) dotted(at int) int {
	return t.until(dottedStretch, at, func(s string, i int) bool { return !dottedBytes[s[i]] })
}

func (t *text) base64(at int) int {
	return t.until(base64Stretch, at, func(s string, i int) bool { return !base64Bytes[s[i]] })
}

// token returns the next blank, quote, or beginning of an escape of one.
func (t *text) token(at int) int {
	return t.until(tokenStretch, at, func(s string, i int) bool { return blank(s[i]) || isQuote(s[i]) || s[i] == '\\' })
}

// line returns the end of the line, or the next quote.
func (t *text) line(at int) int {
	return t.until(lineStretch, at, func(s string, i int) bool {
		return s[i] == '\n' || s[i] == '\r' || s[i] == '"' || s[i] == '\'' || s[i] == '`' || s[i] == '\\' && endsLine(s[i+1:])
	})
}

// endsLine reports whether the text behind a backslash makes it the end of a line, or of a text in quotes.
func endsLine(rest string) bool {
	return rest != "" && (rest[0] == 'n' || rest[0] == 'r' || isQuote(rest[0]))
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isWord(c byte) bool { return isDigit(c) || isLetter(c) || c == '_' || c >= 0x80 }

// wordBefore reports whether a word continues from before a place. Escapes such as \n or \u003c in JSON are not
// part of a word.
func wordBefore(s string, at int) bool {
	if at == 0 || !isWord(s[at-1]) {
		return false
	}
	if s[at-1] >= 0x80 {
		return !isSpecial(lastRune(s[:at]))
	}
	if at >= 2 && s[at-2] == '\\' && (s[at-1] == 'n' || s[at-1] == 't' || s[at-1] == 'r') {
		return false
	}
	return at < 6 || s[at-6] != '\\' || s[at-5] != 'u' || s[at-4] != '0' || s[at-3] != '0'
}

// wordAt reports whether a word continues at a place.
func wordAt(s string, at int) bool {
	if at >= len(s) || !isWord(s[at]) {
		return false
	}
	return s[at] < 0x80 || !isSpecial(firstRune(s[at:]))
}

// lowered returns a text with its ASCII letters in lower case, of the same length.
func lowered(s string) string {
	out := []byte(s)
	for i, c := range out {
		if isUpper(c) {
			out[i] = c | 0x20
		}
	}
	return string(out)
}
