package scrub

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// shape is a property of every match of a pattern. Most texts lack it, which saves trying the pattern.
type shape struct {
	// run is the least number of letters, digits, `_` and `-` that stand together in every match.
	run int
	// exact are the pattern's own words in their required case. Empty: any case.
	exact []string
}

func compile(r *rule) *compiled {
	c := &compiled{pattern: regexp.MustCompile(r.pattern)}
	parsed, err := syntax.Parse(r.pattern, syntax.Perl)
	if err != nil || r.whole {
		return c
	}
	c.run = runOf(parsed)
	c.exact = exactWords(parsed, r.words)
	return c
}

const (
	// runBefore and runAfter are how far from a word the key may be: `aws` has up to 80 characters before its
	// key.
	runBefore = 80
	runAfter  = 128
	// shortRun is a length that words of prose reach too.
	shortRun = 8
)

// mayBe reports whether the pattern may match at a word.
func (c *compiled) mayBe(s string, start, end int) bool {
	if len(c.exact) > 0 && !isOneOf(c.exact, s[start:end]) {
		return false
	}
	if c.run < shortRun {
		return true
	}
	length := 0
	for i := max(0, start-runBefore); i < len(s) && (i < end+runAfter || length > 0); i++ {
		if !keyBytes[s[i]] {
			length = 0
			continue
		}
		if length++; length >= c.run {
			return true
		}
	}
	return false
}

func isOneOf(all []string, one string) bool {
	for _, a := range all {
		if a == one {
			return true
		}
	}
	return false
}

// runOf returns the shape's run of an expression.
func runOf(e *syntax.Regexp) int {
	switch e.Op {
	case syntax.OpLiteral:
		for _, c := range e.Rune {
			if c >= 0x80 || !keyBytes[byte(c)] {
				return 0
			}
		}
		return len(e.Rune)
	case syntax.OpCapture, syntax.OpPlus:
		return runOf(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 && isKeyClass(e.Sub[0]) {
			return e.Min
		}
		if e.Min > 0 {
			return runOf(e.Sub[0])
		}
	case syntax.OpConcat:
		return longestOf(e.Sub)
	case syntax.OpAlternate:
		least := runOf(e.Sub[0])
		for _, sub := range e.Sub[1:] {
			least = min(least, runOf(sub))
		}
		return least
	}
	return 0
}

func longestOf(all []*syntax.Regexp) int {
	longest := 0
	for _, sub := range all {
		longest = max(longest, runOf(sub))
	}
	return longest
}

// isKeyClass reports whether an expression is one character of a key. Unicode letters that fold to ASCII are
// ignored, because no key has them.
func isKeyClass(e *syntax.Regexp) bool {
	if e.Op != syntax.OpCharClass {
		return false
	}
	for i := 0; i+1 < len(e.Rune); i += 2 {
		for c := e.Rune[i]; c <= e.Rune[i+1]; c++ {
			if c == '\u017f' || c == '\u212a' { // the long s and the Kelvin sign
				continue
			}
			if c >= 0x80 || !keyBytes[byte(c)] {
				return false
			}
		}
	}
	return true
}

// exactWords returns words in their case in a pattern, or nothing if the pattern ignores the case of one.
func exactWords(e *syntax.Regexp, words []string) (all []string) {
	for _, word := range words {
		written, open := writtenAs(e, word)
		if open || len(written) == 0 {
			return nil
		}
		all = append(all, written...)
	}
	return all
}

// writtenAs returns a word in its case in the literals of a pattern. open is true if other cases match too.
func writtenAs(e *syntax.Regexp, word string) (all []string, open bool) {
	switch e.Op {
	case syntax.OpLiteral:
		literal := string(e.Rune)
		if at := strings.Index(strings.ToLower(literal), word); at >= 0 && len(literal) == len(e.Rune) {
			return []string{literal[at : at+len(word)]}, e.Flags&syntax.FoldCase != 0
		}
	case syntax.OpCharClass: // such as [Ss] of [Ss]onar
		return nil, len(e.Rune) == 4 && e.Rune[0] == e.Rune[1] && e.Rune[2] == e.Rune[0]|0x20
	}
	for _, sub := range e.Sub {
		more, itOpen := writtenAs(sub, word)
		all, open = append(all, more...), open || itOpen
	}
	return all, open
}
