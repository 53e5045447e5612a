package forecast

import (
	"math"
	"sort"
	"time"
)

// This file is the arithmetic of a forecast: how arrivals pass limits. Jobs flow like water, those of a
// line in the order in which they are due. Between arrivals everything is linear, so the work is in the
// number of arrivals and not in that of jobs or seconds.

// flowLimit is a bucket of tokens: each job that starts takes one. A rate is one as it stands. So is what
// may be in flight at once: each place is a token, and comes back when a job has run.
type flowLimit struct {
	tokens, burst float64
	rate          float64 // tokens per second
}

// arrival is how many jobs fall due at an instant, in seconds from the beginning.
type arrival struct {
	at   float64
	jobs int
	due  bool // it was due when it was counted
}

// flowLine is where the jobs of one tenant wait, or all of a queue that does not serve its tenants in
// turns.
type flowLine struct {
	arrivals []arrival
	limits   []flowLimit // of its own, beside the queue's
	weight   float64     // its share beside other lines that have work
	opens    float64     // when its jobs may start; +Inf: nobody knows
}

// startsAt is when the last job of each arrival of each line starts, and how many jobs have started by each
// of some instants.
type startsAt struct {
	last [][]float64 // +Inf: never
	by   []float64
}

// drain lets the arrivals of lines, in order, pass the limits of each line and those of all. Marks are in
// order, too. Lines get shares by their weights of what all may start.
func drain(lines []flowLine, limits []flowLimit, marks []float64) startsAt {
	d := newDrainage(lines, limits)
	var out startsAt
	for _, mark := range marks {
		d.arriveUntil(mark)
		d.advance(mark)
		out.by = append(out.by, d.started)
	}
	d.arriveUntil(math.Inf(1))
	d.advance(math.Inf(1))
	for _, l := range d.lines {
		for len(l.last) < len(l.arrivals) {
			l.last = append(l.last, math.Inf(1))
		}
		out.last = append(out.last, l.last)
	}
	return out
}

// drainage is the state at the instant now.
type drainage struct {
	limits  []flowLimit
	lines   []*lineDrainage
	active  []*lineDrainage // those in which jobs wait
	now     float64
	started float64
}

// lineDrainage is the state of a line.
type lineDrainage struct {
	flowLine
	next    int // the first arrival that is still to come
	waiting float64
	started float64
	targets []float64 // how many have started when the last job of each arrival has
	last    []float64 // of the arrivals that have started altogether
	active  bool
	idle    float64 // since when it is not active

	want, got float64 // what is being shared out
	served    bool
}

func newDrainage(lines []flowLine, limits []flowLimit) *drainage {
	d := &drainage{limits: limits}
	for _, l := range lines {
		d.lines = append(d.lines, &lineDrainage{flowLine: l})
	}
	return d
}

// nothing is what rounding leaves of a job or a token.
const nothing = 1e-6

// arriveUntil lets time pass and jobs arrive, as far as they do before an instant.
func (d *drainage) arriveUntil(mark float64) {
	for {
		at := mark
		for _, l := range d.lines {
			if l.next < len(l.arrivals) {
				at = math.Min(at, l.arrivals[l.next].at)
			}
		}
		if at >= mark {
			return
		}
		d.advance(at)
		for _, l := range d.lines {
			if l.arriveAt(at) && !l.active {
				l.active = true
				refill(l.limits, 0, math.Min(d.now-l.idle, longTime))
				d.active = append(d.active, l)
			}
		}
		d.startAtOnce()
	}
}

// arriveAt reports whether jobs arrive.
func (l *lineDrainage) arriveAt(at float64) bool {
	from := l.next
	for ; l.next < len(l.arrivals) && l.arrivals[l.next].at <= at; l.next++ {
		l.waiting += float64(l.arrivals[l.next].jobs)
		l.targets = append(l.targets, l.started+l.waiting)
	}
	return l.next > from
}

// advance lets time pass.
func (d *drainage) advance(to float64) {
	for d.now < to && d.startSteadily(to) {
		d.forgetIdle()
	}
	d.rest(to)
}

// forgetIdle leaves out the lines in which no jobs wait any more.
func (d *drainage) forgetIdle() {
	waiting := d.active[:0]
	for _, l := range d.active {
		if l.waiting > nothing {
			waiting = append(waiting, l)
			continue
		}
		l.active, l.idle = false, d.now
	}
	d.active = waiting
}

// rest lets tokens come back while no job starts.
func (d *drainage) rest(to float64) {
	if to <= d.now {
		return
	}
	took := math.Min(to-d.now, longTime)
	refill(d.limits, 0, took)
	for _, l := range d.active {
		refill(l.limits, 0, took)
	}
	d.now = to
}

// longTime, in seconds, fills every bucket.
const longTime = 1e12

// refill lets tokens come back for a while in which jobs start at a rate.
func refill(limits []flowLimit, rate, took float64) {
	for i := range limits {
		l := &limits[i]
		l.tokens = math.Max(0, math.Min(l.burst, l.tokens+(l.rate-rate)*took))
	}
}

// startAtOnce starts what there are tokens for. That has to be done when jobs arrive or a line opens: at
// other times jobs wait for tokens that come back.
func (d *drainage) startAtOnce() {
	for _, l := range d.active {
		l.want = 0
		if l.opens <= d.now {
			l.want = leastTokens(l.limits, l.waiting)
		}
	}
	d.share(leastTokens(d.limits, math.Inf(1)))
	for _, l := range d.active {
		if l.got <= nothing {
			continue
		}
		take(d.limits, l.got)
		take(l.limits, l.got)
		d.start(l, l.got, 0)
	}
	d.forgetIdle()
}

func leastTokens(limits []flowLimit, most float64) float64 {
	for _, l := range limits {
		most = math.Min(most, l.tokens)
	}
	return most
}

func take(limits []flowLimit, jobs float64) {
	for i := range limits {
		limits[i].tokens = math.Max(0, limits[i].tokens-jobs)
	}
}

// startSteadily starts jobs at the rates at which tokens come back, until something changes. It reports
// whether anything starts before an instant.
func (d *drainage) startSteadily(to float64) bool {
	opens := math.Inf(1)
	for _, l := range d.active {
		l.want = 0
		if l.opens > d.now {
			opens = math.Min(opens, l.opens)
			continue
		}
		l.want = math.Min(rateOf(l.limits), l.waiting/nothing) // rounding may have left a token
	}
	rate := d.share(rateOf(d.limits))
	if rate <= 0 && opens >= to {
		return false
	}
	took := math.Min(math.Min(to, opens)-d.now, untilEmpty(d.limits, rate))
	for _, l := range d.active {
		if l.got > 0 {
			took = math.Min(took, math.Min(l.waiting/l.got, untilEmpty(l.limits, l.got)))
		}
	}
	d.flow(rate, took)
	if took == opens-d.now {
		if d.now = opens; opens < to { // else what arrives at this instant shares in what there is
			d.startAtOnce()
		}
		return true
	}
	if took == to-d.now {
		d.now = to // without a rounding error, which would be walked in ever smaller steps
		return true
	}
	d.now = math.Max(d.now+took, math.Nextafter(d.now, to))
	return true
}

// flow lets jobs start at the lines' rates for a while.
func (d *drainage) flow(rate, took float64) {
	refill(d.limits, rate, took)
	for _, l := range d.active {
		refill(l.limits, l.got, took)
		if l.got > 0 {
			d.start(l, l.got*took, l.got)
		}
	}
}

// rateOf is the slowest of the limits that have no tokens left.
func rateOf(limits []flowLimit) float64 {
	rate := math.Inf(1)
	for _, l := range limits {
		if l.tokens <= nothing {
			rate = math.Min(rate, l.rate)
		}
	}
	return rate
}

// untilEmpty is how long it takes until one more limit has no tokens left.
func untilEmpty(limits []flowLimit, rate float64) float64 {
	took := math.Inf(1)
	for _, l := range limits {
		if l.tokens > nothing && l.rate < rate {
			took = math.Min(took, l.tokens/(rate-l.rate))
		}
	}
	return took
}

// share gives each line what it wants, as far as there is enough; else by weights: who wants less than its
// share leaves the rest of it to the others. It returns what all got.
func (d *drainage) share(most float64) float64 {
	weights, wants := 0.0, 0.0
	for _, l := range d.active {
		l.got, l.served = l.want, l.want <= 0
		wants += l.want
		if !l.served {
			weights += l.weight
		}
	}
	if wants <= most {
		return wants
	}
	left := most
	for again := true; again; {
		level := left / weights
		weights, again = 0, false
		for _, l := range d.active {
			switch {
			case l.served:
			case l.want <= level*l.weight:
				l.got, l.served, again = l.want, true, true
				left = math.Max(0, left-l.want)
			default:
				l.got = level * l.weight
				weights += l.weight
			}
		}
	}
	return most
}

// start counts jobs of a line that start now, or at a rate from now on, and notes which arrivals have
// started with them altogether.
func (d *drainage) start(l *lineDrainage, jobs, rate float64) {
	before := l.started
	d.started += jobs
	l.started += jobs
	l.waiting = math.Max(0, l.waiting-jobs)
	for len(l.last) < len(l.targets) && l.targets[len(l.last)] <= l.started+nothing {
		at := d.now
		if rate > 0 {
			at += math.Max(0, l.targets[len(l.last)]-before) / rate
		}
		l.last = append(l.last, at)
	}
}

// arrivalsOf gives when the jobs of a count arrive, in seconds after it: those that are due at once, those
// of a minute at its beginning, because that is when much falls due, and those of an hour spread over it.
func arrivalsOf(q QueueCounts, jobsOf func(Tally) int) []arrival {
	var out []arrival
	if jobs := jobsOf(q.Due); jobs > 0 {
		out = append(out, arrival{0, jobs, true})
	}
	for _, w := range q.Ahead {
		all := jobsOf(w.Tally)
		if all <= 0 {
			continue
		}
		parts := max(1, int(w.Span/time.Minute))
		for n := range parts {
			jobs := all*(n+1)/parts - all*n/parts
			at := w.At.Add(time.Duration(n) * time.Minute).Sub(q.CountedAt).Seconds()
			if jobs > 0 {
				out = append(out, arrival{math.Max(0, at), jobs, false})
			}
		}
	}
	sort.SliceStable(out, func(i, k int) bool { return out[i].at < out[k].at })
	return out
}
