package scrub

import (
	"regexp"
	"slices"
	"sync"
)

// rule finds one kind of secret near words that it requires: by a function, or by a regular expression.
type rule struct {
	family Family
	name   string
	// words are in lower case. One of them is in or before every match of the rule.
	words []string
	// scan returns the part to remove at a word from start to end.
	scan func(t *text, start, end int) (from, to int, found bool)
	// pattern is used if there is no scan. Its first group that took part is removed, or the whole match
	// without such a group.
	pattern string
	// entropy is the least number of bits per character; 0: any.
	entropy float64
	// whole means that the word may be anywhere in the text.
	whole bool

	compileOnce sync.Once
	form        *compiled
}

// compiled compiles the pattern on first use: most texts need few patterns.
func (r *rule) compiled() *compiled {
	r.compileOnce.Do(func() { r.form = compile(r) })
	return r.form
}

// index holds every rule, and the words that lead to them.
type index struct {
	rules  []*rule
	words  *words
	length []int   // of each word
	byWord [][]int // the rules of each word
}

var theIndex = sync.OnceValue(func() *index {
	ix := &index{rules: slices.Concat(ownRules(), vendorRules())}
	places := make(map[string]int, 1000)
	var list []string
	for i, r := range ix.rules {
		for _, word := range r.words {
			place, known := places[word]
			if !known {
				place = len(list)
				places[word], list = place, append(list, word)
				ix.byWord, ix.length = append(ix.byWord, nil), append(ix.length, len(word))
			}
			ix.byWord[place] = append(ix.byWord[place], i)
		}
	}
	ix.words = newWords(list)
	return ix
})

// byWords adds the findings of rules with a word in the text, which is read once for all of them.
func (s *Scrubber) byWords(t *text, found []span) []span {
	ix := theIndex()
	done := make(map[int]int) // the end of each rule's last finding
	places := make(map[int]int)
	var searches []search
	ix.words.find(t.s, func(word, end int) {
		start := end - ix.length[word]
		for _, i := range ix.byWord[word] {
			r := ix.rules[i]
			if r.scan == nil {
				if r.compiled().mayBe(t.s, start, end) {
					searches = r.look(t.s, end, i, places, searches)
				}
				continue
			}
			if start < done[i] || slices.Contains(s.without, r.family) {
				continue
			}
			t.work++
			if from, to, ok := r.scan(t, start, end); ok {
				found = append(found, span{from, to, r.family, r.name})
				done[i] = to
			}
		}
	})
	for i := range searches {
		if !slices.Contains(s.without, searches[i].rule.family) {
			found = searches[i].find(t, found)
		}
	}
	return found
}

// look notes that a pattern is to be searched for around a word.
func (r *rule) look(s string, end, number int, places map[int]int, searches []search) []search {
	place, known := places[number]
	if !known {
		place = len(searches)
		places[number], searches = place, append(searches, search{rule: r})
	}
	searches[place].add(s, end)
	return searches
}

// search is a pattern that may match in a text, and the places to look at.
type search struct {
	rule    *rule
	windows []window
}

// window is a stretch of a text.
type window struct{ start, end int }

const (
	// windowBefore is how far before a word its match may begin: the name of a variable before `key`.
	windowBefore = 128
	// windowAfter is how far behind a word the first search goes. A match that reaches this end is searched for
	// again in windowMore.
	windowAfter = 512
	windowMore  = 8 << 10
)

// add adds a window around a word that ends at a place.
func (c *search) add(s string, end int) {
	if c.rule.whole {
		c.windows = []window{{0, len(s)}}
		return
	}
	w := window{start: wordStart(s, max(0, end-windowBefore)), end: min(len(s), end+windowAfter)}
	if last := len(c.windows) - 1; last >= 0 && w.start <= c.windows[last].end {
		c.windows[last].end = max(c.windows[last].end, w.end)
		return
	}
	c.windows = append(c.windows, w)
}

// wordStart moves back to the beginning of a word, within a limit, so that the cut does not look like a word's
// border.
func wordStart(s string, at int) int {
	for limit := max(0, at-windowBefore); at > limit && !blank(s[at-1]); {
		at--
	}
	return at
}

// find adds the matches of the pattern in its windows.
func (c *search) find(t *text, found []span) []span {
	s := t.s
	pattern, done := c.rule.compiled().pattern, 0
	for _, w := range c.windows {
		more := false
		for at := max(w.start, done); at < w.end; {
			groups := pattern.FindStringSubmatchIndex(s[at:w.end])
			if groups != nil && at+groups[1] == w.end && w.end < len(s) && !more {
				w.end, more = min(len(s), w.end+windowMore), true // the match may go on behind the window
				continue
			}
			if groups == nil {
				t.work += w.end - at
				break
			}
			t.work += groups[1]
			start, end := valueOf(groups)
			value := s[at+start : at+end]
			if entropy(value) >= c.rule.entropy {
				found = append(found, span{at + start, at + end, c.rule.family, c.rule.name})
				start = end
			} else if end-start > windowBefore {
				start = (start + end) / 2 // the rest may hold another match; halving bounds the number of reads
			}
			at += max(start, groups[0]+1) // the value may in fact be the name of the next assignment
			done = at
		}
	}
	return found
}

// valueOf returns the first group that took part, or the whole match.
func valueOf(groups []int) (start, end int) {
	for i := 2; i+1 < len(groups); i += 2 {
		if groups[i] >= 0 && groups[i] < groups[i+1] {
			return groups[i], groups[i+1]
		}
	}
	return groups[0], groups[1]
}

// compiled is a compiled pattern and its shape.
type compiled struct {
	pattern *regexp.Regexp
	shape
}
