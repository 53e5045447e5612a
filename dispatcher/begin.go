package dispatcher

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice/internal/pause"
)

// notBegun is why an engine was not asked for a run, although it could have been. It says nothing of the engine.
type notBegun struct {
	why   string
	stays bool // the job stays held, and is looked at again
}

func (n *notBegun) Error() string { return n.why }

var (
	errOld   = &notBegun{why: "it was claimed too long ago"}
	errLease = &notBegun{why: "its lease may have run out", stays: true}
	errGone  = &notBegun{why: "its claim is lost", stays: true}
)

// begin says whether an engine may be asked for the run of a job now; it is called right before. This process may have
// stood still since it decided to, for as long as one likes: another may have the job by now, and the engine may have
// forgotten that it ran.
func (d *Dispatcher) begin(work context.Context, l *lane, h *hold) error {
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

// age is how long ago a job was claimed at the most, by the store's clock or by ours.
func (d *Dispatcher) age(h *hold) time.Duration {
	return max(d.settings.Now().Sub(h.claim.ClaimedAt), pause.Since(h.asked))
}
