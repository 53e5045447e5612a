// Package jsonscan finds the ends of JSON values. It takes and refuses the same texts as [encoding/json.Valid], but looks at
// eight bytes of a quoted text at once: the check of payloads was a fifth of what it costs to store a job.
package jsonscan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
)

const (
	// MaxDepth is how many lists and objects may be nested in what a job carries. Whoever reads it later has bounds of
	// their own: Python's decoder gives up near 1,000, and SQLite at 1,000.
	MaxDepth = 500
	// maxDepth is how deep values may be nested, as in encoding/json.
	maxDepth = 10_000
)

// none says that no value stands there.
const none = -1

// Valid reports whether a text is one JSON value. As in encoding/json, quoted texts may hold bytes that are not UTF-8.
func Valid(text []byte) bool {
	end := End(text, Blanks(text, 0))
	return end != none && Blanks(text, end) == len(text)
}

// Fault says why a text is not one JSON value that is nested at most [MaxDepth] deep. Empty: it is one.
func Fault(text []byte) string {
	if end := end(text, Blanks(text, 0), MaxDepth); end != none && Blanks(text, end) == len(text) {
		return ""
	}
	if Valid(text) {
		return fmt.Sprintf("it is nested deeper than %d levels", MaxDepth)
	}
	return fmt.Sprintf("it is not valid JSON: %v", json.Unmarshal(text, new(any)))
}

// Shallow reports whether a text has too few brackets to be nested deeper than [MaxDepth]. It costs a small part of [Fault].
func Shallow(text []byte) bool {
	return len(text) <= 2*MaxDepth || bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) <= MaxDepth
}

// Blanks returns where the blanks that begin at a place end.
func Blanks(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// End returns where the value that begins at a place ends. Negative: no value begins there.
func End(text []byte, at int) int { return end(text, at, maxDepth) }

// end is End for a value in which so many may be nested.
func end(text []byte, at, depth int) int {
	if at >= len(text) {
		return none
	}
	switch text[at] {
	case '"':
		return endOfText(text, at)
	case '{':
		return endOfMany(text, at, '}', endOfMember, depth)
	case '[':
		return endOfMany(text, at, ']', end, depth)
	case 't':
		return endOfWord(text, at, "true")
	case 'f':
		return endOfWord(text, at, "false")
	case 'n':
		return endOfWord(text, at, "null")
	}
	return endOfNumber(text, at)
}

// endOfMany returns where an object or a list ends.
func endOfMany(text []byte, at int, closing byte, endOfOne func([]byte, int, int) int, depth int) int {
	if depth == 0 {
		return none
	}
	if at = Blanks(text, at+1); at < len(text) && text[at] == closing {
		return at + 1
	}
	for {
		if at = endOfOne(text, at, depth-1); at == none {
			return none
		}
		at = Blanks(text, at)
		switch {
		case at == len(text):
			return none
		case text[at] == closing:
			return at + 1
		case text[at] != ',':
			return none
		}
		at = Blanks(text, at+1)
	}
}

// endOfMember returns where a name with its value ends.
func endOfMember(text []byte, at, depth int) int {
	if at == len(text) || text[at] != '"' {
		return none
	}
	if at = endOfText(text, at); at == none {
		return none
	}
	if at = Blanks(text, at); at == len(text) || text[at] != ':' {
		return none
	}
	return end(text, Blanks(text, at+1), depth)
}

// endOfText returns where a quoted text ends.
func endOfText(text []byte, at int) int {
	for at++; ; {
		at += plain(text[at:])
		switch {
		case at == len(text):
			return none
		case text[at] == '"':
			return at + 1
		case text[at] != '\\':
			return none // a control character
		}
		if at = endOfEscape(text, at); at == none {
			return none
		}
	}
}

// plain returns how many bytes from the first on stand for themselves in a quoted text.
func plain(text []byte) int {
	at := 0
	for ; at+32 <= len(text); at += 32 {
		if four := text[at : at+32]; special(four)|special(four[8:])|special(four[16:])|special(four[24:]) != 0 {
			break
		}
	}
	for ; at+8 <= len(text); at += 8 {
		if found := special(text[at:]); found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for at < len(text) && text[at] >= ' ' && text[at] != '"' && text[at] != '\\' {
		at++
	}
	return at
}

// special looks at eight bytes for quotes, backslashes and control characters. It returns the highest bit of the first of
// these, and perhaps of bytes after it. 0: there is none.
func special(text []byte) uint64 {
	const ones, highest = 0x0101010101010101, 0x8080808080808080
	eight := binary.LittleEndian.Uint64(text)
	quote, backslash := eight^('"'*ones), eight^('\\'*ones) // 0 where it is
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (eight-' '*ones)&^eight) & highest
}

// endOfEscape returns where what a backslash begins ends.
func endOfEscape(text []byte, at int) int {
	if at++; at == len(text) {
		return none
	}
	switch text[at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at + 1
	case 'u':
		return endOfHex(text, at+1)
	}
	return none
}

// endOfHex returns where four hexadecimal digits end.
func endOfHex(text []byte, at int) int {
	if at+4 > len(text) {
		return none
	}
	for _, c := range text[at : at+4] {
		if !isDigit(c) && (c|' ' < 'a' || c|' ' > 'f') {
			return none
		}
	}
	return at + 4
}

func endOfWord(text []byte, at int, word string) int {
	if end := at + len(word); end <= len(text) && string(text[at:end]) == word {
		return end
	}
	return none
}

func endOfNumber(text []byte, at int) int {
	if text[at] == '-' {
		at++
	}
	if at < len(text) && text[at] == '0' {
		at++
	} else if at = endOfDigits(text, at); at == none {
		return none
	}
	if at < len(text) && text[at] == '.' {
		if at = endOfDigits(text, at+1); at == none {
			return none
		}
	}
	if at == len(text) || text[at]|' ' != 'e' {
		return at
	}
	if at++; at < len(text) && (text[at] == '+' || text[at] == '-') {
		at++
	}
	return endOfDigits(text, at)
}

// endOfDigits returns where digits end, of which there must be one.
func endOfDigits(text []byte, at int) int {
	if at == len(text) || !isDigit(text[at]) {
		return none
	}
	for at < len(text) && isDigit(text[at]) {
		at++
	}
	return at
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
