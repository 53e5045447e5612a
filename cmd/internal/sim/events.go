package sim

import "time"

// event is something that happens at a moment, as a time since the start.
type event struct {
	at time.Duration
	// early events come before the others of their moment: jobs fall due before a process claims.
	early bool
	seq   uint64
	do    func()
}

func (e event) before(other event) bool {
	if e.at != other.at {
		return e.at < other.at
	}
	if e.early != other.early {
		return e.early
	}
	return e.seq < other.seq
}

// events is a heap of future events, the next first. container/heap would allocate for each event,
// and each job has several.
type events struct {
	heap []event
	seq  uint64
}

func (h *events) add(at time.Duration, early bool, do func()) {
	h.seq++
	e := event{at, early, h.seq, do}
	h.heap = append(h.heap, e)
	i := len(h.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(h.heap[parent]) {
			break
		}
		h.heap[i] = h.heap[parent]
		i = parent
	}
	h.heap[i] = e
}

func (h *events) take() (event, bool) {
	if len(h.heap) == 0 {
		return event{}, false
	}
	first, last := h.heap[0], h.heap[len(h.heap)-1]
	h.heap[len(h.heap)-1] = event{}
	h.heap = h.heap[:len(h.heap)-1]
	if len(h.heap) > 0 {
		h.sink(last)
	}
	return first, true
}

// sink puts an event in place of the first one, and moves it below all earlier ones.
func (h *events) sink(e event) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h.heap) {
			break
		}
		if right := child + 1; right < len(h.heap) && h.heap[right].before(h.heap[child]) {
			child = right
		}
		if !h.heap[child].before(e) {
			break
		}
		h.heap[i] = h.heap[child]
		i = child
	}
	h.heap[i] = e
}
