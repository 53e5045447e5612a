package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// workOf returns the same text for two jobs with the same queue, key and payload. Empty: the job has no key.
func workOf(j sluice.Job) string {
	if j.Key == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", j.Queue, j.Key, j.Payload))
	return hex.EncodeToString(sum[:16])
}

// RunOf returns the run of a claimed job with its payload.
func RunOf(c *sluice.Claim, s sluice.Settings) Run {
	run := Run{
		Ref: RefOf(c.Job, s), Job: c.ID, Generation: c.Generation, Attempt: c.Attempts + 1, Tenant: c.Tenant, Priority: c.Priority,
		Labels: c.Labels, Payload: c.Payload, Timeout: c.Timeout,
	}
	if strings.Contains(s.RunRef, "{key}") && !strings.Contains(s.RunRef, "{id}") {
		run.Work = workOf(c.Job)
	}
	return run
}

// Adopts reports whether a run that was started for another job is the run of this job. The job must have its payload.
//
// It is if a failover or a restore lost the other job, and somebody enqueued the work again: queue, key and payload are the
// same, and the store does not know the other job. For a claimed job, the run must also be younger than the history that the
// queue keeps; otherwise the other job may have ended and been pruned.
func Adopts(ctx context.Context, store sluice.Store, job sluice.Job, s sluice.Settings, run Outcome, now time.Time) (bool, error) {
	if run.Work == "" || run.Job.IsZero() || run.Work != workOf(job) {
		return false, nil
	}
	if job.State == sluice.StateClaimed && (run.StartedAt.IsZero() || mayForget(s, now.Sub(run.StartedAt))) {
		return false, nil
	}
	_, err := sluice.GivenStore(store).Job(ctx, run.Job)
	switch {
	case errors.Is(err, sluice.ErrNotFound):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look for job %s, whose run has the ref %.200q: %w", run.Job, run.Ref, err)
	}
	return false, nil
}

// mayForget reports whether upkeep may have pruned a job whose run began so long ago.
func mayForget(s sluice.Settings, age time.Duration) bool {
	for _, outcome := range []sluice.State{sluice.StateCompleted, sluice.StateCancelled, sluice.StateDead} {
		if keep := s.Keep(outcome); keep > 0 && age > keep-keep/10 { // clocks differ
			return true
		}
	}
	return false
}
