package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluice-queue/sluice"
)

// Job is a claimed job in the hands of its handler.
//
// A unit test of a handler creates a Job by hand: &Job[T]{Payload: payload}. Such a job has no worker and no
// store: SetResult and SaveCheckpoint keep their values in its fields Result and Checkpoint for the test to
// read. A handler that reads other fields, such as ID, needs a Claim too: &Job[T]{Claim: &sluice.Claim{Job:
// sluice.Job{ID: id}}}.
type Job[T any] struct {
	// Claim holds all other facts about the job, and its raw payload.
	*sluice.Claim
	// Payload is the job's payload as a Go value.
	Payload T

	run *run // nil: the job was made by hand
}

// Attempt returns the number of this attempt, counted from 1.
func (j *Job[T]) Attempt() int {
	if j.Claim == nil {
		return 1
	}
	return j.Attempts + 1
}

// SetResult stores a value as JSON with the job when the handler returns nil. SetResult stores nothing and
// returns an error if the value cannot become JSON, or is larger than [sluice.MaxResultBytes] (then an
// [sluice.ErrInvalid]). The error is permanent: a handler that returns it makes the job a dead letter, and the
// work is not repeated. A handler that returns nil instead completes the job without a result.
func (j *Job[T]) SetResult(result any) error {
	text, err := json.Marshal(result)
	if err == nil {
		err = sluice.CheckResult("result", text)
	}
	if err != nil {
		return Permanent(fmt.Errorf("result of job %s: %w", j.id(), err))
	}
	if j.run == nil {
		j.made().Result = text
		return nil
	}
	j.run.result.Store(&text)
	return nil
}

// SaveCheckpoint stores the progress of the job as JSON. A later attempt resumes from it with
// [Job.LoadCheckpoint]. The error is [sluice.ErrCancelled] if the job was cancelled, and [sluice.ErrLost] if
// the claim was lost otherwise; the handler should then return. A checkpoint larger than
// [sluice.MaxResultBytes] is an [sluice.ErrInvalid], and the store keeps the previous checkpoint.
func (j *Job[T]) SaveCheckpoint(ctx context.Context, progress any) error {
	text, err := json.Marshal(progress)
	if err != nil {
		return fmt.Errorf("checkpoint of job %s: %w", j.id(), err)
	}
	if j.run != nil {
		return j.run.saveCheckpoint(ctx, text)
	}
	if err := sluice.CheckResult("checkpoint", text); err != nil {
		return err
	}
	j.made().Checkpoint = text
	return nil
}

// LoadCheckpoint reads the checkpoint of an earlier attempt into progress. The bool is false if there is none.
func (j *Job[T]) LoadCheckpoint(progress any) (bool, error) {
	if j.Claim == nil || len(j.Checkpoint) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(j.Checkpoint, progress); err != nil {
		return false, fmt.Errorf("checkpoint of job %s: %w", j.ID, err)
	}
	return true, nil
}

// made returns the claim of a job that was made by hand, and creates it if needed.
func (j *Job[T]) made() *sluice.Claim {
	if j.Claim == nil {
		j.Claim = &sluice.Claim{}
	}
	return j.Claim
}

// id returns the job's id, which may be zero for a job made by hand.
func (j *Job[T]) id() sluice.ID {
	if j.Claim == nil {
		return sluice.ID{}
	}
	return j.ID
}

// saveCheckpoint stores the progress of the run's job.
func (r *run) saveCheckpoint(ctx context.Context, text json.RawMessage) error {
	err := r.worker.store.SaveCheckpoint(ctx, r.claim.ID, r.claim.Token, text)
	if errors.Is(err, sluice.ErrLost) && errors.Is(r.worker.whyLost(ctx, r.claim), sluice.ErrCancelled) {
		return fmt.Errorf("save the checkpoint of job %s: %w", r.claim.ID, sluice.ErrCancelled)
	}
	return err
}
