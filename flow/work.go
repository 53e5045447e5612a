package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/pressure"
)

const (
	// endBatch and mapBatch are how many jobs one claim takes, and workLease how long it holds: a map of 10,000 elements takes
	// seconds. If a lease runs out, the work is repeated, and changes nothing more.
	endBatch  = 100
	mapBatch  = 4
	workLease = 30 * time.Second
	// maxLooks is how often one call of Work looks for more, because upkeep has other work.
	maxLooks = 50
	// mapPatience is how long a map waits for word of its last job before it looks by itself.
	mapPatience = 10 * time.Minute
	// again is the wait before another try, for example while a queue is full or the store is out of reach.
	again = 5 * time.Second
	// maxMapBytes is the most bytes of the payloads of a map's jobs, which are stored in one transaction.
	maxMapBytes = 64 << 20
)

// Work does the work of flows that is due: it makes the jobs of maps, ends maps and ends flows. It returns how many jobs it
// settled. Upkeep calls it every second; any number of processes may. If nothing is due, it costs one look. If much is due, some
// may be left for the next call. Checker checks the payloads of maps by the payload_schema of their queues; nil: only workers do.
func Work(ctx context.Context, store sluice.Store, holder string, checker sluice.PayloadChecker) (settled int, err error) {
	w := working{store: sluice.GivenStore(store), holder: holder, checker: checker}
	for range maxLooks {
		due, err := w.store.NextDue(ctx, []string{EndQueue, MapQueue})
		if err != nil {
			return settled, fmt.Errorf("look for work of flows: %w", err)
		}
		done := 0
		for queue, wait := range due {
			if wait > 0 {
				continue
			}
			n, err := w.batch(ctx, queue)
			if done += n; err != nil {
				return settled + done, err
			}
		}
		if settled += done; done == 0 {
			break
		}
	}
	return settled, nil
}

// working does the work of flows.
type working struct {
	store   sluice.Store
	holder  string
	checker sluice.PayloadChecker
}

// batch claims, does and settles some jobs of a queue.
func (w working) batch(ctx context.Context, queue string) (int, error) {
	limit := endBatch
	if queue == MapQueue {
		limit = mapBatch
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	// Not ctx: if the answer to a claim is thrown away, its jobs stay locked until the lease ends.
	claimed, err := w.store.Claim(context.WithoutCancel(ctx), sluice.ClaimRequest{Queue: queue, Limit: limit, Holder: w.holder, Lease: workLease, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) == 0 {
		return 0, err
	}
	settlements := make([]sluice.Settlement, len(claimed.Jobs))
	for i, c := range claimed.Jobs {
		settlements[i] = w.settlement(ctx, c)
	}
	errs, err := w.store.Settle(context.WithoutCancel(ctx), settlements)
	if err != nil {
		return 0, fmt.Errorf("settle work of flows: %w", err)
	}
	for i, err := range errs {
		if err != nil && !errors.Is(err, sluice.ErrLost) { // upkeep took a lost one back; its work may be repeated
			return 0, fmt.Errorf("settle job %s of flows: %w", settlements[i].ID, err)
		}
	}
	return len(settlements), nil
}

// verdict says how a job of flows goes on: it completes with a result, is released for a time, or dies of an error.
type verdict struct {
	result any
	delay  time.Duration
	err    error
}

// settlement does the work of a job.
func (w working) settlement(ctx context.Context, c *sluice.Claim) sluice.Settlement {
	v := w.work(ctx, c)
	out := sluice.Settlement{ID: c.ID, Token: c.Token, Holder: w.holder, Event: sluice.EventComplete, Claim: c}
	var failed *await.FailedError
	switch {
	case v.err != nil && (errors.Is(v.err, sluice.ErrInvalid) || errors.Is(v.err, sluice.ErrNotFound) || errors.As(v.err, &failed)):
		out.Event, out.Error, out.Reason = sluice.EventBury, v.err.Error(), "a flow cannot go on"
	case v.err != nil && ctx.Err() != nil: // another process may do it at once
		out.Event = sluice.EventRelease
	case v.err != nil:
		out.Event, out.Delay = sluice.EventRelease, again
	case v.delay > 0:
		out.Event, out.Delay = sluice.EventRelease, v.delay
	case v.result != nil:
		out.Result, _ = json.Marshal(v.result) // nothing in it cannot be written
	}
	return out
}

func (w working) work(ctx context.Context, c *sluice.Claim) verdict {
	if c.Queue == EndQueue {
		return w.end(ctx, c)
	}
	var m mapping
	if err := json.Unmarshal(c.Payload, &m); err != nil {
		return verdict{err: feature.Invalid("payload", "it is no map of a flow: "+err.Error())}
	}
	if !m.Map.IsZero() {
		return w.join(ctx, m)
	}
	return w.mapOver(ctx, m, c)
}

// end ends a flow, all nodes of which have ended.
func (w working) end(ctx context.Context, c *sluice.Claim) verdict {
	var f Flow
	if err := json.Unmarshal(c.Payload, &f); err != nil {
		return verdict{err: feature.Invalid("payload", "it is no flow: "+err.Error())}
	}
	ends, err := endsOf(ctx, w.store, c.After)
	if err != nil {
		return verdict{err: err}
	}
	if len(ends) < len(c.After) { // somebody has requeued a node since
		return verdict{delay: again}
	}
	failed, first := 0, ""
	for _, n := range f.Nodes {
		id := NodeID(c.ID, n.Name)
		how, err := w.failure(ctx, id, ends[id])
		if err != nil {
			return verdict{err: err}
		}
		if how != "" {
			if failed++; failed == 1 {
				first = n.Name + " " + how
			}
		}
	}
	if failed > 0 {
		return verdict{err: feature.Invalid("flow", fmt.Sprintf("%d of %d nodes failed: %s", failed, len(f.Nodes), first))}
	}
	return verdict{}
}

// failure says how a job has failed. Empty: it has not. Of a job that is deleted, the audit knows: it keeps deaths, cancels and
// deletions far longer than queues keep their jobs.
func (w working) failure(ctx context.Context, id sluice.ID, end await.End) (how string, err error) {
	state, deleted := end.State, end.State == ""
	if deleted {
		entries, err := w.store.Audit(ctx, sluice.AuditFilter{JobID: id, Limit: 100})
		if err != nil {
			return "", fmt.Errorf("read how job %s ended, which is deleted: %w", id, err)
		}
		for _, e := range slices.Backward(entries) { // the oldest first
			state = cmp.Or(e.To, state)
		}
	}
	switch {
	case state != sluice.StateDead && state != sluice.StateCancelled:
		return "", nil
	case deleted:
		return fmt.Sprintf("was %s, and is deleted", state), nil
	}
	return fmt.Sprintf("is %s", state), nil
}

// mapOver makes the jobs of a map, and ends the map when they have ended. A map that was claimed again after a lost answer finds
// its jobs stored: their IDs follow from the flow's.
func (w working) mapOver(ctx context.Context, m mapping, c *sluice.Claim) verdict {
	var of mapped
	if len(c.Checkpoint) == 0 || json.Unmarshal(c.Checkpoint, &of) != nil {
		items, err := w.items(ctx, m)
		if err == nil {
			err = w.makeJobs(ctx, m, items, c)
		}
		if err != nil {
			return verdict{err: err}
		}
		of.Elements = len(items)
		text, _ := json.Marshal(of) // a number
		if err := w.store.SaveCheckpoint(ctx, c.ID, c.Token, text); err != nil {
			return verdict{err: err}
		}
	}
	ids := elementIDs(m.Flow, m.Node.Name, of.Elements)
	ends, err := endsOf(ctx, w.store, ids)
	switch {
	case err != nil:
		return verdict{err: err}
	case len(ends) < len(ids):
		return verdict{delay: mapPatience}
	}
	failed, first := 0, ""
	for i, id := range ids {
		if end := ends[id]; end.State != sluice.StateCompleted {
			if failed++; failed > 1 {
				continue
			}
			how, err := w.failure(ctx, id, end)
			if err != nil {
				return verdict{err: err}
			}
			if how == "" {
				how = fmt.Sprintf("is gone from the history; keep_completed of queue %q must be longer than the map takes", m.Node.Queue)
			}
			first = fmt.Sprintf("element %d, job %s, %s", i, id, how)
		}
	}
	if failed > 0 {
		return verdict{err: feature.Invalid("map", fmt.Sprintf("%d of %d elements failed: %s", failed, len(ids), first))}
	}
	return verdict{result: of}
}

// items reads the array of a map.
func (w working) items(ctx context.Context, m mapping) ([]json.RawMessage, error) {
	if m.OverMap {
		results, err := mapResults(ctx, w.store, m.Flow, m.Node.Over)
		for i, r := range results {
			if len(r) == 0 {
				results[i] = json.RawMessage("null")
			}
		}
		return results, err
	}
	ends, err := ended(ctx, w.store, []sluice.ID{NodeID(m.Flow, m.Node.Over)})
	if err != nil {
		return nil, err
	}
	return elements(ends[0].Result, m.Node.Over, m.Node.Most)
}

// makeJobs stores the jobs of a map, all or none.
func (w working) makeJobs(ctx context.Context, m mapping, items []json.RawMessage, c *sluice.Claim) error {
	if len(items) == 0 {
		return nil
	}
	return neverFits(store(ctx, w.store, []Node{m.Node}, func(q queues) ([]sluice.Insert, error) {
		inserts, err := m.inserts(q, items, c, w.checker)
		bytes := 0
		for i := range inserts {
			bytes += len(inserts[i].Payload)
		}
		if bytes > maxMapBytes {
			return nil, feature.Invalid("payload", fmt.Sprintf("%d bytes of all elements must be at most %d", bytes, maxMapBytes))
		}
		return inserts, err
	}, enqueues(ctx, w.store)))
}

// neverFits makes the error of a map invalid if its jobs are more than may wait even in an empty queue: another try would fail too.
func neverFits(err error) error {
	var full *pressure.FullError
	if !errors.As(err, &full) || full.RetryAfter > 0 {
		return err
	}
	setting := "max_waiting"
	if full.Tenant != "" {
		setting = "tenant_max_waiting"
	}
	return feature.Invalid("over", fmt.Sprintf("the map stores its %d jobs at once, which are more than the %s of %d of queue %q; raise that, then requeue the map", full.Jobs, setting, full.Limit, full.Queue))
}

// join wakes a map, all jobs of which have ended.
func (w working) join(ctx context.Context, m mapping) verdict {
	act := sluice.Act{By: "sluice", Reason: "all jobs of the map have ended", ID: sluice.NewID()}
	errs, err := w.store.Reschedule(ctx, []sluice.ID{m.Map}, time.Time{}, act)
	if err == nil {
		err = errs[0]
	}
	switch {
	case err == nil || errors.Is(err, sluice.ErrNotFound) || errors.Is(err, sluice.ErrInvalid): // invalid: the map has expired
		return verdict{}
	case !errors.Is(err, sluice.ErrNotAllowed):
		return verdict{err: err}
	}
	job, err := w.store.Job(ctx, m.Map)
	switch {
	case errors.Is(err, sluice.ErrNotFound), err == nil && job.State.Finished():
		return verdict{}
	case err != nil:
		return verdict{err: err}
	}
	return verdict{delay: time.Second} // the map is claimed, and about to wait
}
