package memory

import (
	"bytes"
	"container/heap"
	"time"

	"github.com/sluice-queue/sluice"
)

// waiting holds the waiting jobs of each priority. Entries may be stale.
type waiting [11]dueHeap

// place is a job's entry in a heap. The entry is stale once the job's due time has changed.
type place struct {
	at time.Time
	id sluice.ID
}

// dueHeap orders jobs by an instant, then by id.
type dueHeap []place

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return bytes.Compare(h[i].id[:], h[j].id[:]) < 0
}

func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *dueHeap) Push(x any) { *h = append(*h, x.(place)) }

func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (h *dueHeap) add(at time.Time, id sluice.ID) { heap.Push(h, place{at, id}) }

func (h *dueHeap) first() (place, bool) {
	if len(*h) == 0 {
		return place{}, false
	}
	return (*h)[0], true
}

func (h *dueHeap) drop() { heap.Pop(h) }
