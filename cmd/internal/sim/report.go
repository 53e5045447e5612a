package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Report is the result of a run. Times are in seconds. Rows of tenants are sorted by their longest
// wait, longest first.
type Report struct {
	// Scenario and About are the name and the description of the scenario. Seed is the seed of every random choice, and
	// Start the first instant of the virtual clock.
	Scenario string    `json:"scenario"`
	About    string    `json:"about,omitempty"`
	Seed     uint64    `json:"seed"`
	Start    time.Time `json:"start"`
	// Seconds is the length of the run on the virtual clock.
	Seconds float64 `json:"seconds"`
	// SlotsUsed is the share of all slots that ran jobs, from the first due time to the last end.
	SlotsUsed float64 `json:"slots_used"`
	Queues    []Row   `json:"queues"`
	Tiers     []Row   `json:"tiers"`
	Tenants   []Row   `json:"tenants"`
	Checks    []Check `json:"checks"`
	// Holds reports whether every check holds.
	Holds bool `json:"holds"`
}

// Row is the figures of a queue, or of a tier or a tenant in it.
type Row struct {
	// Queue is the queue. Tier or Tenant is the tier or the tenant in it; both empty: the whole queue.
	Queue  string `json:"queue"`
	Tier   string `json:"tier,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// Jobs is the number of jobs; Completed, Dead, Unfinished and Refused count them by outcome. A
	// job is refused if its queue is full. Failed counts attempts.
	Jobs       int `json:"jobs"`
	Completed  int `json:"completed"`
	Dead       int `json:"dead"`
	Unfinished int `json:"unfinished"`
	Refused    int `json:"refused"`
	Failed     int `json:"failed_attempts"`
	// Drain is the time from the last due time until all jobs had ended. Nil: they never had.
	Drain *float64 `json:"drain_seconds"`
	Wait  Wait     `json:"wait"`
	// InFlight is the most jobs in flight at once.
	InFlight int `json:"in_flight"`
	// SlotsUsed is the share of the slots of the queue's processes that ran its jobs, from the
	// first due time to the last end. Only queues have this and the following fields.
	SlotsUsed float64 `json:"slots_used,omitempty"`
	// RateUsed is the share of the rate's tokens that was taken, among the tokens that came while
	// jobs waited.
	RateUsed *float64 `json:"rate_used,omitempty"`
	Windows  []Window `json:"windows,omitempty"`
	// Fairness is Jain's index over the tenants: for each, the share of its fair share of starts
	// that it got, at most 1. Only time counts in which the tenant had a job due and was below its
	// concurrency limit. Fair shares follow the weights. Tenants with their own rate are left out.
	// Nil: fewer than 2 others.
	Fairness *float64 `json:"fairness,omitempty"`
	// LeastShare is the smallest share of its fair share that a tenant got. Fairness is a mean, and
	// hides one tenant among many.
	LeastShare *float64 `json:"least_share,omitempty"`
}

// Wait is the time from due to start, over every attempt.
type Wait struct {
	// Mean, P50 and P99 are the mean, the median and the 99th percentile. Nil: nothing started.
	Mean *float64 `json:"mean_seconds"`
	P50  *float64 `json:"p50_seconds"`
	P99  *float64 `json:"p99_seconds"`
	// Max includes jobs that still wait, with their wait so far.
	Max float64 `json:"max_seconds"`
}

// Window is the most starts in any window of a length, and the number that the rate and the burst
// allow.
type Window struct {
	// Seconds is the length. Most is the most starts in any window of it, and Allowed the number that is allowed.
	Seconds float64 `json:"seconds"`
	Most    int     `json:"most"`
	Allowed float64 `json:"allowed"`
}

func (s *simulation) report() Report {
	r := Report{Scenario: s.scenario.Name, About: s.scenario.About, Seed: s.scenario.Seed, Start: s.scenario.Start.UTC(), Seconds: s.now.Seconds(), Holds: true}
	for _, l := range s.order {
		r.Queues = append(r.Queues, s.rowOfQueue(l))
		for _, name := range l.tierOrder {
			if len(s.scenario.Tiers) > 0 {
				r.Tiers = append(r.Tiers, s.row(l, *l.tiers[name], Row{Tier: name}, l.tenantsOf(&name)))
			}
		}
		for _, t := range l.order {
			if t.Tenant != "" {
				r.Tenants = append(r.Tenants, s.row(l, t.tally, Row{Tier: t.tier, Tenant: t.Tenant}, []*tenant{t}))
			}
		}
	}
	slices.SortStableFunc(r.Tenants, func(a, b Row) int { return cmp.Compare(b.Wait.Max, a.Wait.Max) })
	r.SlotsUsed = s.slotsUsed()
	r.Checks = s.checks(r)
	for _, c := range r.Checks {
		r.Holds = r.Holds && c.Holds
	}
	return r
}

// tenantsOf lists the tenants of a queue, or of a tier in it.
func (l *queue) tenantsOf(tier *string) []*tenant {
	var tenants []*tenant
	for _, t := range l.order {
		if tier == nil || t.tier == *tier {
			tenants = append(tenants, t)
		}
	}
	return tenants
}

func (s *simulation) row(l *queue, t tally, r Row, tenants []*tenant) Row {
	r.Queue, r.Jobs, r.Completed, r.Dead, r.Unfinished, r.Refused, r.Failed, r.InFlight = l.name, t.jobs+t.refused, t.completed, t.dead, t.unfinished, t.refused, t.failed, t.peak
	if t.unfinished == 0 && t.jobs > 0 {
		drain := (t.lastEnd - t.lastDue).Seconds()
		r.Drain = &drain
	}
	var waits []time.Duration
	longest := time.Duration(0)
	for _, x := range tenants {
		waits = append(waits, x.waits...)
		for due := range x.dues {
			longest = max(longest, s.now-due)
		}
	}
	r.Wait = waitOf(waits)
	r.Wait.Max = max(r.Wait.Max, longest.Seconds())
	return r
}

// waitOf summarises waits, and sorts them.
func waitOf(waits []time.Duration) Wait {
	if len(waits) == 0 {
		return Wait{}
	}
	slices.Sort(waits)
	var sum float64
	for _, w := range waits {
		sum += w.Seconds()
	}
	rank := func(share float64) *float64 {
		at := waits[max(int(math.Ceil(share*float64(len(waits)))), 1)-1].Seconds()
		return &at
	}
	mean := sum / float64(len(waits))
	return Wait{Mean: &mean, P50: rank(0.5), P99: rank(0.99), Max: waits[len(waits)-1].Seconds()}
}

func (s *simulation) rowOfQueue(l *queue) Row {
	r := s.row(l, l.tally, Row{}, l.order)
	l.slotsTaken(0, s.now)
	r.SlotsUsed = part(l.busy, time.Duration(l.slots)*(s.lastEnd(l)-l.firstDue))
	if l.pace != nil {
		used := l.pace.used()
		r.RateUsed = &used
		for _, w := range l.pace.windows {
			r.Windows = append(r.Windows, Window{w.length.Seconds(), w.most, l.pace.allowed(w, l.settings.Burst)})
		}
	}
	var parts []float64
	for _, t := range l.order {
		if t.pace == nil && t.jobs > 0 {
			parts = append(parts, l.sharing.part(t))
		}
	}
	if len(parts) > 1 {
		fairness, least := jain(parts), slices.Min(parts)
		r.Fairness, r.LeastShare = &fairness, &least
	}
	return r
}

// lastEnd returns when the last job of a queue ended, or else the end of the run.
func (s *simulation) lastEnd(l *queue) time.Duration {
	if l.unfinished > 0 {
		return s.now
	}
	return l.lastEnd
}

func part(of, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return of.Seconds() / whole.Seconds()
}

// slotsUsed is the share over all slots.
func (s *simulation) slotsUsed() float64 {
	var slots int
	for _, p := range s.processes {
		slots += p.Slots
	}
	var busy, to time.Duration
	from := s.now
	for _, l := range s.order {
		if l.jobs > 0 {
			busy, from, to = busy+l.busy, min(from, l.firstDue), max(to, s.lastEnd(l))
		}
	}
	return part(busy, time.Duration(slots)*(to-from))
}

// checks runs the checks that always apply, and the scenario's expectations.
func (s *simulation) checks(r Report) []Check {
	var checks []Check
	for _, l := range s.order {
		if l.pace != nil {
			checks = append(checks, Check{
				fmt.Sprintf("rate of queue %s kept", l.name),
				fmt.Sprintf("%s, burst %.0f", l.settings.Rate, l.pace.burst), fmt.Sprintf("%d starts too early", l.pace.over), l.pace.over == 0,
			})
			for _, w := range l.pace.windows {
				if allowed := l.pace.allowed(w, l.settings.Burst); w.length == l.settings.Rate.Per {
					checks = append(checks, Check{
						fmt.Sprintf("every window of queue %s kept", l.name), fmt.Sprintf("<= %.0f in %s", allowed, w.length), fmt.Sprint(w.most), float64(w.most) <= allowed,
					})
				}
			}
		}
		if limit := l.settings.Concurrency; limit > 0 {
			checks = append(checks, Check{
				fmt.Sprintf("concurrency limit of queue %s kept", l.name),
				fmt.Sprintf("<= %d", limit), fmt.Sprint(l.peak), l.peak <= limit,
			})
		}
		checks = append(checks, l.checkTenants()...)
	}
	for _, e := range s.scenario.Expect {
		checks = append(checks, e.check(r, s.scenario.group(e.Tenant))...)
	}
	return checks
}

// checkTenants checks the limits of every tenant that has limits.
func (l *queue) checkTenants() []Check {
	var capped, over, paced, early int
	for _, t := range l.order {
		if t.concurrency > 0 {
			capped++
		}
		if t.concurrency > 0 && t.peak > t.concurrency {
			over++
		}
		if t.pace != nil {
			paced++
			early += t.pace.over
		}
	}
	var checks []Check
	if capped > 0 {
		checks = append(checks, Check{fmt.Sprintf("concurrencies in queue %s kept", l.name), "all", fmt.Sprintf("by %d of %d tenants", capped-over, capped), over == 0})
	}
	if paced > 0 {
		checks = append(checks, Check{fmt.Sprintf("rates of tenants in queue %s kept", l.name), fmt.Sprintf("%d tenants", paced), fmt.Sprintf("%d starts too early", early), early == 0})
	}
	return checks
}
