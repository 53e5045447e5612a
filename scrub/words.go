package scrub

// words finds many words in one pass over a text, in either case: the automaton of Aho and Corasick.
type words struct {
	class [256]uint8 // the class of each byte; 0: it is in no word
	width int        // how many classes there are
	next  []int16    // the state that follows, by state and class
	ends  [][]int16  // the words that end in a state
}

func newWords(list []string) *words {
	w := &words{width: 1}
	states := 1
	for _, word := range list {
		states += len(word)
		for i := range len(word) {
			if w.class[word[i]] == 0 {
				w.class[word[i]] = uint8(w.width) // words are made of fewer characters than that
				w.width++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		w.class[c-'a'+'A'] = w.class[c]
	}
	w.next = make([]int16, w.width, states*w.width)
	w.ends = make([][]int16, 1, states)
	for i, word := range list {
		state := 0
		for j := range len(word) {
			place := state*w.width + int(w.class[word[j]])
			if w.next[place] == 0 {
				w.next[place] = int16(len(w.ends)) // some thousand states
				w.ends = append(w.ends, nil)
				w.next = append(w.next, make([]int16, w.width)...)
			}
			state = int(w.next[place])
		}
		w.ends[state] = append(w.ends[state], int16(i))
	}
	w.link()
	return w
}

// link fills in where to go on when a word does not: by the longest of its ends that begins a word.
func (w *words) link() {
	fail := make([]int16, len(w.ends))
	line := make([]int16, 0, len(w.ends))
	for class := range w.width {
		if state := w.next[class]; state != 0 {
			line = append(line, state)
		}
	}
	for len(line) > 0 {
		state := line[0]
		line = line[1:]
		w.ends[state] = append(w.ends[state], w.ends[fail[state]]...)
		for class := range w.width {
			place := int(state)*w.width + class
			onFail := w.next[int(fail[state])*w.width+class]
			if w.next[place] == 0 {
				w.next[place] = onFail
				continue
			}
			fail[w.next[place]] = onFail
			line = append(line, w.next[place])
		}
	}
}

// find calls back for each word that is in the text, with the place where it ends.
func (w *words) find(text string, found func(word, end int)) {
	state := 0
	for i := range len(text) {
		state = int(w.next[state*w.width+int(w.class[text[i]])])
		for _, word := range w.ends[state] {
			found(int(word), i+1)
		}
	}
}
