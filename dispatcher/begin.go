package dispatcher

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice/internal/pause"
)

// notBegun is the reason why this process did not ask a usable engine for a run. The reason says nothing about
// the engine.
type notBegun struct {
	why   string
	stays bool // the job stays held, and the dispatcher tries again
}

func (n *notBegun) Error() string { return n.why }

var (
	errOld   = &notBegun{why: "it was claimed too long ago"}
	errLease = &notBegun{why: "its lease may have run out", stays: true}
	errGone  = &notBegun{why: "its claim is lost", stays: true}
)

// begin checks, right before the request, whether the engine may be asked for a job's run now. This process may
// have been frozen since the decision, for any time. Another holder may have the job by now, and the engine may
// have forgotten that the job ran.
func (d *Dispatcher) begin(work context.Context, l *servedQueue, h *hold) error {
	paused, err := d.pauses.Why(work, h.claim, h.asked)
	switch {
	case err != nil:
		return &notBegun{why: err.Error(), stays: true}
	case paused != "":
		return &notBegun{why: paused}
	}
	age, known := d.age(h), l.guarded(h.claim.Engine)
	memory := known.least()
	if known.known && !h.fresh {
		memory = known.report
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case h.lost != "":
		return errGone
	case memory.Forgets(age):
		return errOld
	case !h.sure():
		return errLease
	}
	h.begun = true
	return nil
}

// age returns the longest possible time since the job was claimed, by the store's clock or by this process's.
func (d *Dispatcher) age(h *hold) time.Duration {
	return max(d.settings.Now().Sub(h.claim.ClaimedAt), pause.Since(h.asked))
}
