package scrub

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxEscapes is more than the backslashes before a quote in JSON nested three times.
const maxEscapes = 8

// charAt returns the character at a place and its width, also if it is written \u003d, %3D or &#61;.
func charAt(s string, at int) (c rune, width int) {
	if at >= len(s) {
		return 0, 0
	}
	switch s[at] {
	case '\\':
		i := skipBackslashes(s, at)
		if i < len(s) && s[i] == 't' {
			return '\t', i + 1 - at
		}
		if i < len(s) && s[i] == 'u' {
			c, width = hexAt(s, at, i+1, 4)
			for _, entity := range entities {
				if c == '&' && strings.HasPrefix(s[at+width:], entity.text[1:]) {
					return entity.char, width + len(entity.text) - 1
				}
			}
			return c, width
		}
	case '%':
		return hexAt(s, at, at+1, 2)
	case '&':
		for _, entity := range entities {
			if strings.HasPrefix(s[at:], entity.text) {
				return entity.char, len(entity.text)
			}
		}
	}
	if s[at] >= 0x80 {
		return utf8.DecodeRuneInString(s[at:])
	}
	return rune(s[at]), 1
}

var entities = []struct {
	text string
	char rune
}{{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&#61;", '='}, {"&nbsp;", '\u00a0'}, {"&quot;", '"'}}

func skipBackslashes(s string, at int) int {
	i := at
	for i < len(s) && s[i] == '\\' && i-at < maxEscapes {
		i++
	}
	return i
}

// hexAt reads the number of a character that is escaped from a place on.
func hexAt(s string, start, at, length int) (rune, int) {
	if at+length <= len(s) {
		if n, err := strconv.ParseUint(s[at:at+length], 16, 32); err == nil {
			return rune(n), at + length - start
		}
	}
	return rune(s[start]), 1
}
