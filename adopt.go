package sluice

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// workOf names the work that a job is: the same for two jobs of a queue that have the same key and the same payload.
// Empty: it has no key.
func workOf(j Job) string {
	if j.Key == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", j.Queue, j.Key, j.Payload))
	return hex.EncodeToString(sum[:16])
}

// RunOf is the run that an engine is asked for, of a claimed job with its payload.
func RunOf(c *Claim, s Settings) Run {
	run := Run{
		Ref: RefOf(c.Job, s), Job: c.ID, Generation: c.Generation, Attempt: c.Attempts + 1, Tenant: c.Tenant, Priority: c.Priority,
		Labels: c.Labels, Payload: c.Payload,
	}
	if strings.Contains(s.RunRef, "{key}") && !strings.Contains(s.RunRef, "{id}") {
		run.Work = workOf(c.Job)
	}
	return run
}

// Adopts says whether a run that was begun for another job is the run of this one all the same, which is to be given with
// its payload. It is if the store has lost that job, in a failover or by a restore, and the work was enqueued again: the
// queue, the key and the payload are the same, and the store does not know the other job. While a claim is decided on, the
// run must also be younger than the history that the queue keeps: else the other job may have ended, and been pruned.
func Adopts(ctx context.Context, store Store, job Job, s Settings, run RunOutcome, now time.Time) (bool, error) {
	if run.Work == "" || run.Job.IsZero() || run.Work != workOf(job) {
		return false, nil
	}
	if job.State == StateClaimed && (run.StartedAt.IsZero() || mayForget(s, now.Sub(run.StartedAt))) {
		return false, nil
	}
	_, err := GivenStore(store).Job(ctx, run.Job)
	switch {
	case errors.Is(err, ErrNotFound):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look for job %s, whose run has the ref %.200q: %w", run.Job, run.Ref, err)
	}
	return false, nil
}

// mayForget reports whether history may lack a job that was begun so long ago.
func mayForget(s Settings, age time.Duration) bool {
	for _, outcome := range []State{StateCompleted, StateCancelled, StateDead} {
		if keep := s.Keep(outcome); keep > 0 && age > keep-keep/10 { // clocks differ
			return true
		}
	}
	return false
}
