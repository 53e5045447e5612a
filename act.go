package sluice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Cancel cancels unfinished jobs. The context of a claimed job's handler ends.
//
// If Cancel cannot cancel a job, the error is a [*BatchError]. It holds [ErrNotFound] for an unknown job and
// [ErrNotAllowed] for a finished or uncertain one.
func (c *Client) Cancel(ctx context.Context, ids []ID, act Act) error {
	return act.Do("cancel", ids, func() ([]error, error) { return c.store.Cancel(ctx, ids, act) })
}

// Requeue gives dead, cancelled and uncertain jobs a new life. A requeued job is due now, has no expiry and no
// failed attempts, and is in its next generation. Its earlier attempts stay listed. The act needs a reason.
//
// A job with an orphan run waits until that run has ended, unless the act sets BesideOpenRun. An uncertain job does
// not wait, because the person who requeues it has decided.
//
// If Requeue cannot requeue a job, the error is a [*BatchError]. It holds [ErrNotFound], [ErrNotAllowed], or
// [ErrDuplicate] if another unfinished job holds the key.
func (c *Client) Requeue(ctx context.Context, ids []ID, act Act) error {
	if act.Reason == "" {
		return invalid("reason", "a requeue needs a reason; the audit keeps it")
	}
	act.Undo = false
	return act.Do("requeue", ids, func() ([]error, error) { return c.store.Requeue(ctx, ids, act) })
}

// UndoRequeue takes back the requeue of jobs that still wait and that nobody has claimed since. Each job is dead or
// cancelled again, with its former error, counts and end. Its key is free again, and the jobs that wait for it go
// on.
//
// Other jobs are in a [*BatchError], as [ErrNotFound] or [ErrNotAllowed]. UndoRequeue refuses a job that was
// uncertain, because the store keeps nothing of an uncertain life.
func (c *Client) UndoRequeue(ctx context.Context, ids []ID, act Act) error {
	act.Undo = true
	return act.Do("undo the requeue of", ids, func() ([]error, error) {
		errs, err := c.store.Requeue(ctx, ids, act)
		for i := range errs {
			if errors.Is(errs[i], ErrNotAllowed) {
				errs[i] = fmt.Errorf("it does not wait in a life that a requeue gave to a dead or cancelled job, or was claimed since: %w", errs[i])
			}
		}
		return errs, err
	})
}

// Resolve ends uncertain jobs with the outcome that a person found out: [StateCompleted] if the work was done, else
// [StateDead]. It counts no attempt. The act needs a reason.
//
// If you are not sure, leave the job uncertain. A dead job can be requeued.
func (c *Client) Resolve(ctx context.Context, ids []ID, outcome State, act Act) error {
	if act.Reason == "" {
		return invalid("reason", "a resolve needs a reason, such as how the outcome is known; the audit keeps it")
	}
	if _, known := Resolution(outcome); !known {
		return invalid("outcome", fmt.Sprintf("%.40q must be %s or %s", outcome, StateCompleted, StateDead))
	}
	return act.Do("resolve", ids, func() ([]error, error) { return c.store.Resolve(ctx, ids, outcome, act) })
}

// Terminate makes upkeep terminate the orphan runs of jobs: runs that go on although their job was cancelled. See
// engine.OrphanRun. The act needs a reason.
//
// A job without an orphan run is in a [*BatchError]: [ErrNotAllowed] if the job is known, else [ErrNotFound].
// Cancel an unfinished job first.
func (c *Client) Terminate(ctx context.Context, ids []ID, act Act) error {
	if act.Reason == "" {
		return invalid("reason", "terminating a run needs a reason; the audit keeps it")
	}
	return act.Do("terminate", ids, func() ([]error, error) { return c.store.Terminate(ctx, ids, act) })
}

// RunNow makes queued jobs due at once. A paused queue stays paused.
func (c *Client) RunNow(ctx context.Context, ids []ID, act Act) error {
	return c.Reschedule(ctx, ids, time.Time{}, act)
}

// Reschedule changes the due time of queued jobs. A zero time means now. Other jobs are in a [*BatchError], as
// [ErrNotFound] or [ErrNotAllowed]. So are jobs that would expire before they are due, as [ErrInvalid].
func (c *Client) Reschedule(ctx context.Context, ids []ID, dueAt time.Time, act Act) error {
	if err := checkInstant("due_at", dueAt); err != nil {
		return err
	}
	return act.Do("reschedule", ids, func() ([]error, error) {
		return c.store.Reschedule(ctx, ids, dueAt, act)
	})
}

// dueText is the due time of a job, as the audit keeps it.
type dueText struct {
	DueAt time.Time `json:"due_at"`
}

// DueText returns the due time of a job as the audit keeps it. Stores write it to Before and After of each entry of
// [EventReschedule].
func DueText(at time.Time) json.RawMessage {
	text, err := json.Marshal(dueText{at.UTC()})
	if err != nil {
		return nil // a year that JSON has no instants for; checkInstant lets none through
	}
	return text
}

// UndoReschedule gives queued jobs the due time from before their last reschedule. A second UndoReschedule takes
// back the first.
//
// A job is in a [*BatchError] as [ErrNotAllowed] if nobody rescheduled it in its present life, or if it was claimed
// or put off since. UndoReschedule reads each job and the last 100 audit entries of each.
func (c *Client) UndoReschedule(ctx context.Context, ids []ID, act Act) error {
	return act.Do("undo the reschedule of", ids, func() ([]error, error) {
		errs := make([]error, len(ids))
		for i, id := range ids {
			var err error
			if errs[i], err = c.undoReschedule(ctx, id, act); err != nil {
				return nil, err
			}
		}
		return errs, nil
	})
}

// undoReschedule undoes the last reschedule of one job. Refused says why the job cannot be undone; err is any other
// failure.
func (c *Client) undoReschedule(ctx context.Context, id ID, act Act) (refused, err error) {
	due, refused, err := c.dueBefore(ctx, id)
	if refused != nil || err != nil {
		return refused, err
	}
	errs, err := c.store.Reschedule(ctx, []ID{id}, due, act)
	if err != nil {
		return nil, err
	}
	return errs[0], nil
}

// dueBefore returns when a job was due before its last reschedule. Refused says why there is no such time.
func (c *Client) dueBefore(ctx context.Context, id ID) (due time.Time, refused, err error) {
	job, err := c.store.Job(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return due, err, nil
	}
	if err != nil {
		return due, nil, err
	}
	entries, err := c.store.Audit(ctx, AuditFilter{JobID: id, Limit: 100})
	if err != nil {
		return due, nil, err
	}
	for _, e := range entries {
		if e.Event != EventReschedule || e.Generation != job.Generation || len(e.Before) == 0 {
			continue
		}
		var before, after dueText
		if err := errors.Join(json.Unmarshal(e.Before, &before), json.Unmarshal(e.After, &after)); err != nil {
			return due, nil, err
		}
		if job.State != StateQueued || !job.DueAt.Equal(after.DueAt) {
			return due, fmt.Errorf("it was claimed or put off since: %w", ErrNotAllowed), nil
		}
		return before.DueAt, nil, nil
	}
	return due, fmt.Errorf("nobody has rescheduled it: %w", ErrNotAllowed), nil
}

// Delete deletes dead and cancelled jobs now, even if the settings of their queue keep them longer. Their audit
// entries stay. Other jobs are in a [*BatchError], as [ErrNotFound] or [ErrNotAllowed].
func (c *Client) Delete(ctx context.Context, ids []ID, act Act) error {
	return act.Do("delete", ids, func() ([]error, error) { return c.store.DeleteJobs(ctx, ids, act) })
}

// Do checks the act, runs do for the jobs, and returns the errors of single jobs as a [*BatchError].
func (a *Act) Do(verb string, ids []ID, do func() ([]error, error)) error {
	if err := a.Check(); err != nil {
		return err
	}
	if len(ids) == 0 {
		return nil
	}
	errs, err := do()
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	failed := make(map[int]error)
	for i, err := range errs {
		if err != nil {
			failed[i] = fmt.Errorf("%s %s: %w", verb, ids[i], err)
		}
	}
	if len(failed) > 0 {
		return &BatchError{Failed: failed, Total: len(ids)}
	}
	return nil
}

// Check returns the rule that an act breaks, as an [ErrInvalid], and gives the act an ID if it has none. By has at
// most [MaxLabelBytes], Reason at most 1,000 bytes.
//
// Every verb that a person causes checks its act. A feature with verbs of its own must do so too.
func (a *Act) Check() error {
	if a.By == "" {
		return invalid("by", "name the person or program that acts; the audit keeps it")
	}
	if err := checkName("by", a.By, MaxLabelBytes); err != nil {
		return err
	}
	if err := checkName("reason", a.Reason, maxReasonBytes); err != nil {
		return err
	}
	if a.ID.IsZero() {
		a.ID = NewID()
	}
	return nil
}

// Queue returns a queue with its settings. An unknown queue is an [ErrNotFound].
func (c *Client) Queue(ctx context.Context, name string) (Queue, error) {
	var queues []Queue
	if CheckQueueName(name) == nil || IsGroup(name) {
		var err error
		if queues, err = c.Queues(ctx, named(name)); err != nil {
			return Queue{}, err
		}
	}
	if len(queues) == 0 {
		return Queue{}, fmt.Errorf("queue %.80q: %w", name, ErrNotFound)
	}
	return queues[0], nil
}

// Queues lists queues with their settings, sorted by name.
func (c *Client) Queues(ctx context.Context, filter QueueFilter) ([]Queue, error) {
	queues, err := c.store.Queues(ctx, filter)
	for i := range queues {
		queues[i].keepGoodSchema(c.checker)
	}
	return queues, err
}

// named returns the filter for one queue.
func named(queue string) QueueFilter { return QueueFilter{Names: []string{queue}} }

// ChangeSettings changes the settings of a queue. It reads the settings, lets change edit them, checks them, and
// stores them with one audit entry.
//
// If somebody else changes the queue in the meantime, ChangeSettings begins again, so it may call change more than
// once. It stores nothing if the settings stay equal.
func (c *Client) ChangeSettings(ctx context.Context, name string, act Act, change func(*Settings) error) (Queue, error) {
	return c.ChangeQueue(ctx, name, act, func(q *Queue) error { return q.Settings.Change(change) })
}

// ChangeQueue changes the settings of a queue and its scheduled changes, by the rules of [Client.ChangeSettings].
// It stores Settings and Scheduled, and no other field. Package changes makes scheduled changes.
func (c *Client) ChangeQueue(ctx context.Context, name string, act Act, change func(*Queue) error) (Queue, error) {
	if err := CheckGiven("change", change); err != nil {
		return Queue{}, err
	}
	for {
		queue, err := c.Queue(ctx, name)
		if err != nil {
			return Queue{}, err
		}
		if !queue.Settings.PausedAt(queue.Now) { // a pause that has ended is none
			queue.Settings.Paused, queue.Settings.PausedUntil = false, time.Time{}
		}
		changed := queue
		if err := change(&changed); err != nil {
			return Queue{}, err
		}
		if changed.Settings == queue.Settings && queue.Wrong == "" && bytes.Equal(changed.Scheduled, queue.Scheduled) {
			return queue, nil
		}
		queue.Settings, queue.Scheduled = changed.Settings, changed.Scheduled
		saved, err := c.saveQueue(ctx, queue, act)
		if !errors.Is(err, ErrConflict) {
			return saved, err
		}
	}
}

// saveQueue checks an act and a queue's settings, and stores the queue.
func (c *Client) saveQueue(ctx context.Context, queue Queue, act Act) (Queue, error) {
	if err := act.Check(); err != nil {
		return Queue{}, err
	}
	if IsGroup(queue.Name) {
		if queue.Settings.Paused {
			return Queue{}, invalid("paused", fmt.Sprintf("%s is a group, which cannot be paused; pause its queues instead", queue.Name))
		}
	} else if queue.Version == 0 {
		if err := CheckOwnQueueName(queue.Name); err != nil {
			return Queue{}, err
		}
	}
	if err := c.CheckSettings(queue.Settings); err != nil {
		return Queue{}, fmt.Errorf("queue %q: %w", queue.Name, err)
	}
	stored, err := c.store.SaveQueue(ctx, queue, act)
	if err != nil {
		return Queue{}, fmt.Errorf("save queue %q: %w", queue.Name, err)
	}
	c.settings.Forget()
	return stored, nil
}

// CheckSettings returns the rule that settings break, as an [ErrInvalid]. If the client has a [PayloadChecker],
// CheckSettings also checks that payload_schema is a JSON Schema.
func (c *Client) CheckSettings(settings Settings) error {
	if err := settings.Check(); err != nil {
		return err
	}
	if settings.PayloadSchema == "" || c.checker == nil {
		return nil
	}
	if err := c.checker.Compile(settings.PayloadSchema); err != nil {
		return invalid("payload_schema", err.Error())
	}
	return nil
}

// Pause pauses a queue: nobody claims from it. Jobs that run go on, and no job is lost.
func (c *Client) Pause(ctx context.Context, queue string, act Act) error {
	_, err := c.setPaused(ctx, queue, true, time.Time{}, act)
	return err
}

// PauseFor pauses a queue for a while, by the store's clock, and returns when it opens again by itself. The while
// must be longer than 0.
func (c *Client) PauseFor(ctx context.Context, queue string, while time.Duration, act Act) (until time.Time, err error) {
	if while <= 0 {
		return until, invalid("for", fmt.Sprintf("%s must be more than 0s", while))
	}
	paused, err := c.ChangeQueue(ctx, queue, act, func(q *Queue) error {
		q.Settings.Paused, q.Settings.PausedUntil = true, storedInstant(q.Now.Add(while))
		return nil
	})
	return paused.Settings.PausedUntil, err
}

// Resume opens a paused queue. Its waiting jobs keep their places.
func (c *Client) Resume(ctx context.Context, queue string, act Act) error {
	_, err := c.setPaused(ctx, queue, false, time.Time{}, act)
	return err
}

// setPaused pauses a queue until an instant (zero: until somebody resumes the queue), or resumes it.
func (c *Client) setPaused(ctx context.Context, queue string, paused bool, until time.Time, act Act) (Queue, error) {
	return c.ChangeSettings(ctx, queue, act, func(s *Settings) error {
		s.Paused, s.PausedUntil = paused, storedInstant(until)
		return nil
	})
}
