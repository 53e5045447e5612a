package flow

import (
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// Window is the count of a queue's rate: jobs that were claimed and have not begun, as far as the
// store knows, and started jobs. A claim may take the rest of the rate's jobs. So no window has
// more starts than the rate allows, however long jobs wait between claim and start: the last claim
// counted all others.
type Window struct {
	Permits []*Permit
	Started []Started
}

// Permit is the jobs of one claim, until its holder has reported that all have begun or never will.
type Permit struct {
	Token     sluice.Token
	ClaimedAt time.Time
	Jobs      int
	// Begun is how many jobs have begun, and Gone how many never will, as far as reported.
	Begun, Gone int
	// LookAt is when to check whether the holder still has the jobs.
	LookAt time.Time
}

// Open returns how many jobs may still begin.
func (p *Permit) Open() int { return max(0, p.Jobs-p.Begun-p.Gone) }

// Started is how many jobs started up to an instant, and after the one before.
type Started struct {
	At   time.Time
	Jobs int
}

// cells is the largest number of parts of a window, so that a claim reads no more of them. Once a
// window has cells/2 instants of starts, a start counts at the end of its part.
const cells = 256

// cell returns the instant at which starts of an instant count.
func (w *Window) cell(at time.Time, s sluice.Settings) time.Time {
	width := (s.Rate.Per / cells).Truncate(time.Microsecond)
	if len(w.Started) < cells/2 || s.Rate.Jobs+s.Burst <= cells || width <= 0 {
		return at.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	}
	return time.UnixMicro((at.UnixMicro()/width.Microseconds() + 1) * width.Microseconds())
}

// Since returns the instant up to which starts no longer count.
func Since(s sluice.Settings, now time.Time) time.Time { return now.Add(-s.Rate.Per) }

// Kept returns how long starts are kept: longer than the window, so that a longer window knows
// them, too.
func Kept(s sluice.Settings) time.Duration { return max(2*s.Rate.Per, time.Minute) }

// reportSlack is how far the clocks of a holder and a store may drift apart.
const reportSlack = 100 * time.Microsecond

// Hear records a holder's reports on its claims, and returns the changed permits and the new
// starts.
func (w *Window) Hear(told []sluice.Begun, s sluice.Settings, now time.Time) (changed []*Permit, started []Started) {
	for _, b := range told {
		i := slices.IndexFunc(w.Permits, func(p *Permit) bool { return p.Token == b.Token })
		if i < 0 {
			continue
		}
		p := w.Permits[i]
		gone := min(max(b.Gone-p.Gone, 0), p.Open())
		p.Gone += gone
		begun := min(max(b.Jobs-p.Begun, 0), p.Open())
		p.Begun += begun
		if begun > 0 {
			started = w.start(begun, w.cell(now.Add(reportSlack-b.Ago+max(b.Ago, 0)/1000), s), started)
		}
		if begun+gone > 0 {
			changed = append(changed, p)
		}
	}
	return changed, started
}

// Overdue lists the permits for which it is time to check whether their holder still has the jobs.
func (w *Window) Overdue(now time.Time) []*Permit {
	var overdue []*Permit
	for _, p := range w.Permits {
		if p.Open() > 0 && !p.LookAt.After(now) {
			overdue = append(overdue, p)
		}
	}
	return overdue
}

// Held records how many of a permit's jobs the holder still has. If it has none, all that it has not
// reported may have begun until now, and none will begin later. If it has some, it will report, and
// until then nobody knows which of them have begun.
func (w *Window) Held(p *Permit, held int, s sluice.Settings, now time.Time, lookAgain time.Duration) (started []Started) {
	p.LookAt = now.Add(lookAgain)
	if begun := p.Open(); held == 0 && begun > 0 {
		p.Begun += begun
		started = w.start(begun, w.cell(now, s), nil)
	}
	return started
}

// start counts starts, and appends them to the new ones.
func (w *Window) start(jobs int, at time.Time, fresh []Started) []Started {
	if last := len(w.Started) - 1; last >= 0 && w.Started[last].At.Equal(at) {
		w.Started[last].Jobs += jobs
	} else {
		w.Started = append(w.Started, Started{at, jobs})
	}
	return append(fresh, Started{at, jobs})
}

// Take counts the jobs of a claim. If the holder will report when they begin, Take returns a
// permit. Otherwise they count as begun.
func (w *Window) Take(request sluice.ClaimRequest, jobs int, s sluice.Settings, now, claimedAt time.Time) (taken *Permit, started []Started) {
	if !request.ReportsBegun {
		return nil, w.start(jobs, w.cell(now, s), nil)
	}
	taken = &Permit{Token: request.Token, ClaimedAt: claimedAt, Jobs: jobs, LookAt: now.Add(request.Lease)}
	w.Permits = append(w.Permits, taken)
	return taken, nil
}

// SetBack moves all starts back by the least step of a store's clock. A start in the new future
// would otherwise count until that time has passed.
func (w *Window) SetBack(by time.Duration, now time.Time) {
	if by == 0 {
		return
	}
	for i := range w.Started {
		w.Started[i].At = w.Started[i].At.Add(-by)
	}
	for _, p := range w.Permits {
		p.LookAt = now
	}
}

// SetForward moves all starts forward by the least step of a store's clock. Otherwise they would
// stop counting too early. No start moves past now: starts that were counted after the step only
// count for longer.
func (w *Window) SetForward(by time.Duration, now time.Time) {
	for i, g := range w.Started {
		if by > 0 && g.At.Before(now) {
			w.Started[i].At = earlier(g.At.Add(by), now)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Forget drops starts up to an instant, and permits without jobs that may begin.
func (w *Window) Forget(upTo time.Time) {
	w.Permits = slices.DeleteFunc(w.Permits, func(p *Permit) bool { return p.Open() == 0 })
	w.Started = slices.DeleteFunc(w.Started, func(g Started) bool { return !g.At.After(upTo) })
}

// free returns how many more jobs the rate lets start in the window that ends now. Negative: an
// earlier, higher rate let more start.
func (w *Window) free(s sluice.Settings, now time.Time) int {
	left := s.Rate.Jobs + s.Burst
	for _, p := range w.Permits {
		left -= p.Open()
	}
	since := Since(s, now)
	for _, g := range w.Started {
		if g.At.After(since) {
			left -= g.Jobs
		}
	}
	return left
}

// unknownWait is when to look again if it is unknown when claimed jobs begin.
const unknownWait = 20 * time.Millisecond

// until returns how long until this many more jobs may start. A claimed job counts as if it began
// with its claim.
func (w *Window) until(jobs int, s sluice.Settings, now time.Time) time.Duration {
	missing := min(jobs, s.Rate.Jobs+s.Burst) - w.free(s, now)
	if missing <= 0 {
		return 0
	}
	since, earliest := Since(s, now), now.Add(max(unknownWait, s.Rate.Per/100))
	// Most starts are of earlier windows. A list with room for all of them costs simulated hours a tenth of their time.
	ends := make([]Started, 0, min(len(w.Started), s.Rate.Jobs+s.Burst)+len(w.Permits))
	for _, g := range w.Started {
		if g.At.After(since) {
			ends = append(ends, Started{g.At.Add(s.Rate.Per), g.Jobs})
		}
	}
	for _, p := range w.Permits {
		if open := p.Open(); open > 0 {
			end := p.ClaimedAt.Add(s.Rate.Per)
			if end.Before(earliest) {
				end = earliest
			}
			ends = append(ends, Started{end, open})
		}
	}
	slices.SortFunc(ends, func(a, b Started) int { return a.At.Compare(b.At) })
	for _, e := range ends {
		if missing -= e.Jobs; missing <= 0 {
			return max(e.At.Sub(now), 0)
		}
	}
	return s.Rate.Per
}

// Wait returns how long until the rate lets a job start: until the bucket has a token and the
// window has room. 0: now, or there is no rate.
func (w *Window) Wait(s sluice.Settings, b Bucket, now time.Time) time.Duration {
	return w.UntilFree(1, s, b, now)
}
