package forecast

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/tenancy"
)

// HeldTenant describes how limits hold the jobs of a tenant back, whether the tenant, its tier or the queue sets
// them.
type HeldTenant struct {
	// Tenant is the name of the tenant. Empty: Others is set.
	Tenant string `json:"tenant,omitempty"`
	// Others is how many unnamed tenants this entry stands for, at least. 0: it stands for Tenant.
	Others int `json:"others,omitempty"`
	// PerSecond is how many of its jobs may start per second in the long run. 0: the tenant is paused, and has no
	// other limit.
	PerSecond float64 `json:"per_second,omitempty"`
	// Summary is a few words for people.
	Summary string `json:"summary"`
}

// TenantTimes is when the jobs of one tenant start that fall due in a bucket.
type TenantTimes struct {
	// Tenant is the name of the tenant; empty for jobs without a tenant. Others says that the entry stands for all
	// unnamed tenants.
	Tenant string `json:"tenant"`
	Others bool   `json:"others,omitempty"`
	// Jobs counts the jobs. LastStart, Finished and NeverJobs have the meaning that they have in [Bucket].
	Jobs      int       `json:"jobs"`
	LastStart time.Time `json:"last_start,omitzero"`
	Finished  time.Time `json:"finished,omitzero"`
	NeverJobs int       `json:"never_start,omitempty"`
	// Late is the longest wait after the due time, of the jobs that start.
	Late time.Duration `json:"-"`
}

// crowd is how many jobs each tenant of a queue has queued, for any due time.
type crowd struct {
	names  []string // the tenants that the count names, the largest first
	queued map[string]int
	others int // jobs of all other tenants
}

// crowdOf counts the tenants' jobs in a queue that serves its tenants in turns. For other queues it is empty.
func crowdOf(q QueueCounts, byTenant bool) crowd {
	c := crowd{queued: make(map[string]int)}
	if !byTenant {
		return c
	}
	add := func(t Tally) {
		c.others += othersOf(t)
		for name, jobs := range t.Tenants {
			c.queued[name] += jobs
		}
	}
	for _, t := range []Tally{q.Due, q.Blocked, q.Later} {
		add(t)
	}
	for _, w := range q.Ahead {
		add(w.Tally)
	}
	c.names = slices.SortedFunc(maps.Keys(c.queued), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.queued[b], c.queued[a]), cmp.Compare(a, b))
	})
	return c
}

// othersOf counts the jobs of unnamed tenants.
func othersOf(t Tally) int {
	others := t.Jobs
	for _, jobs := range t.Tenants {
		others -= jobs
	}
	return max(0, others)
}

// least returns how many unnamed tenants there are at least. Each has at most as many jobs as the smallest named
// tenant.
func (c crowd) least() int {
	smallest := 1
	if len(c.names) > 0 {
		smallest = max(1, c.queued[c.names[len(c.names)-1]])
	}
	return (c.others + smallest - 1) / smallest
}

// tenantLine is the waiting line of a tenant, of all unnamed tenants, or of the whole queue.
type tenantLine struct {
	flowLine
	tenant string
	others bool
}

// termsOf reads the effective limits of the named tenants, in one query.
func termsOf(ctx context.Context, store sluice.Store, q sluice.Queue, tenants []string, at time.Time) (map[string]sluice.EffectiveLimits, error) {
	if !q.ByTenant || len(tenants) == 0 {
		return nil, nil
	}
	return tenancy.Given(store).EffectiveLimits(ctx, q, tenants, at)
}

// addLines makes the waiting lines. If the queue serves its tenants in turns, each named tenant has a line, and the
// others share one. Else all jobs share a line.
func (f *queueFlow) addLines(q sluice.Queue, counted QueueCounts, of crowd, terms map[string]sluice.EffectiveLimits) {
	if !q.ByTenant {
		f.lines = []tenantLine{{flowLine: flowLine{arrivals: arrivalsOf(counted, func(t Tally) int { return t.Jobs }), weight: 1, opens: f.opens}}}
		return
	}
	for _, name := range of.names {
		line := tenantLine{tenant: name}
		line.arrivals = arrivalsOf(counted, func(t Tally) int { return t.Tenants[name] })
		f.addLine(line, terms[name], 1, counted, counted.InFlight.Tenants[name])
	}
	if others := arrivalsOf(counted, othersOf); len(others) > 0 {
		least, s := of.least(), q.Settings
		line := tenantLine{others: true}
		line.arrivals = others
		f.addLine(line, sluice.EffectiveLimits{Concurrency: s.TenantConcurrency, Rate: s.TenantRate, Burst: s.TenantBurst, Weight: 1}, least, counted, othersOf(counted.InFlight))
		f.notes = append(f.notes, fmt.Sprintf("the tenants beyond the %d largest are taken together, as %d or more by the queue's tenant_concurrency and tenant_rate; what is granted to them or to their tiers is left out", len(of.names), least))
	}
	f.noteTerms(of.names, terms)
}

// addLine adds a line of this many tenants, who have jobs in flight already.
func (f *queueFlow) addLine(line tenantLine, t sluice.EffectiveLimits, tenants int, counted QueueCounts, inFlight int) {
	if len(line.arrivals) == 0 {
		return
	}
	many := float64(tenants)
	line.weight, line.opens = many*float64(max(1, t.Weight)), f.opens
	held := HeldTenant{Tenant: line.tenant}
	if line.others {
		held.Others = tenants
	}
	var says []string
	if t.Paused {
		line.opens, says = f.pausedLine(line, t, counted), append(says, pausedWords(t))
	}
	if !t.Rate.IsZero() {
		limit := rateLimit("rate", t.Rate, t.Burst, many)
		if line.arrivals[0].due {
			limit.tokens = 0 // claims have taken them already
		}
		line.limits, says = append(line.limits, limit), append(says, "rate "+t.Rate.String())
	}
	switch {
	case t.Concurrency == 0:
	case f.runTime <= 0:
		f.unknownConcurrency = true
	default:
		line.limits = append(line.limits, placesLimit("places", many*float64(t.Concurrency), inFlight, f.runTime))
		says = append(says, fmt.Sprintf("concurrency %d, each job %s", t.Concurrency, sluice.FormatDuration(roundRun(f.runTime))))
	}
	f.lines = append(f.lines, line)
	if len(says) > 0 {
		held.PerSecond, held.Summary = slowest(line.limits), strings.Join(says, " and ")
		f.held = append(f.held, held)
	}
}

// rateLimit returns the limit of a rate for this many tenants.
func rateLimit(name string, rate sluice.Rate, burst int, many float64) flowLimit {
	most := rate.Tokens(burst)
	return flowLimit{tokens: many * most, burst: many * most, rate: many * rate.PerSecond(), name: name}
}

// placesLimit returns the limit of jobs in flight.
func placesLimit(name string, places float64, inFlight int, runTime time.Duration) flowLimit {
	return flowLimit{tokens: math.Max(0, places-float64(inFlight)), burst: places, rate: places / runTime.Seconds(), name: name, places: true}
}

// slowest returns how many jobs may start per second in the long run. 0: no limit.
func slowest(limits []flowLimit) float64 {
	rate := 0.0
	for i, l := range limits {
		if i == 0 || l.rate < rate {
			rate = l.rate
		}
	}
	return rate
}

// pausedLine returns when a paused tenant's jobs may start, and adds a note.
func (f *queueFlow) pausedLine(line tenantLine, t sluice.EffectiveLimits, counted QueueCounts) float64 {
	jobs := 0
	for _, a := range line.arrivals {
		jobs += a.jobs
	}
	if t.PausedUntil.IsZero() {
		f.notes = append(f.notes, fmt.Sprintf("tenant %q is paused, so that its %s never start before somebody resumes it", line.tenant, jobsText(jobs)))
		return math.Inf(1)
	}
	f.notes = append(f.notes, fmt.Sprintf("tenant %q is paused until %s, and its %s with it", line.tenant, feature.InstantText(t.PausedUntil), jobsText(jobs)))
	return math.Max(f.opens, t.PausedUntil.Sub(counted.CountedAt).Seconds())
}

func jobsText(n int) string {
	if n == 1 {
		return "1 job"
	}
	return strconv.Itoa(n) + " jobs"
}

func pausedWords(t sluice.EffectiveLimits) string {
	if t.PausedUntil.IsZero() {
		return "paused"
	}
	return "paused until " + feature.InstantText(t.PausedUntil)
}

// noteTerms notes the assumptions about the limits of tenants.
func (f *queueFlow) noteTerms(names []string, terms map[string]sluice.EffectiveLimits) {
	if f.unknownConcurrency {
		f.notes = append(f.notes, "the concurrencies of tenants are left out, because how long a job runs is not known: none finished lately")
	}
	var ends []string
	for _, name := range names {
		if until := terms[name].Until; !until.IsZero() {
			ends = append(ends, fmt.Sprintf("of tenant %q at %s", name, feature.InstantText(until)))
		}
	}
	if len(ends) > 0 {
		f.notes = append(f.notes, "limits that end are taken to stay: "+strings.Join(ends, ", "))
	}
}

// heldGroups is how many kinds of tenants' limits Held describes.
const heldGroups = 3

// heldWords describes how the tenants' limits hold jobs back, and groups tenants with equal limits.
func heldWords(held []HeldTenant) []string {
	var says []string
	by := make(map[string][]HeldTenant)
	for _, h := range held {
		if len(by[h.Summary]) == 0 {
			says = append(says, h.Summary)
		}
		by[h.Summary] = append(by[h.Summary], h)
	}
	var out []string
	more := 0
	for i, text := range says {
		if i >= heldGroups {
			more += len(by[text])
			continue
		}
		out = append(out, whoIsHeld(by[text])+": "+text)
	}
	switch {
	case more == 1:
		out = append(out, "1 more tenant: by its own limits")
	case more > 1:
		out = append(out, fmt.Sprintf("%d more tenants: by their own limits", more))
	}
	return out
}

func whoIsHeld(held []HeldTenant) string {
	named, others := len(held), held[len(held)-1].Others > 0
	if others {
		named--
	}
	switch {
	case named == 0:
		return "each tenant beyond the largest"
	case named == 1 && others:
		return fmt.Sprintf("tenant %q and each of the others", held[0].Tenant)
	case named == 1:
		return fmt.Sprintf("tenant %q", held[0].Tenant)
	case others:
		return fmt.Sprintf("each of %d tenants and of the others", named)
	}
	return fmt.Sprintf("each of %d tenants", named)
}
