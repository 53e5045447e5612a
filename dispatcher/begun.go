package dispatcher

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

// paced notes what a claim from a queue with a rate took, and that the store has heard what it was told of earlier ones.
func (d *Dispatcher) paced(l *lane, told []sluice.Begun, claimed sluice.Claimed) {
	if !claimed.Unheard {
		d.begun.Heard(told)
	}
	if claimed.Paced && len(claimed.Jobs) > 0 {
		d.begun.Claimed(l.queue, claimed.Jobs[0].Token, len(claimed.Jobs))
	}
}

// countBegun counts a job for the rate of its queue, once it is known what became of it: its run begins now, or after the
// delay that its engine was told; or it has begun at any moment until now, if that was in doubt; or it never will. One that
// is let go in doubt may begin until upkeep knows: the store looks itself then.
func (d *Dispatcher) countBegun(h *hold) {
	switch {
	case h.answer == nil && h.fresh:
		d.begun.Gone(h.claim.Token, 1)
	case h.answer == nil:
	case h.answer.Event == sluice.EventDispatch:
		d.begun.Began(h.claim.Token, time.Now().Add(h.run.Delay))
	case h.doubtful:
		d.begun.Began(h.claim.Token, time.Now())
	default:
		d.begun.Gone(h.claim.Token, 1)
	}
}

// tellBegun tells the store of the queues of which no claim has told it for a while when their jobs began: until then
// they count against the rate, as if they were to begin yet.
func (d *Dispatcher) tellBegun(work context.Context, since time.Duration) {
	for _, queue := range d.begun.Queues(since) {
		q, err := d.settings.Queue(work, queue)
		if err != nil {
			return
		}
		told := d.begun.Tell(queue)
		claimed, err := d.store.Claim(work, sluice.ClaimRequest{
			Queue: queue, Holder: d.holder.ID, Lease: time.Minute, Token: sluice.NewToken(), Engine: q.Settings.Engine, Tells: true, Begun: told,
		})
		if err == nil && !claimed.Unheard {
			d.begun.Heard(told)
		}
	}
}
