package sluice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Cancel ends unfinished jobs. A claimed job's handler sees its context end. Jobs that cannot be
// cancelled are in a *BatchError: ErrNotFound, or ErrNotAllowed for a finished one.
func (c *Client) Cancel(ctx context.Context, ids []ID, act Act) error {
	return c.act("cancel", ids, &act, func() ([]error, error) { return c.store.Cancel(ctx, ids, act) })
}

// Requeue gives dead, cancelled and uncertain jobs a new life: due now, attempts at zero, the next
// generation; their history stays. It needs a reason. A job of which a run may still be open waits
// until that has ended, unless the act says BesideOpenRun; an uncertain one does not wait: whoever requeues it has decided.
func (c *Client) Requeue(ctx context.Context, ids []ID, act Act) error {
	if act.Reason == "" {
		return invalid("reason", "a requeue needs one; it is kept in the audit")
	}
	act.Undo = false
	return c.act("requeue", ids, &act, func() ([]error, error) { return c.store.Requeue(ctx, ids, act) })
}

// UndoRequeue takes back the requeue of jobs that still wait, and of which nobody has claimed any since: each is dead or
// cancelled again, with the error, the figures and the end that it had. Its key is free again, and jobs that wait for it go
// on. Others are in a *BatchError: ErrNotFound, or ErrNotAllowed; that of an uncertain job cannot be undone, because nothing
// is left of what was known of its run.
func (c *Client) UndoRequeue(ctx context.Context, ids []ID, act Act) error {
	act.Undo = true
	return c.act("undo the requeue of", ids, &act, func() ([]error, error) {
		errs, err := c.store.Requeue(ctx, ids, act)
		for i := range errs {
			if errors.Is(errs[i], ErrNotAllowed) {
				errs[i] = fmt.Errorf("it does not wait in a life that a requeue gave to a dead or cancelled job, or was claimed since: %w", errs[i])
			}
		}
		return errs, err
	})
}

// Resolve ends uncertain jobs, by what a person found out of their runs: StateCompleted if the work was done, StateDead if
// it was not. It counts no attempt. It needs a reason; whoever is not sure leaves the job uncertain. A dead one can be
// requeued.
func (c *Client) Resolve(ctx context.Context, ids []ID, outcome State, act Act) error {
	if act.Reason == "" {
		return invalid("reason", "who says what became of a run must say how that is known; it is kept in the audit")
	}
	if _, known := Resolution(outcome); !known {
		return invalid("outcome", fmt.Sprintf("%.40q is not what can have become of a run: %s or %s", outcome, StateCompleted, StateDead))
	}
	return c.act("resolve", ids, &act, func() ([]error, error) { return c.store.Resolve(ctx, ids, outcome, act) })
}

// Terminate has upkeep end the stray runs of jobs by force: those that go on although their job was cancelled (see
// engine.OrphanRun). It needs a reason. Jobs without such a run are in a *BatchError: ErrNotFound, or ErrNotAllowed where the job
// is known; cancel an unfinished one first.
func (c *Client) Terminate(ctx context.Context, ids []ID, act Act) error {
	if act.Reason == "" {
		return invalid("reason", "ending a run by force needs one; it is kept in the audit")
	}
	return c.act("terminate", ids, &act, func() ([]error, error) { return c.store.Terminate(ctx, ids, act) })
}

// RunNow makes queued jobs due at once. It does not pass by a paused queue.
func (c *Client) RunNow(ctx context.Context, ids []ID, act Act) error {
	return c.Reschedule(ctx, ids, time.Time{}, act)
}

// Reschedule changes when queued jobs are due; a zero time means now.
func (c *Client) Reschedule(ctx context.Context, ids []ID, dueAt time.Time, act Act) error {
	if err := checkInstant("due_at", dueAt); err != nil {
		return err
	}
	return c.act("reschedule", ids, &act, func() ([]error, error) {
		return c.store.Reschedule(ctx, ids, dueAt, act)
	})
}

// dueText is how the audit tells when a job is due.
type dueText struct {
	DueAt time.Time `json:"due_at"`
}

// DueText tells the audit when a job is due: stores add it to EventReschedule, before and after.
func DueText(at time.Time) json.RawMessage {
	text, err := json.Marshal(dueText{at.UTC()})
	if err != nil {
		return nil // a year that JSON has no instants for; checkInstant lets none through
	}
	return text
}

// UndoReschedule makes queued jobs due when they were before they were last rescheduled; an undo can be undone in the same
// way. Jobs that nobody has rescheduled in their present life, or that were claimed or put off since, are in a *BatchError as
// ErrNotAllowed. It reads each job and its last 100 entries of the audit.
func (c *Client) UndoReschedule(ctx context.Context, ids []ID, act Act) error {
	return c.act("undo the reschedule of", ids, &act, func() ([]error, error) {
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

// undoReschedule undoes that of one job; refused says why it cannot be.
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

// dueBefore finds when a job was due before it was last rescheduled.
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

// Delete deletes dead and cancelled jobs now, whatever their queue keeps. Their audit entries
// stay.
func (c *Client) Delete(ctx context.Context, ids []ID, act Act) error {
	return c.act("delete", ids, &act, func() ([]error, error) { return c.store.DeleteJobs(ctx, ids, act) })
}

func (c *Client) act(verb string, ids []ID, act *Act, do func() ([]error, error)) error {
	if err := act.Check(); err != nil {
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

// Check says which rule an act breaks, as an [ErrInvalid], and gives it an ID if it has none. Every verb that a person
// causes checks its act; a feature with verbs of its own does it too.
func (a *Act) Check() error {
	if a.By == "" {
		return invalid("by", "who acts must be said; it is kept in the audit")
	}
	if err := checkName("by", a.By, MaxLabelBytes); err != nil {
		return err
	}
	if err := checkName("reason", a.Reason, 1000); err != nil {
		return err
	}
	if a.ID.IsZero() {
		a.ID = NewID()
	}
	return nil
}

// Queue looks up a queue's settings. A queue that is not stored is an ErrNotFound.
func (c *Client) Queue(ctx context.Context, name string) (Queue, error) {
	var queues []Queue
	if CheckQueueName(name) == nil {
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

// Queues lists queues with their settings, by name.
func (c *Client) Queues(ctx context.Context, filter QueueFilter) ([]Queue, error) {
	queues, err := c.store.Queues(ctx, filter)
	for i := range queues {
		queues[i].keepGoodSchema(c.checker)
	}
	return queues, err
}

// named chooses a queue by its name.
func named(queue string) QueueFilter { return QueueFilter{Names: []string{queue}} }

// ChangeSettings changes a queue's settings. It reads them, lets change edit them, checks the whole
// and stores it with one audit entry; if somebody else changed them in between, it begins anew. A
// change that changes nothing is not stored. Change may be called more than once for one change.
func (c *Client) ChangeSettings(ctx context.Context, name string, act Act, change func(*Settings) error) (Queue, error) {
	return c.ChangeQueue(ctx, name, act, func(q *Queue) error { return q.Settings.Change(change) })
}

// ChangeQueue is ChangeSettings for a change of a queue's Settings and Plans. Only these two are stored. Package changes
// makes plans.
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
		if changed.Settings == queue.Settings && queue.Wrong == "" && bytes.Equal(changed.Plans, queue.Plans) {
			return queue, nil
		}
		queue.Settings, queue.Plans = changed.Settings, changed.Plans
		saved, err := c.saveQueue(ctx, queue, act)
		if !errors.Is(err, ErrConflict) {
			return saved, err
		}
	}
}

func (c *Client) saveQueue(ctx context.Context, queue Queue, act Act) (Queue, error) {
	if err := act.Check(); err != nil {
		return Queue{}, err
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

// CheckSettings returns the rule that settings break, as an ErrInvalid. Whether a payload_schema is a JSON Schema is
// checked by the client's PayloadChecker, if it has one.
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

// Pause stops the claims of a queue; what runs goes on, and nothing is lost.
func (c *Client) Pause(ctx context.Context, queue string, act Act) error {
	_, err := c.setPaused(ctx, queue, true, time.Time{}, act)
	return err
}

// PauseFor is Pause for a while, after which the queue opens by itself, and says when that is. The while
// is counted by the store's clock.
func (c *Client) PauseFor(ctx context.Context, queue string, while time.Duration, act Act) (until time.Time, err error) {
	if while <= 0 {
		return until, invalid("while", fmt.Sprintf("%s is not longer than nothing", while))
	}
	paused, err := c.setPaused(ctx, queue, true, time.Now().Add(while), act)
	if err != nil {
		return until, err
	}
	if until = paused.ChangedAt.Add(while); until.Sub(paused.Settings.PausedUntil).Abs() > clockSlack {
		paused, err = c.setPaused(ctx, queue, true, until, act) // this process's clock is wrong
	}
	return paused.Settings.PausedUntil, err
}

// clockSlack is how far this process's clock may be from the store's before it matters.
const clockSlack = time.Second

// Resume opens a paused queue; it continues where it was.
func (c *Client) Resume(ctx context.Context, queue string, act Act) error {
	_, err := c.setPaused(ctx, queue, false, time.Time{}, act)
	return err
}

func (c *Client) setPaused(ctx context.Context, queue string, paused bool, until time.Time, act Act) (Queue, error) {
	return c.ChangeSettings(ctx, queue, act, func(s *Settings) error {
		s.Paused, s.PausedUntil = paused, storedInstant(until)
		return nil
	})
}
