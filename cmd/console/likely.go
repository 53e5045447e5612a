package console

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/tenancy"
)

// span is a part of time.
type span struct{ from, to time.Time }

const (
	// neighbours is how many jobs on each side of a job its page reads to see what held it: of its queue, and of its tenant.
	neighbours = 200
	// neighboursFor is how long what they tell is shared: it is past.
	neighboursFor = 30 * time.Second
	// longIdle is from when a wait in which nobody claimed is said to be one for a worker: workers look seldom, too.
	longIdle = 5 * time.Second
	// nearRate is the share of a rate from which on a slot of the statistics counts as full.
	nearRate = 0.9
)

// likely names what probably held a job in the waits of which nobody noted the cause, by what the store still has: the runs of
// the jobs next to it, the statistics, and the limits of today. It reads a bounded number of jobs. What it cannot read, it does
// not name.
func (j *jobView) likely(ctx context.Context, v *visit, wait span) []step {
	job := j.Job
	var queue queueRow
	if v.read(ctx, "/queues/"+url.PathEscape(job.Queue), nil, &queue) != nil {
		return nil
	}
	_, settings, err := settingRows(queue.Settings, nil)
	if err != nil {
		return nil
	}
	near := v.near(ctx, job, "queue", job.Queue)
	claims := v.claims(ctx, job.Queue, wait)
	all := append(inOrder(job, near.older), claims.atRate(settings.Rate, wait)...)
	all = append(all, full(near.runs(job.Queue), settings.Concurrency, wait, "the concurrency of its queue", "the queue")...)
	most := 0
	if job.Tenant != "" {
		of := tenantRow{}
		_ = v.read(ctx, "/tenants/"+url.PathEscape(job.Tenant), nil, &of) // without it the settings of the queue count
		if most = of.in(job.Queue, settings).Concurrency; most > 0 {
			all = append(all, full(v.near(ctx, job, "tenant", job.Tenant).runs(job.Queue), most, wait, "tenant concurrency", job.Tenant)...)
		}
	}
	bounds := settings.Concurrency > 0 || most > 0 // which a job that is not near may fill
	if settings.Limits == "" && job.OrderKey == "" && job.LimitKey == "" && (near.whole || !bounds) {
		all = append(all, claims.idle(near.runs(job.Queue), wait, settings.Engine)...)
	}
	slices.SortStableFunc(all, func(a, b step) int { return a.From.Compare(b.From) })
	return all
}

// nearby are the jobs that were enqueued next to a job.
type nearby struct {
	older, newer []jobRow
	// whole says that no older one is missing.
	whole bool
}

// near reads the jobs next to a job that have its queue or its tenant. What it cannot read is missing.
func (v *visit) near(ctx context.Context, job jobRow, field, value string) (out nearby) {
	for _, oldestFirst := range []bool{false, true} {
		var read struct {
			Jobs []jobRow `json:"jobs"`
			Next string   `json:"next"`
		}
		query := url.Values{field: {value}, "before": {job.ID.String()}, "limit": {strconv.Itoa(neighbours)}, "oldest_first": {strconv.FormatBool(oldestFirst)}}
		switch err := v.readFor(ctx, neighboursFor, "/jobs", query, &read); {
		case err != nil:
			return out
		case oldestFirst:
			out.newer = read.Jobs
		default:
			out.older, out.whole = read.Jobs, read.Next == "" && !v.viewer.bounded()
		}
	}
	return out
}

// in returns the limits of a tenant in a queue, as they are today.
func (t tenantRow) in(queue string, s sluice.Settings) sluice.EffectiveLimits {
	nearest := slices.Concat(t.Limits, t.TierLimits)
	nearest = slices.DeleteFunc(nearest, func(l tenancy.Limits) bool { return l.Queue != "" && l.Queue != queue })
	slices.SortStableFunc(nearest, func(a, b tenancy.Limits) int {
		return cmp.Or(cmp.Compare(len(b.Tenant), len(a.Tenant)), cmp.Compare(len(b.Queue), len(a.Queue)))
	})
	return flow.EffectiveLimitsOf(t.Name, s, time.Now(), nearest...)
}

// runs are the spans in which those of a queue were in flight, as far as they still tell: each tells of its last claim.
func (n nearby) runs(queue string) (runs []span) {
	for _, r := range slices.Concat(n.older, n.newer) {
		end := r.FinishedAt
		switch r.State {
		case sluice.StateClaimed, sluice.StateDispatched:
			end = time.Now()
		case sluice.StateCompleted, sluice.StateDead:
		default: // one that was cancelled may have waited since its claim
			continue
		}
		if r.Queue == queue && !r.ClaimedAt.IsZero() {
			runs = append(runs, span{r.ClaimedAt, end})
		}
	}
	return runs
}

// busy are the parts of a whole in which at least most of the runs were under way. Two parts with less than a moment between
// them are one: it takes a moment until a free slot has its next job.
func busy(runs []span, most int, whole span) (out []span) {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, r := range runs {
		if from, to := latest(r.from, whole.from), earliest(r.to, whole.to); to.After(from) {
			changes = append(changes, change{from, 1}, change{to, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(b.by, a.by)) })
	under := 0
	for _, c := range changes {
		before := under
		under += c.by
		last := len(out) - 1
		switch {
		case before >= most && under < most:
			out[last].to = c.at
		case before < most && under >= most && (last < 0 || c.at.Sub(out[last].to) >= unnoted):
			out = append(out, span{from: c.at})
		}
	}
	return out
}

// earliest returns the earlier instant.
func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// full are the waits for a concurrency.
func full(runs []span, most int, wait span, what, who string) []step {
	if most == 0 {
		return nil
	}
	return partsOf(busy(runs, most, wait), what, fmt.Sprintf("%s had %d in flight, as many as are allowed today", who, most))
}

// mostParts is how many parts of a wait have the same cause and a line each.
const mostParts = 2

// partsOf tells the parts of a wait with a cause. If they are many, they are one line, which says how long they are together.
func partsOf(parts []span, what, detail string) (all []step) {
	whole := time.Duration(0)
	for _, s := range parts {
		if took := s.to.Sub(s.from); took >= unnoted {
			whole += took
			all = append(all, step{From: s.from, To: s.to, Text: "probably waited for " + what, Detail: detail})
		}
	}
	if len(all) <= mostParts {
		return all
	}
	return []step{{
		From: all[0].From, To: all[len(all)-1].To,
		Text: "probably waited for " + what + ", on and off", Detail: "in " + spanText(whole) + " of it " + detail,
	}}
}

// inOrder is the wait for older jobs of the same key or order key.
func inOrder(job jobRow, older []jobRow) []step {
	last, what := jobRow{}, ""
	for _, r := range older {
		earlier := r.FinishedAt.After(last.FinishedAt) && !r.FinishedAt.After(job.ClaimedAt)
		switch {
		case earlier && job.OrderKey != "" && r.OrderKey == job.OrderKey:
			last, what = r, "earlier jobs of its order key"
		case earlier && job.Key != "" && r.Key == job.Key:
			last, what = r, "the job that held its key"
		}
	}
	if what == "" {
		return nil
	}
	return []step{{From: job.CreatedAt, To: last.FinishedAt, Text: "probably waited for " + what, Detail: "the last was " + last.ID.String()}}
}

// claims is how often jobs of a queue were claimed.
type claims struct {
	counted bool
	every   time.Duration
	slots   []slot
}

// claims reads the statistics of a wait. Where it cannot, nothing is counted.
func (v *visit) claims(ctx context.Context, queue string, wait span) claims {
	var read series
	query := url.Values{"from": {wait.from.UTC().Format(time.RFC3339)}, "to": {wait.to.UTC().Format(time.RFC3339)}}
	if v.readFor(ctx, neighboursFor, "/queues/"+url.PathEscape(queue)+"/series", query, &read) != nil {
		return claims{}
	}
	return claims{read.Counted, time.Duration(read.Every * float64(time.Second)), read.Slots}
}

// over are the slots with at least so many claims.
func (c claims) over(least float64) (slots []span) {
	for _, s := range c.slots {
		if float64(s.Counts.Claimed) >= least {
			slots = append(slots, span{s.At, s.At.Add(c.every)})
		}
	}
	return slots
}

// atRate are the parts of a wait in which jobs were claimed as fast as a rate allows.
func (c claims) atRate(rate sluice.Rate, wait span) []step {
	if rate.IsZero() {
		return nil
	}
	parts := busy(c.over(nearRate*rate.PerSecond()*c.every.Seconds()), 1, wait)
	return partsOf(parts, "the rate of its queue", "its jobs were claimed as fast as the rate of today allows, "+rate.String())
}

// idle are the parts of a wait in which nobody claimed a job of the queue, and none of the jobs next to it was in flight.
func (c claims) idle(runs []span, wait span, engine string) (all []step) {
	if wait.to = earliest(wait.to, time.Now().Add(-seriesDelay)); !c.counted {
		return nil
	}
	who := "a worker"
	if engine != "" {
		who = "a dispatcher"
	}
	from := wait.from
	for _, s := range append(busy(append(runs, c.over(1)...), 1, wait), span{from: wait.to}) {
		if s.from.Sub(from) >= longIdle {
			all = append(all, step{From: from, To: s.from, Text: "probably waited for " + who, Detail: "nobody claimed a job of the queue meanwhile"})
		}
		from = s.to
	}
	return all
}
