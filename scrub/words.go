package scrub

// words finds many words in one pass over a text, in either case: the automaton of Aho and Corasick.
type words struct {
	class [256]uint8 // the class of each byte; 0: it is in no word
	width int        // how many classes there are
	// next is the state that follows, by the place of the state's row and the class: twice the place of its row, and 1 more
	// if a word ends there.
	next []uint32
	ends [][]int16 // the words that end in a state
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
	w.next = make([]uint32, w.width, states*w.width)
	w.ends = make([][]int16, 1, states)
	for i, word := range list {
		state := 0
		for j := range len(word) {
			place := state*w.width + int(w.class[word[j]])
			if w.next[place] == 0 {
				w.next[place] = uint32(len(w.ends))
				w.ends = append(w.ends, nil)
				w.next = append(w.next, make([]uint32, w.width)...)
			}
			state = int(w.next[place])
		}
		w.ends[state] = append(w.ends[state], int16(i))
	}
	w.link()
	w.pack()
	return w
}

// pack turns the numbers of states into places of rows.
func (w *words) pack() {
	for i, state := range w.next {
		w.next[i] = state * uint32(w.width) << 1
		if len(w.ends[state]) > 0 {
			w.next[i] |= 1
		}
	}
}

// link fills in where to go on when a word does not: by the longest of its ends that begins a word.
func (w *words) link() {
	fail := make([]uint32, len(w.ends))
	line := make([]uint32, 0, len(w.ends))
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
	state := uint32(0)
	for i := range len(text) {
		state = w.next[state>>1+uint32(w.class[text[i]])]
		if state&1 == 0 {
			continue
		}
		for _, word := range w.ends[int(state>>1)/w.width] {
			found(int(word), i+1)
		}
	}
}
