package flow

import (
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// Window is what a queue's rate counts: what claims took and has not begun, as far as the store was told, and what
// started. A claim may take what the two leave of the rate's jobs. Whatever passes between a claim and its starts, no
// window has more of them: the last claim of those that started in it has counted all the others.
type Window struct {
	Permits []*Permit
	Started []Started
}

// Permit is what one claim took, until its holder has told that all of it began, or never will.
type Permit struct {
	Token     sluice.Token
	ClaimedAt time.Time
	Jobs      int
	// Begun jobs have begun, and Gone ones never will, as far as was told.
	Begun, Gone int
	// LookAt is when to look whether the holder still has the jobs.
	LookAt time.Time
}

// Open is how many jobs may begin yet.
func (p *Permit) Open() int { return max(0, p.Jobs-p.Begun-p.Gone) }

// Started says how many jobs started until an instant, and since the one before.
type Started struct {
	At   time.Time
	Jobs int
}

// cells is into how many parts a window is divided at the most, so that a claim reads no more of them. Starts count as
// at the end of their part.
const cells = 256

// cell is when starts of an instant count.
func cell(at time.Time, s sluice.Settings) time.Time {
	width := (s.Rate.Per / cells).Truncate(time.Microsecond)
	if s.Rate.Jobs+s.Burst <= cells || width <= 0 {
		return at.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	}
	return time.UnixMicro((at.UnixMicro()/width.Microseconds() + 1) * width.Microseconds())
}

// Since is the instant up to which starts do not count any more.
func Since(s sluice.Settings, now time.Time) time.Time { return now.Add(-s.Rate.Per) }

// Kept is for how long starts are kept: longer than the window, so that a longer one knows them too.
func Kept(s sluice.Settings) time.Duration { return max(2*s.Rate.Per, time.Minute) }

// tellingSlack is by how much clocks of a holder and of a store may differ in speed.
const tellingSlack = 100 * time.Microsecond

// Hear takes in what a holder tells of its claims, and gives the permits that changed and the starts that are new.
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
			started = w.start(begun, cell(now.Add(tellingSlack-b.Ago+max(b.Ago, 0)/1000), s), started)
		}
		if begun+gone > 0 {
			changed = append(changed, p)
		}
	}
	return changed, started
}

// Overdue lists the permits of which it is time to look whether their holder still has the jobs.
func (w *Window) Overdue(now time.Time) []*Permit {
	var overdue []*Permit
	for _, p := range w.Permits {
		if p.Open() > 0 && !p.LookAt.After(now) {
			overdue = append(overdue, p)
		}
	}
	return overdue
}

// Held takes in how many of a permit's jobs their holder still has: the others may have begun until now, and will not
// from now on.
func (w *Window) Held(p *Permit, held int, s sluice.Settings, now time.Time, lookAgain time.Duration) (started []Started) {
	p.LookAt = now.Add(lookAgain)
	if begun := p.Open() - held; begun > 0 {
		p.Begun += begun
		started = w.start(begun, cell(now, s), nil)
	}
	return started
}

// start counts starts, and adds them to those that are new.
func (w *Window) start(jobs int, at time.Time, fresh []Started) []Started {
	if last := len(w.Started) - 1; last >= 0 && w.Started[last].At.Equal(at) {
		w.Started[last].Jobs += jobs
	} else {
		w.Started = append(w.Started, Started{at, jobs})
	}
	return append(fresh, Started{at, jobs})
}

// Take counts what a claim took. Told: its holder tells when the jobs begin; else they count as begun.
func (w *Window) Take(request sluice.ClaimRequest, jobs int, s sluice.Settings, now, claimedAt time.Time) (taken *Permit, started []Started) {
	if !request.Tells {
		return nil, w.start(jobs, cell(now, s), nil)
	}
	taken = &Permit{Token: request.Token, ClaimedAt: claimedAt, Jobs: jobs, LookAt: now.Add(request.Lease)}
	w.Permits = append(w.Permits, taken)
	return taken, nil
}

// SetBack moves all that is known back by as much as a store's clock was at the least: a start in what is the future
// now would count until it has passed.
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

// SetForward moves all starts forward by as much as a store's clock was set at the least, else they would be over too early.
// None becomes later than now: those that were counted after the step only count for longer.
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

// Forget forgets starts up to an instant, and permits of which nothing may begin any more.
func (w *Window) Forget(upTo time.Time) {
	w.Permits = slices.DeleteFunc(w.Permits, func(p *Permit) bool { return p.Open() == 0 })
	w.Started = slices.DeleteFunc(w.Started, func(g Started) bool { return !g.At.After(upTo) })
}

// free is how many more jobs the rate lets start in the window that ends now. Less than nothing: a rate before let
// more of them start.
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

// unknownWait is when to look again where it is not known when the jobs that were claimed begin.
const unknownWait = 20 * time.Millisecond

// until is how long it takes until so many more jobs may start. What was claimed counts as if it had begun then.
func (w *Window) until(jobs int, s sluice.Settings, now time.Time) time.Duration {
	missing := min(jobs, s.Rate.Jobs+s.Burst) - w.free(s, now)
	if missing <= 0 {
		return 0
	}
	ends := make([]Started, 0, len(w.Started)+len(w.Permits))
	for _, g := range w.Started {
		if g.At.After(Since(s, now)) {
			ends = append(ends, Started{g.At.Add(s.Rate.Per), g.Jobs})
		}
	}
	for _, p := range w.Permits {
		if open := p.Open(); open > 0 {
			end := p.ClaimedAt.Add(s.Rate.Per)
			if earliest := now.Add(max(unknownWait, s.Rate.Per/100)); end.Before(earliest) {
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

// Wait is how long until the rate lets a job start: until its bucket has a token and its window has room; 0: now, or
// there is no rate.
func (w *Window) Wait(s sluice.Settings, b Bucket, now time.Time) time.Duration {
	if s.Rate.IsZero() {
		return 0
	}
	return max(b.UntilNext(s), w.until(1, s, now))
}
