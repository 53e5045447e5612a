package dispatcher

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

// paced records the start times that the store accepted with this claim, and the jobs that the claim took from
// a queue with a rate.
func (d *Dispatcher) paced(l *servedQueue, told []sluice.Begun, claimed sluice.Claimed) {
	if !claimed.Unheard {
		d.begun.Heard(told)
	}
	if claimed.Paced && len(claimed.Jobs) > 0 {
		d.begun.Claimed(l.queue, claimed.Jobs[0].Token, len(claimed.Jobs))
	}
}

// countBegun counts a job for the rate of its queue, once its outcome is known. The run begins now, or after
// the delay given to its engine. After a doubt, the run may have begun at any moment until now. Otherwise the
// run will never begin. The run of a job that the dispatcher lets go in doubt may begin later; the store counts it.
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

// reportBegun reports to the store when jobs of queues with a rate began, for queues whose last claim is too long
// ago. Until the report, the store counts those jobs against the rate as not yet started.
func (d *Dispatcher) reportBegun(work context.Context, since time.Duration) {
	for _, queue := range d.begun.Queues(since) {
		q, err := d.settings.Queue(work, queue)
		if err != nil {
			return
		}
		told := d.begun.Report(queue)
		claimed, err := d.store.Claim(work, sluice.ClaimRequest{
			Queue: queue, Holder: d.holder.ID, Lease: time.Minute, Token: sluice.NewToken(), Engine: q.Settings.Engine, ReportsBegun: true, Begun: told,
		})
		if err == nil && !claimed.Unheard {
			d.begun.Heard(told)
		}
	}
}
