package sluice

import (
	"math"
	"sort"
	"time"
)

// This file is the arithmetic of a forecast: how arrivals pass limits. Jobs flow like water, in the order
// in which they are due. Between arrivals everything is linear, so the work is in the number of arrivals
// and not in that of jobs or seconds.

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

// startsAt is when the last job of each arrival starts, and how many jobs have started by each of some
// instants.
type startsAt struct {
	last []float64 // +Inf: never
	by   []float64
}

// drain lets arrivals, in order, pass limits from the instant opens on. Marks are in order, too.
func drain(arrivals []arrival, limits []flowLimit, opens float64, marks []float64) startsAt {
	d := drainage{limits: limits, opens: opens}
	var out startsAt
	next := 0
	for _, mark := range marks {
		for ; next < len(arrivals) && arrivals[next].at < mark; next++ {
			d.add(arrivals[next])
		}
		d.advance(mark)
		out.by = append(out.by, d.started)
	}
	for ; next < len(arrivals); next++ {
		d.add(arrivals[next])
	}
	d.advance(math.Inf(1))
	for len(d.last) < len(arrivals) {
		d.last = append(d.last, math.Inf(1))
	}
	out.last = d.last
	return out
}

// drainage is the state at the instant now.
type drainage struct {
	limits  []flowLimit
	opens   float64
	now     float64
	waiting float64
	started float64
	targets []float64 // how many have started when the last job of each arrival has
	last    []float64 // of the arrivals that have started altogether
}

// nothing is what rounding leaves of a job or a token.
const nothing = 1e-6

func (d *drainage) add(a arrival) {
	d.advance(a.at)
	d.waiting += float64(a.jobs)
	d.targets = append(d.targets, d.started+d.waiting)
}

// advance lets time pass.
func (d *drainage) advance(to float64) {
	if d.now < d.opens {
		d.rest(math.Min(to, d.opens))
	}
	for d.now < to && d.waiting > nothing {
		d.startAtOnce()
		if d.waiting > nothing && !d.startSteadily(to) {
			break
		}
	}
	d.rest(to)
}

// rest lets tokens come back while no job starts.
func (d *drainage) rest(to float64) {
	if to <= d.now {
		return
	}
	for i := range d.limits {
		l := &d.limits[i]
		l.tokens = math.Min(l.burst, l.tokens+l.rate*math.Min(to-d.now, 1e12))
	}
	d.now = to
}

// startAtOnce starts what every limit has tokens for.
func (d *drainage) startAtOnce() {
	jobs := d.waiting
	for _, l := range d.limits {
		jobs = math.Min(jobs, l.tokens)
	}
	if jobs <= nothing {
		return
	}
	for i := range d.limits {
		d.limits[i].tokens -= jobs
	}
	d.start(jobs, 0)
}

// startSteadily starts jobs at the slowest rate of the limits that have no tokens left, until something
// changes. It reports whether anything starts at all.
func (d *drainage) startSteadily(to float64) bool {
	rate := math.Inf(1)
	for _, l := range d.limits {
		if l.tokens <= nothing {
			rate = math.Min(rate, l.rate)
		}
	}
	if rate <= 0 {
		return false
	}
	took := math.Min(to-d.now, d.waiting/rate)
	for _, l := range d.limits {
		if l.tokens > nothing && l.rate < rate {
			took = math.Min(took, l.tokens/(rate-l.rate))
		}
	}
	for i := range d.limits {
		l := &d.limits[i]
		l.tokens = math.Max(0, math.Min(l.burst, l.tokens+(l.rate-rate)*took))
	}
	d.start(rate*took, rate)
	if took == to-d.now {
		d.now = to // without a rounding error, which would be walked in ever smaller steps
	} else {
		d.now += took
	}
	return true
}

// start counts jobs that start now, or at a rate from now on, and notes which arrivals have started with
// them altogether.
func (d *drainage) start(jobs, rate float64) {
	before := d.started
	d.started += jobs
	d.waiting = math.Max(0, d.waiting-jobs)
	for len(d.last) < len(d.targets) && d.targets[len(d.last)] <= d.started+nothing {
		at := d.now
		if rate > 0 {
			at += math.Max(0, d.targets[len(d.last)]-before) / rate
		}
		d.last = append(d.last, at)
	}
}

// arrivalsOf gives when the jobs of a count arrive, in seconds after it: those that are due at once, those
// of a minute at its beginning, because that is when much falls due, and those of an hour spread over it.
func arrivalsOf(q QueueWaves) []arrival {
	var out []arrival
	if q.Due.Jobs > 0 {
		out = append(out, arrival{0, q.Due.Jobs, true})
	}
	for _, w := range q.Ahead {
		parts := max(1, int(w.Span/time.Minute))
		for n := range parts {
			jobs := w.Jobs*(n+1)/parts - w.Jobs*n/parts
			at := w.At.Add(time.Duration(n) * time.Minute).Sub(q.CountedAt).Seconds()
			if jobs > 0 {
				out = append(out, arrival{math.Max(0, at), jobs, false})
			}
		}
	}
	sort.SliceStable(out, func(i, k int) bool { return out[i].at < out[k].at })
	return out
}
