package forecast

import (
	"math"
	"sort"
	"time"
)

// This file is the arithmetic of a forecast: how arrivals pass limits. Jobs flow like water, and the jobs of a line
// flow in the order of their due times. Between arrivals everything is linear, so the cost grows with the number of
// arrivals, not with the number of jobs or seconds.

// flowLimit is a bucket of tokens. Each job that starts takes one token. A rate is such a bucket. A limit of jobs
// in flight is one too: each place is a token, and returns when a job has run.
type flowLimit struct {
	tokens, burst float64
	rate          float64 // tokens per second
	name          string  // tells the limits of a queue or a tenant apart
	places        bool    // it limits jobs in flight
}

// arrival is a number of jobs that fall due at an instant, in seconds from the beginning.
type arrival struct {
	at   float64
	jobs int
	due  bool // the jobs were due at the count
}

// flowLine is the waiting line of one tenant, or of a queue that does not serve its tenants in turns.
type flowLine struct {
	arrivals []arrival
	limits   []flowLimit // its own limits, beside the queue's
	weight   float64     // its share beside other lines that have work
	opens    float64     // when its jobs may start; +Inf: unknown
}

// startsAt has when the last job of each arrival of each line starts, and how many jobs have started by some
// instants.
type startsAt struct {
	last [][]float64 // +Inf: never
	by   []float64
}

// drain lets the arrivals of lines, in order, pass the limits of each line and the limits of the queue. Marks are
// in order too. Lines share the starts of the queue by their weights. Later flows replace the limits, in order.
func drain(lines []flowLine, limits []flowLimit, marks []float64, later ...laterFlow) startsAt {
	d := newDrainage(lines, limits)
	d.later = later
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

// drainage is the state at an instant.
type drainage struct {
	limits  []flowLimit
	lines   []*lineDrainage
	active  []*lineDrainage // the lines with waiting jobs
	later   []laterFlow     // still to come
	changed bool            // the limits have changed at this instant
	now     float64
	started float64
}

// lineDrainage is the state of a line.
type lineDrainage struct {
	flowLine
	next    int // the first arrival still to come
	waiting float64
	started float64
	targets []float64 // by arrival: how many jobs have started when its last job starts
	last    []float64 // of the arrivals that have started altogether
	active  bool
	idle    float64 // since when it is not active

	want, got float64 // shares of the present distribution
	served    bool
}

func newDrainage(lines []flowLine, limits []flowLimit) *drainage {
	d := &drainage{limits: limits}
	for _, l := range lines {
		d.lines = append(d.lines, &lineDrainage{flowLine: l})
	}
	return d
}

// nothing is a rest of a job or a token that rounding leaves.
const nothing = 1e-6

// arriveUntil lets time pass, and lets the jobs arrive that arrive before an instant.
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

// arriveAt lets the jobs of a line arrive, and reports whether any did.
func (l *lineDrainage) arriveAt(at float64) bool {
	from := l.next
	for ; l.next < len(l.arrivals) && l.arrivals[l.next].at <= at; l.next++ {
		l.waiting += float64(l.arrivals[l.next].jobs)
		l.targets = append(l.targets, l.started+l.waiting)
	}
	return l.next > from
}

// advance lets time pass, and changes the limits on the way.
func (d *drainage) advance(to float64) {
	for len(d.later) > 0 && d.later[0].at <= to {
		d.pass(d.later[0].at)
		d.change(d.later[0])
		d.later = d.later[1:]
	}
	d.pass(to)
}

// pass lets time pass under the present limits. If they are new, lines share their tokens by weight, together with what arrives at
// the same instant.
func (d *drainage) pass(to float64) {
	if d.changed && d.now < to {
		d.startAtOnce()
	}
	for d.now < to && d.startSteadily(to) {
		d.forgetIdle()
	}
	d.rest(to)
}

// forgetIdle removes the lines without waiting jobs.
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

// rest refills tokens while no job starts.
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

// refill refills tokens for a while in which jobs start at a rate.
func refill(limits []flowLimit, rate, took float64) {
	for i := range limits {
		l := &limits[i]
		l.tokens = math.Max(0, math.Min(l.burst, l.tokens+(l.rate-rate)*took))
	}
}

// startAtOnce starts a job for each token. It runs when jobs arrive or a line opens; at other times jobs wait for
// tokens.
func (d *drainage) startAtOnce() {
	d.changed = false
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

// startSteadily starts jobs at the rate at which tokens return, until something changes. It reports whether any job
// starts before an instant.
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

// rateOf returns the slowest rate of the limits without tokens.
func rateOf(limits []flowLimit) float64 {
	rate := math.Inf(1)
	for _, l := range limits {
		if l.tokens <= nothing {
			rate = math.Min(rate, l.rate)
		}
	}
	return rate
}

// untilEmpty returns how long it takes until another limit has no tokens.
func untilEmpty(limits []flowLimit, rate float64) float64 {
	took := math.Inf(1)
	for _, l := range limits {
		if l.tokens > nothing && l.rate < rate {
			took = math.Min(took, l.tokens/(rate-l.rate))
		}
	}
	return took
}

// share gives each line its want if there is enough, else a share by weight. A line that wants less than its share
// leaves the rest to the others. It returns the sum of all shares.
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

// start counts jobs of a line that start now, or at a rate from now on. It notes the arrivals whose last job starts
// with them.
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

// arrivalsOf returns when the jobs of a count arrive, in seconds after the count. Due jobs arrive at once. Jobs of
// a minute arrive at its beginning, because much work falls due then. Jobs of an hour arrive spread over the hour.
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
