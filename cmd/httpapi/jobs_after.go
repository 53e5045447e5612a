package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/graph"
	"github.com/sluice-queue/sluice/internal/storing"
)

// mostAfter is the most different jobs that the jobs of one body may run after, if the caller has bounds: the server reads each.
const mostAfter = sluice.MaxAfter

// afterCheck refuses jobs of a caller with bounds that run after jobs outside of them. It reads each job once.
type afterCheck struct {
	c     *call
	known map[sluice.ID]error     // of the jobs that were read
	twins map[sluice.ID]sluice.ID // the holders of the keys of jobs of the request that were duplicates
	holds map[sluice.ID]bool      // whether the holders of keys that were read are outside of the bounds
	most  int                     // the most jobs to read; 0: all
	ended error                   // why no further job of the request is stored
}

func (c *call) afterCheck(most int) *afterCheck {
	return &afterCheck{c: c, known: make(map[sluice.ID]error), twins: make(map[sluice.ID]sluice.ID), holds: make(map[sluice.ID]bool), most: most}
}

// of returns why a job may not be stored. The rules of jobs come first, because they bound how many others a job runs after.
func (a *afterCheck) of(ctx context.Context, o *offered) error {
	if err := cmp.Or(o.err, a.ended); err != nil || a.c.caller.None() || len(o.job.After) == 0 {
		return err
	}
	if err := o.job.Check(); err != nil {
		return err
	}
	for i, id := range o.job.After {
		if holder, duplicate := a.twins[id]; duplicate {
			o.job.After[i], o.job.AfterFailures = holder, storing.AfterTwin(o.job.AfterFailures, id, holder)
		}
		if err := a.ofJob(ctx, o.job.After[i]); err != nil {
			return err
		}
	}
	return nil
}

// ofJob returns why no job of the caller may run after a job.
func (a *afterCheck) ofJob(ctx context.Context, id sluice.ID) error {
	err, read := a.known[id]
	if read {
		return err
	}
	if a.most > 0 && len(a.known) == a.most {
		return &sluice.InvalidError{Field: "after", Rule: fmt.Sprintf("jobs of one request run after more than %d others, and the token is bounded; send the rest in another request", a.most)}
	}
	if err = ctx.Err(); err == nil {
		_, err = a.c.job(ctx, id)
	}
	a.known[id] = err
	return err
}

// note notes that a job of the request was stored, or was a duplicate.
func (a *afterCheck) note(job *sluice.NewJob, receipt sluice.Receipt) {
	if receipt.ID != job.ID && !a.c.caller.None() {
		a.twins[job.ID] = receipt.ID
	}
}

// holder refuses a job whose key a job outside of the caller's bounds holds. Only bounds by tenants separate jobs with one key. The
// receipt of a key whose job was deleted stays a duplicate, as the producer asked.
func (a *afterCheck) holder(ctx context.Context, job *sluice.NewJob, receipt sluice.Receipt) error {
	if !receipt.Duplicate || receipt.ID == job.ID || len(a.c.caller.Tenants) == 0 {
		return nil
	}
	foreign, read := a.holds[receipt.ID]
	if !read {
		var err error
		if foreign, err = a.c.isForeign(ctx, receipt.ID); err != nil {
			return err
		}
		a.holds[receipt.ID] = foreign
	}
	if foreign {
		return storing.KeyOfOther(job.Key)
	}
	return nil
}

// isForeign reports whether a job is stored and outside of the caller's bounds.
func (c *call) isForeign(ctx context.Context, id sluice.ID) (bool, error) {
	job, err := c.api.client().Job(ctx, id)
	if errors.Is(err, sluice.ErrNotFound) {
		return false, nil
	}
	return err == nil && !c.caller.Job(job.Queue, job.Tenant), err
}

// steps returns which jobs of a request are stored together, one step after the other. If the caller has bounds, a job is stored in a
// step behind the jobs of the request that it runs after, so that they are read first: a foreign job may have the ID or the key of
// one of them, and may have got it since the request came.
func (a *afterCheck) steps(all []offered) [][]int {
	waits, named := make([][]int, len(all)), make([]int, len(all))
	if !a.c.caller.None() && slices.ContainsFunc(all, func(o offered) bool { return len(o.job.After) > 0 }) {
		waits, named = waitsOf(all)
	}
	order, circles := graph.Sort(waits)
	for _, i := range slices.Concat(circles...) {
		all[i].err = cmp.Or(all[i].err, error(&sluice.InvalidError{Field: "after", Rule: "jobs of the request wait for each other, by after or by their order"}))
	}
	var steps [][]int
	of := make([]int, len(all))
	for _, i := range order {
		for k, before := range waits[i] {
			if of[i] = max(of[i], of[before]); k < named[i] {
				of[i] = max(of[i], of[before]+1)
			}
		}
	}
	for i, step := range of { // within a step, jobs keep their order
		for len(steps) <= step {
			steps = append(steps, nil)
		}
		steps[step] = append(steps[step], i)
	}
	return steps
}

// waitsOf returns which jobs of a request each job waits for: the first of them, as many as named says, because it names them in after,
// and the others because they come before it with the same ID, key or order key.
func waitsOf(all []offered) (waits [][]int, named []int) {
	type sequence struct{ queue, kind, key string }
	waits, named = make([][]int, len(all)), make([]int, len(all))
	byID, last := make(map[sluice.ID]int), make(map[sequence]int)
	for i, o := range all {
		if o.err == nil && !o.job.ID.IsZero() {
			byID[o.job.ID] = i // the last of those with the ID, which waits for the others: none is stored together with a job behind them
		}
	}
	for i, o := range all {
		if o.err != nil {
			continue
		}
		for _, id := range o.job.After {
			if before, listed := byID[id]; listed {
				waits[i] = append(waits[i], before)
			}
		}
		named[i] = len(waits[i])
		places := []sequence{{o.job.Queue, "key", o.job.Key}, {o.job.Queue, "order", o.job.OrderKey}, {"", "id", o.job.ID.String()}}
		for _, place := range places {
			if place.key == "" || place.kind == "id" && o.job.ID.IsZero() {
				continue
			}
			if before, known := last[place]; known {
				waits[i] = append(waits[i], before)
			}
			last[place] = i
		}
	}
	return waits, named
}
