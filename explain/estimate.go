package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/stat"
)

// estimate is when jobs that are in flight or ahead will have made room for a job. The zero value knows nothing.
type estimate struct {
	// reason is the reason of the limit of jobs in flight that it is about. Empty: nothing is known.
	reason string
	at     time.Time
	// how says for people how the instant was estimated.
	how string
}

// opens reports whether a closed reason opens by the estimate: that of its limit, and the jobs ahead. A limit that ends
// earlier opens by itself.
func (e estimate) opens(g Reason) bool {
	return e.reason != "" && (g.Name == e.reason || g.Name == "order") && (g.Until.IsZero() || e.at.Before(g.Until))
}

// ranFor is how far estimateOf looks back for how long jobs run.
const ranFor = time.Hour

// estimateOf estimates when a limit of jobs in flight lets a job start: when those in flight and ahead have ended that have
// to, each after half of them ran as long of late. It knows nothing if other queues or tenants share the limit, because
// nobody knows who gets the next place, and if no job completed of late. It reads statistics only for a job that the limit
// or the jobs ahead stop.
func estimateOf(ctx context.Context, store sluice.Store, q sluice.Queue, why Explanation, o Position) (estimate, error) {
	reason, most, held := "in_flight", q.Settings.Concurrency, o.InFlight
	if o.ByTenant {
		reason, most, held = "concurrency", o.EffectiveLimits.Concurrency, o.Held
	}
	if most == 0 || held >= CountLimit || o.Ahead >= CountLimit || !why.stoppedBy(reason, "order") {
		return estimate{}, nil
	}
	first := max(0, o.Ahead+1+held-most)
	if first == 0 {
		return estimate{reason, o.Now, "the jobs before it leave room for it among those that may run at once"}, nil
	}
	ran, whose, err := ranOf(ctx, store, why.Job, o)
	if err != nil || ran == 0 {
		return estimate{}, err
	}
	took := time.Duration(float64(first) * float64(ran) / float64(most))
	jobs := "1 job"
	if first > 1 {
		jobs = fmt.Sprintf("%d jobs", first)
	}
	how := fmt.Sprintf("%s must end first, at most %d run at once, and half of the jobs of %s that completed in the last hour ran at most %s",
		jobs, most, whose, sluice.FormatDuration(ran.Round(time.Millisecond)))
	return estimate{reason, o.Now.Add(took), how}, nil
}

// stoppedBy reports whether one of some reasons is closed.
func (e Explanation) stoppedBy(names ...string) bool {
	return slices.ContainsFunc(e.Closed(), func(g Reason) bool { return slices.Contains(names, g.Name) })
}

// ranOf returns how long half of the jobs ran at most that completed of late: those of the tenant if the statistics name it, else
// those of the queue. 0: none completed, or the store counts nothing.
func ranOf(ctx context.Context, store sluice.Store, j sluice.Job, o Position) (ran time.Duration, whose string, err error) {
	of := stat.Filter{Queues: []string{j.Queue}, From: o.Now.Add(-ranFor), To: o.Now}
	if o.ByTenant && j.Tenant != "" {
		of.Tenant = j.Tenant
		if ran, err = medianOf(ctx, store, of); ran > 0 || err != nil {
			return ran, tenantName(j), err
		}
		of.Tenant = ""
	}
	ran, err = medianOf(ctx, store, of)
	return ran, fmt.Sprintf("queue %q", j.Queue), err
}

func medianOf(ctx context.Context, store sluice.Store, of stat.Filter) (time.Duration, error) {
	slots, err := stat.Read(ctx, store, of)
	if errors.Is(err, sluice.ErrNotFound) {
		return 0, nil
	}
	var all stat.Histogram
	for _, s := range slots {
		all.Merge(s.Run)
	}
	if err != nil || all.Count() == 0 {
		return 0, err
	}
	return all.Quantile(0.5), nil
}
