package remote

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/hold"
)

// failed is the answer to an act on jobs.
type failed struct {
	Failed []struct {
		ID    sluice.ID `json:"id"`
		Error *problem  `json:"error"`
	} `json:"failed"`
}

// check returns the problem of a job that passes in time: the call is then sent again.
func (f *failed) check() *problem {
	for _, one := range f.Failed {
		if one.Error != nil && passes[one.Error.Code] {
			return one.Error
		}
	}
	return nil
}

// actBody is an act on jobs.
type actBody struct {
	IDs           []sluice.ID  `json:"ids"`
	Reason        string       `json:"reason,omitempty"`
	Undo          bool         `json:"undo,omitempty"`
	BesideOpenRun bool         `json:"beside_open_run,omitempty"`
	Outcome       sluice.State `json:"outcome,omitempty"`
	DueAt         time.Time    `json:"due_at,omitzero"`
}

// act does an act on jobs. Each request of an act has its ID, so that the server does nothing twice.
func (s *Store) act(ctx context.Context, verb, path string, ids []sluice.ID, act sluice.Act, body actBody) ([]error, error) {
	errs := make([]error, len(ids))
	if act.ID.IsZero() {
		act.ID = sluice.NewID()
	}
	from := 0
	for some := range slices.Chunk(ids, maxList) {
		body.IDs, body.Reason = some, act.Reason
		var answer failed
		err := s.call(ctx, request{
			verb: verb, method: http.MethodPost, path: "/jobs/" + path, act: &act, out: &answer, check: answer.check,
			body: func(bool) ([]byte, error) { answer = failed{}; return encode(body) },
		})
		if err != nil {
			return nil, err
		}
		for _, f := range answer.Failed {
			for i, id := range some {
				if id == f.ID && f.Error != nil {
					errs[from+i] = f.Error.err(verb)
				}
			}
		}
		from += len(some)
	}
	return errs, nil
}

// Cancel cancels unfinished jobs.
func (s *Store) Cancel(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "cancel jobs", "cancel", ids, act, actBody{})
}

// Requeue begins a new life of ended jobs, or takes that back.
func (s *Store) Requeue(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "requeue jobs", "requeue", ids, act, actBody{Undo: act.Undo, BesideOpenRun: act.BesideOpenRun})
}

// Resolve ends uncertain jobs.
func (s *Store) Resolve(ctx context.Context, ids []sluice.ID, outcome sluice.State, act sluice.Act) ([]error, error) {
	return s.act(ctx, "resolve jobs", "resolve", ids, act, actBody{Outcome: outcome})
}

// Terminate ends the orphan runs of jobs by force.
func (s *Store) Terminate(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "terminate runs of jobs", "terminate", ids, act, actBody{})
}

// Reschedule changes the due time of queued jobs.
func (s *Store) Reschedule(ctx context.Context, ids []sluice.ID, dueAt time.Time, act sluice.Act) ([]error, error) {
	if dueAt.IsZero() {
		return s.act(ctx, "make jobs due now", "run-now", ids, act, actBody{})
	}
	return s.act(ctx, "reschedule jobs", "reschedule", ids, act, actBody{DueAt: dueAt})
}

// DeleteJobs deletes dead and cancelled jobs.
func (s *Store) DeleteJobs(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "delete jobs", "delete", ids, act, actBody{})
}

// Hold holds queued jobs.
func (s *Store) Hold(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "hold jobs", "hold", ids, act, actBody{})
}

// Release ends the holds of jobs.
func (s *Store) Release(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "release jobs", "release", ids, act, actBody{})
}

// maxHeldNames is the most jobs in the address of a request for holds.
const maxHeldNames = 100

// Holds lists holds, the newest job first.
func (s *Store) Holds(ctx context.Context, filter hold.Filter) (all []hold.Held, err error) {
	if filter.Jobs == nil {
		return s.holds(ctx, filter)
	}
	for some := range slices.Chunk(filter.Jobs, maxHeldNames) {
		of := filter
		of.Jobs = some
		found, err := s.holds(ctx, of)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b hold.Held) int { return bytes.Compare(b.JobID[:], a.JobID[:]) })
	return all[:min(len(all), filter.Limit)], s.opened("list held jobs")
}

func (s *Store) holds(ctx context.Context, filter hold.Filter) ([]hold.Held, error) {
	return pages(filter.Limit, func(size int) ([]hold.Held, error) {
		q := params{}
		q.text("queue", filter.Queue)
		q.id("before", filter.Before)
		for _, id := range filter.Jobs {
			q.id("job", id)
		}
		q.number("limit", size)
		var answer struct {
			Holds []hold.Held `json:"holds"`
		}
		err := s.call(ctx, request{verb: "list held jobs", path: "/holds", query: q.values(), out: &answer})
		if n := len(answer.Holds); n > 0 {
			filter.Before = answer.Holds[n-1].JobID
		}
		return answer.Holds, err
	})
}

// EditJob changes a waiting job.
func (s *Store) EditJob(ctx context.Context, e edit.Edit, act sluice.Act) error {
	const verb = "edit a job"
	var now struct {
		sluice.Job
		Version string `json:"version"`
	}
	path := "/jobs/" + e.JobID.String()
	if err := s.call(ctx, request{verb: verb, path: path, out: &now}); err != nil {
		return err
	}
	version := now.Version
	if e.Version != "" && edit.VersionOf(now.Job) != e.Version {
		version = "changed since" // unless the server knows the act
	}
	body := struct {
		Version  string             `json:"version,omitempty"`
		Priority int                `json:"priority,omitempty"`
		DueAt    time.Time          `json:"due_at,omitzero"`
		Labels   *map[string]string `json:"labels,omitempty"`
		Tenant   *string            `json:"tenant,omitempty"`
		Timeout  *string            `json:"timeout,omitempty"`
		LimitKey *string            `json:"limit_key,omitempty"`
		Cost     *int               `json:"cost,omitempty"`
		Reason   string             `json:"reason,omitempty"`
	}{Version: version, Priority: e.Priority, DueAt: e.DueAt, Tenant: e.Tenant, LimitKey: e.LimitKey, Cost: e.Cost, Reason: act.Reason}
	if e.Labels != nil {
		body.Labels = &e.Labels
	}
	if e.Timeout != nil {
		timeout := sluice.FormatDuration(*e.Timeout)
		body.Timeout = &timeout
	}
	return s.call(ctx, request{
		verb: verb, method: http.MethodPatch, path: path, act: &act,
		body: func(bool) ([]byte, error) { return withRaw(body, "payload", e.Payload) },
	})
}
