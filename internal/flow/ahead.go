package flow

import (
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

// Ahead says how far ahead claims of a store give out places of a rate. A place that becomes free
// while the claim is still under way need not wait for the next claim: the claim gives it out, and
// returns when it is free. So a rate loses no claim's duration in each window. The zero value is
// ready.
type Ahead struct {
	took atomic.Int64 // how long claims took lately, in nanoseconds
}

// MaxAhead is how far ahead a claim gives out places at the most. It is less than unknownWait, so that all of them are
// places of known starts. A claim that was sent again, whose first instant is not known, is held back for so long.
const MaxAhead = 15 * time.Millisecond

// margin is how much earlier than needed a claim begins, because timers are late.
const margin = 2 * time.Millisecond

// Of returns how far ahead a claim may give out places. A holder that does not report starts gets
// none, because its jobs count as begun when they are claimed.
func (a *Ahead) Of(request sluice.ClaimRequest) time.Duration {
	if !request.ReportsBegun {
		return 0
	}
	return min(time.Duration(a.took.Load())+2*margin, MaxAhead)
}

// Answer ends a claim. It waits until the claimed jobs may start, hold after the claim's instant,
// which was no later than read. It also shortens the wait for the next claim by the time since read.
func (a *Ahead) Answer(out *sluice.Claimed, read time.Time, hold time.Duration) {
	if out.Paced && len(out.Jobs) > 0 {
		a.Took(time.Since(read))
		HoldBack(read, hold)
	}
	if out.Limited && !out.Full && out.NextDue > 0 {
		out.NextDue = max(out.NextDue-time.Since(read), time.Microsecond)
	}
}

// Took records how long a claim took, from its instant to its end.
func (a *Ahead) Took(took time.Duration) {
	last := a.took.Load()
	if last == 0 {
		last = int64(took)
	}
	a.took.Store(last + (int64(took)-last)/8)
}

// HoldBack waits until the jobs of a claim may start, hold after the claim's instant, which was no
// later than read. It does not end with the caller's context: the jobs are claimed.
func HoldBack(read time.Time, hold time.Duration) { time.Sleep(time.Until(read.Add(hold))) }

// UntilFree returns how long until this many jobs may start: until a filled bucket has the tokens
// and the window has room. 0: now, or there is no rate.
func (w *Window) UntilFree(jobs int, s sluice.Settings, b Bucket, now time.Time) time.Duration {
	if s.Rate.IsZero() || jobs == 0 {
		return 0
	}
	return max(b.until(float64(jobs)-1e-9, s), w.until(jobs, s, now))
}
