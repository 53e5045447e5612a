package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// maxList is the most jobs of one request, and maxBytes the most bytes of several.
	maxList, maxBytes = 10_000, 8 << 20
)

// jobLine is a job as the API reads it, without its payload.
type jobLine struct {
	Queue         string                            `json:"queue"`
	ID            sluice.ID                         `json:"id"`
	Tenant        string                            `json:"tenant,omitempty"`
	Key           string                            `json:"key,omitempty"`
	KeyScope      sluice.KeyScope                   `json:"key_scope,omitempty"`
	KeyWindow     string                            `json:"key_window,omitempty"`
	OnDuplicate   sluice.OnDuplicate                `json:"on_duplicate,omitempty"`
	DueAt         time.Time                         `json:"due_at,omitzero"`
	Delay         string                            `json:"delay,omitempty"`
	Priority      int                               `json:"priority,omitempty"`
	ExpiresAt     time.Time                         `json:"expires_at,omitzero"`
	Labels        map[string]string                 `json:"labels,omitempty"`
	MaxAttempts   int                               `json:"max_attempts,omitempty"`
	Timeout       string                            `json:"timeout,omitempty"`
	OrderKey      string                            `json:"order_key,omitempty"`
	LimitKey      string                            `json:"limit_key,omitempty"`
	Cost          int                               `json:"cost,omitempty"`
	After         []sluice.ID                       `json:"after,omitempty"`
	AfterFailure  sluice.AfterFailure               `json:"after_failure,omitempty"`
	AfterFailures map[sluice.ID]sluice.AfterFailure `json:"after_failures,omitempty"`
	Batch         sluice.ID                         `json:"batch,omitzero"`
	Hold          string                            `json:"hold,omitempty"`
}

// lineOf writes a job.
func lineOf(job sluice.NewJob) ([]byte, error) {
	line := jobLine{
		Queue: job.Queue, ID: job.ID, Tenant: job.Tenant, Key: job.Key, KeyScope: job.KeyScope, KeyWindow: lasting(job.KeyWindow), OnDuplicate: job.OnDuplicate,
		DueAt: job.DueAt, Delay: lasting(job.Delay), Priority: job.Priority, ExpiresAt: job.ExpiresAt, Labels: job.Labels, MaxAttempts: job.MaxAttempts,
		Timeout: lasting(job.Timeout), OrderKey: job.OrderKey, LimitKey: job.LimitKey, Cost: job.Cost, After: job.After, AfterFailure: job.AfterFailure,
		AfterFailures: job.AfterFailures, Batch: job.Batch, Hold: job.Hold,
	}
	return withRaw(line, "payload", job.Payload)
}

// lasting writes a duration. 0: nothing.
func lasting(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return sluice.FormatDuration(d)
}

// enqueued is the answer to a list of jobs.
type enqueued struct {
	Results []struct {
		ID        sluice.ID `json:"id"`
		Duplicate bool      `json:"duplicate"`
		Replaced  sluice.ID `json:"replaced"`
		Error     *problem  `json:"error"`
	} `json:"results"`
}

// alone are the codes of problems of one job. Another is one of the whole call.
var alone = map[string]bool{"full": true, "invalid": true, "not_found": true, "not_allowed": true, "queue_not_admitted": true, "out_of_bounds": true}

// Enqueue stores jobs by the server's settings. More than 10,000 jobs, or 8 MiB, are several transactions. A job that
// alone is larger than the server reads is refused.
func (s *Store) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	receipts := make([]sluice.Receipt, len(jobs))
	refused := make(map[int]error)
	for from := 0; from < len(jobs); {
		body, to, err := requestOf(jobs, from)
		if err != nil {
			return nil, err
		}
		err = s.enqueue(ctx, body, jobs[from:to], receipts[from:to], func(i int, err error) { refused[from+i] = err })
		if large, is := errors.AsType[*Error](err); is && large.Code == "too_large" && to-from == 1 {
			refused[from], err = large, nil
		}
		if err != nil {
			return nil, err
		}
		from = to
	}
	if len(refused) > 0 {
		return receipts, &sluice.BatchError{Failed: refused, Total: len(jobs)}
	}
	return receipts, nil
}

// requestOf writes jobs from a place on, as many as fit into one request, and returns the place of the next.
func requestOf(jobs []sluice.Insert, from int) (body []byte, to int, err error) {
	body = []byte("[")
	for to = from; to < len(jobs) && to-from < maxList; to++ {
		line, err := lineOf(jobs[to].NewJob)
		if err != nil {
			return nil, to, &sluice.InvalidError{Field: "payload", Rule: err.Error()}
		}
		if to > from && len(body)+len(line) >= maxBytes {
			break
		}
		if to > from {
			body = append(body, ',')
		}
		body = append(body, line...)
	}
	return append(body, ']'), to, nil
}

// enqueue sends one list of jobs.
func (s *Store) enqueue(ctx context.Context, body []byte, jobs []sluice.Insert, receipts []sluice.Receipt, refuse func(i int, err error)) error {
	const verb = "enqueue jobs"
	var answer enqueued
	again := false
	err := s.call(ctx, request{
		verb: verb, method: http.MethodPost, path: "/jobs", out: &answer,
		body: func(more bool) ([]byte, error) {
			again, answer = more, enqueued{}
			return body, nil
		},
		check: func() *problem {
			for _, result := range answer.Results {
				if p := result.Error; p != nil && !alone[p.Code] {
					return p
				}
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	if len(answer.Results) != len(jobs) {
		return fmt.Errorf("%s: the server answered %d results for %d jobs: %w", verb, len(answer.Results), len(jobs), sluice.ErrUnavailable)
	}
	for i, result := range answer.Results {
		if result.Error != nil {
			refuse(i, result.Error.err(verb))
			continue
		}
		// An earlier try may have stored the job, so that it is no duplicate.
		receipts[i] = sluice.Receipt{ID: result.ID, Duplicate: result.Duplicate && (!again || result.ID != jobs[i].ID), Replaced: result.Replaced}
	}
	return nil
}

// Now reads the clock of the server's store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var answer struct {
		Now time.Time `json:"now"`
	}
	err := s.call(ctx, request{verb: "read the clock", path: "/time", out: &answer})
	return answer.Now, err
}

// Admit makes new queues that may be made.
func (s *Store) Admit(ctx context.Context, queues []string, act sluice.Act) ([]error, error) {
	if err := s.opened("admit queues"); err != nil {
		return nil, err
	}
	errs := make([]error, len(queues))
	places := make(map[string]int, len(queues))
	for i, queue := range queues {
		places[queue] = i
	}
	const verb = "admit queues"
	for from := 0; from < len(queues); from += maxNames {
		var answer struct {
			Refused []struct {
				Queue string   `json:"queue"`
				Error *problem `json:"error"`
			} `json:"refused"`
		}
		err := s.call(ctx, request{
			verb: verb, method: http.MethodPost, path: "/queues/admit", act: &act, out: &answer,
			body: asJSON(map[string]any{"queues": queues[from:min(from+maxNames, len(queues))], "reason": act.Reason}),
		})
		if err != nil {
			return nil, err
		}
		for _, refused := range answer.Refused {
			if i, known := places[refused.Queue]; known && refused.Error != nil {
				errs[i] = refused.Error.err(verb)
			}
		}
	}
	return errs, nil
}
