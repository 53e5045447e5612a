package scrub

// words finds many words in one pass over a text, in any case: the automaton of Aho and Corasick.
type words struct {
	class [256]uint8 // the class of each byte; 0: no word has it
	width int        // how many classes there are
	// next is the following state, by the place of the state's row plus the class. A state is twice the place
	// of its row, plus 1 if a word ends there.
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
				w.class[word[i]] = uint8(w.width) // words have fewer different characters than that
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
	return w
}

// link sets the next state after a mismatch: the longest suffix that begins a word. Rows are visited by the
// length of their path, so that all shorter ones are ready. link also turns the row numbers into places.
func (w *words) link() {
	fail := make([]uint32, len(w.ends)) // the row where a state goes on after a mismatch
	line := make([]uint32, 1, len(w.ends))
	for i := 0; i < len(line); i++ {
		state := line[i]
		row, onFail := w.row(state*uint32(w.width)), w.row(fail[state])
		for class, child := range row {
			if child == 0 {
				row[class] = onFail[class]
				continue
			}
			line = append(line, child)
			if state != 0 {
				fail[child] = onFail[class] >> 1
				w.ends[child] = append(w.ends[child], w.ends[int(fail[child])/w.width]...)
			}
			row[class] = child * uint32(w.width) << 1
			if len(w.ends[child]) > 0 {
				row[class] |= 1
			}
		}
	}
}

func (w *words) row(place uint32) []uint32 { return w.next[place:][:w.width] }

// find calls found for each word in the text, with the place of its end.
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
