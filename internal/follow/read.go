package follow

import (
	"regexp"
	"strings"
	"sync"
)

// kind is the kind of a token.
type kind int

const (
	blank  kind = iota // white space and comments
	word               // a name or a number, also one in double quotes
	text               // a text in single quotes
	moved              // a column of moved
	symbol             // any other character
)

// token is a part of a statement.
type token struct {
	kind kind
	text string
	// name is the name that a word stands for, in lower case and without quotes, or the column of
	// moved.
	name string
}

// shapes are the tokens that SQLite and PostgreSQL read alike, each at the beginning of the rest.
// They spell out upper and lower case: folding a range of all characters takes 7 ms. They compile
// on first use, because few processes need them.
var shapes = sync.OnceValue(func() []shape {
	return []shape{
		{blank, regexp.MustCompile(`^(?:[ \t\r\n\f]+|--[^\n]*(?:\n|$)|(?s:/\*.*?\*/))`)},
		{text, regexp.MustCompile(`^'(?:[^']|'')*'`)},
		{word, regexp.MustCompile(`^"(?:[^"]|"")+"`)},
		{moved, regexp.MustCompile(`^(?i:moved)\.[A-Za-z0-9_$\x{80}-\x{10ffff}]+`)},
		{word, regexp.MustCompile(`^[A-Za-z0-9_\x{80}-\x{10ffff}][A-Za-z0-9_$\x{80}-\x{10ffff}]*`)},
	}
})

type shape struct {
	kind    kind
	pattern *regexp.Regexp
}

// read splits a statement into tokens.
func read(statement string) ([]token, error) {
	var out []token
	for rest := statement; rest != ""; {
		next := first(rest)
		if next.kind == symbol && strings.ContainsAny(next.text, "'\"`\\\x00") || strings.HasPrefix(rest, "/*") && next.kind == symbol {
			return nil, invalid("statement", "it has a quote, a comment or a character that does not end: %.40q", rest)
		}
		if next.kind == text && len(out) > 0 && out[len(out)-1].kind == word {
			return nil, invalid("statement", "a text must be in plain quotes: %.40q", out[len(out)-1].text+next.text)
		}
		if next.kind == blank && strings.Contains(next.text[min(2, len(next.text)):], "/*") {
			return nil, invalid("statement", "a comment is in a comment: %.40q", next.text)
		}
		out = append(out, next)
		rest = rest[len(next.text):]
	}
	return out, nil
}

func first(rest string) token {
	for _, s := range shapes() {
		found := s.pattern.FindString(rest)
		if found == "" {
			continue
		}
		t := token{kind: s.kind, text: found}
		switch s.kind {
		case word:
			t.name = strings.ToLower(strings.ReplaceAll(strings.Trim(found, `"`), `""`, `"`))
		case moved:
			t.name = strings.ToLower(found[len("moved."):])
		case blank, text, symbol:
		}
		return t
	}
	return token{kind: symbol, text: firstRune(rest)}
}

func firstRune(rest string) string {
	for _, r := range rest {
		return rest[:len(string(r))]
	}
	return rest
}
