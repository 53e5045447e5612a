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
// A unit test of a handler makes one by hand: &Job[T]{Payload: payload}. Such a job belongs to no worker and no store:
// SetResult and SaveCheckpoint keep their values in its fields Result and Checkpoint, where the test reads them. A handler
// that reads other fields, such as ID, needs a Claim too: &Job[T]{Claim: &sluice.Claim{Job: sluice.Job{ID: id}}}.
type Job[T any] struct {
	// Claim holds everything else that is known of the job, and its raw payload.
	*sluice.Claim
	// Payload is the job's payload as a Go value.
	Payload T

	run *run // nil: the job was made by hand
}

// Attempt is the number of this attempt, counted from 1.
func (j *Job[T]) Attempt() int {
	if j.Claim == nil {
		return 1
	}
	return j.Attempts + 1
}

// SetResult stores a value, as JSON, with the job when the handler returns nil. A value that is no JSON, or is
// larger than sluice.MaxResultBytes (then an ErrInvalid), is not stored. The error is permanent: a handler that returns it
// ends its job as a dead letter, and its work is not done again. One that returns nil completes the job without a result.
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

// SaveCheckpoint stores how far the job has come, as JSON. A later attempt resumes from it: see
// LoadCheckpoint. If the job was cancelled it is an ErrCancelled, and if the claim is lost otherwise an ErrLost; the handler
// should end. A checkpoint that is larger than sluice.MaxResultBytes is an ErrInvalid, and the one before stays.
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

// LoadCheckpoint reads what an earlier attempt saved. It reports false if none did.
func (j *Job[T]) LoadCheckpoint(progress any) (bool, error) {
	if j.Claim == nil || len(j.Checkpoint) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(j.Checkpoint, progress); err != nil {
		return false, fmt.Errorf("checkpoint of job %s: %w", j.ID, err)
	}
	return true, nil
}

// made is the claim of a job that was made by hand.
func (j *Job[T]) made() *sluice.Claim {
	if j.Claim == nil {
		j.Claim = &sluice.Claim{}
	}
	return j.Claim
}

// id is the job's id; that of a job that was made by hand may be zero.
func (j *Job[T]) id() sluice.ID {
	if j.Claim == nil {
		return sluice.ID{}
	}
	return j.ID
}

// saveCheckpoint stores how far the run's job has come.
func (r *run) saveCheckpoint(ctx context.Context, text json.RawMessage) error {
	err := r.worker.store.SaveCheckpoint(ctx, r.claim.ID, r.claim.Token, text)
	if errors.Is(err, sluice.ErrLost) && errors.Is(r.worker.whyLost(ctx, r.claim), sluice.ErrCancelled) {
		return fmt.Errorf("save the checkpoint of job %s: %w", r.claim.ID, sluice.ErrCancelled)
	}
	return err
}
