package scrub

import (
	"regexp"
	"slices"
	"sync"
)

// rule finds one kind of thing by a regular expression, near words that it cannot do without.
type rule struct {
	family Family
	name   string
	// words are in lower case; one of them is in, or before, whatever the rule finds.
	words []string
	// pattern finds it; its first group that took part is what is removed, or all of it if there is none.
	pattern string
	// entropy is how many bits each character must hold at the least; 0: it does not matter.
	entropy float64
	// whole says that the word may be anywhere in the text.
	whole bool
	// check says whether a value is what it looks like. Nil: it is.
	check func(m match) bool

	compiled func() *regexp.Regexp
}

// match is what a pattern found.
type match struct {
	before string // what comes before the value, from the beginning of the match on
	value  string
}

// index is every rule, and the words that lead to them.
type index struct {
	rules  []*rule
	words  *words
	byWord [][]int // the rules of each word
}

var theIndex = sync.OnceValue(func() *index {
	ix := &index{rules: slices.Concat(ownRules(), vendorRules())}
	places := make(map[string]int)
	var list []string
	for i, r := range ix.rules {
		r.compiled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.pattern) })
		for _, word := range r.words {
			place, known := places[word]
			if !known {
				place = len(list)
				places[word], list = place, append(list, word)
				ix.byWord = append(ix.byWord, nil)
			}
			ix.byWord[place] = append(ix.byWord[place], i)
		}
	}
	ix.words = newWords(list)
	return ix
})

// candidate is a rule that may find something, and where.
type candidate struct {
	rule    *rule
	windows []window
}

// window is a stretch of a text.
type window struct{ start, end int }

const (
	// windowBefore is how far before a word its match may begin: an e-mail address before its @, the name of a variable
	// before «key».
	windowBefore = 128
	// windowAfter is how far behind a word is looked at first. A match that reaches the end of it is looked for again in
	// all that follows.
	windowAfter = 512
)

// candidates reads the text once, and gives the rules one of whose words is in it.
func candidates(text string) []candidate {
	ix := theIndex()
	places := make(map[int]int)
	var found []candidate
	ix.words.find(text, func(word, end int) {
		for _, i := range ix.byWord[word] {
			place, known := places[i]
			if !known {
				place = len(found)
				places[i], found = place, append(found, candidate{rule: ix.rules[i]})
			}
			found[place].add(text, end)
		}
	})
	return found
}

// add looks around a word that ends somewhere.
func (c *candidate) add(text string, end int) {
	last := len(c.windows) - 1
	if c.rule.whole {
		c.windows = []window{{0, len(text)}}
		return
	}
	w := window{start: wordStart(text, max(0, end-windowBefore)), end: min(len(text), end+windowAfter)}
	if last >= 0 && w.start <= c.windows[last].end {
		c.windows[last].end = max(c.windows[last].end, w.end)
		return
	}
	c.windows = append(c.windows, w)
}

// wordStart moves back to where a word begins, within reason, so that the cut looks like no border of one.
func wordStart(text string, at int) int {
	for limit := max(0, at-windowBefore); at > limit && !blank(text[at-1]); {
		at--
	}
	return at
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// find adds what the rule finds in its windows.
func (c *candidate) find(text string, found []span) []span {
	pattern, done := c.rule.compiled(), 0
	for _, w := range c.windows {
		for at := max(w.start, done); at < w.end; {
			groups := pattern.FindStringSubmatchIndex(text[at:w.end])
			if groups != nil && at+groups[1] == w.end && w.end < len(text) {
				w.end = len(text) // it may go on behind the window
				groups = pattern.FindStringSubmatchIndex(text[at:])
			}
			if groups == nil {
				break
			}
			start, end := valueOf(groups)
			value := match{before: text[at+groups[0] : at+start], value: text[at+start : at+end]}
			if c.rule.accepts(value) {
				found = append(found, span{at + start, at + end, c.rule.family, c.rule.name})
				at += max(end, groups[0]+1)
			} else {
				// What was taken for a value may be the name of the next one.
				at += max(start, groups[0]+1)
			}
			done = at
		}
	}
	return found
}

// valueOf gives the first group that took part, or the whole match.
func valueOf(groups []int) (start, end int) {
	for i := 2; i+1 < len(groups); i += 2 {
		if groups[i] >= 0 && groups[i] < groups[i+1] {
			return groups[i], groups[i+1]
		}
	}
	return groups[0], groups[1]
}

func (r *rule) accepts(m match) bool {
	if isMark(m.value) || r.entropy > 0 && entropy(m.value) < r.entropy {
		return false
	}
	return r.check == nil || r.check(m)
}
