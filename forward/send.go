package forward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/pressure"
)

// Arrival is the result of a forwarded job in the local store.
type Arrival struct {
	// To names the centre.
	To string `json:"forwarded_to"`
	// DuplicateOf is the job at the centre that holds the key, if this job was not stored because of it.
	DuplicateOf sluice.ID `json:"duplicate_of,omitzero"`
}

// send has the centre store jobs, and settles them locally. Without an answer, they remain to be sent.
func (f *Forwarder) send(ctx context.Context, l *servedQueue, at shore, holds []*hold, sent *Sent) error {
	var settlements []sluice.Settlement
	var jobs []sluice.NewJob
	var sending []*hold
	for _, h := range holds {
		if h.doubtful && at.now.Sub(sentSince(h.claim.Ref))+f.options.CallTimeout >= at.keeps {
			decided, err := f.ask(ctx, h, sent)
			if err != nil {
				return err
			}
			settlements = append(settlements, decided)
			continue
		}
		job, err := f.jobOf(ctx, h)
		if err != nil {
			return fmt.Errorf("look up job %s: %w", h.claim.ID, err)
		}
		jobs, sending = append(jobs, job), append(sending, h)
	}
	decided, err := f.enqueue(ctx, at, jobs, sending, sent)
	return errors.Join(err, f.settle(ctx, l, append(settlements, decided...)))
}

// ask decides about a job sent so long ago that the centre may have deleted it. If the centre lacks the job, it
// is not sent again automatically.
func (f *Forwarder) ask(ctx context.Context, h *hold, sent *Sent) (sluice.Settlement, error) {
	err := f.lookUp(ctx, h.claim.ID)
	switch {
	case err == nil:
		sent.Forwarded++
		return f.arrived(h, sluice.ID{}), nil
	case errors.Is(err, sluice.ErrNotFound):
		sent.Uncertain++
		s := settlementOf(h, f.holder.ID)
		s.Event = sluice.EventDoubt
		s.Reason = "it may have been at " + f.options.Centre + ", which has deleted what ended since"
		s.Error = s.Reason
		f.log.EmitJob(event.JobDoubted, h.claim, "ref", h.claim.Ref, "error", s.Error, "reason", s.Reason)
		return s, nil
	}
	return sluice.Settlement{}, fmt.Errorf("ask the centre %s: %w", f.options.Centre, err)
}

// lookUp checks whether the centre has a job.
func (f *Forwarder) lookUp(ctx context.Context, id sluice.ID) error {
	return f.call(ctx, func(ctx context.Context) error {
		_, err := f.centre.Job(ctx, id)
		return err
	})
}

// enqueue stores jobs at the centre and returns their local settlements. This process may have been frozen since it read
// the centre's clock, for any time, and the centre may have deleted a job meanwhile that it had before.
func (f *Forwarder) enqueue(ctx context.Context, at shore, jobs []sluice.NewJob, holds []*hold, sent *Sent) ([]sluice.Settlement, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if again := slices.ContainsFunc(holds, func(h *hold) bool { return h.doubtful }); again && pause.Since(at.asked) > f.options.CallTimeout {
		return nil, fmt.Errorf("send %d jobs again to %s: its clock was read too long ago", len(jobs), f.options.Centre)
	}
	var receipts []sluice.Receipt
	err := f.call(ctx, func(ctx context.Context) (err error) {
		receipts, err = f.client.EnqueueMany(ctx, jobs)
		return err
	})
	var batch *sluice.BatchError
	if err != nil && !errors.As(err, &batch) {
		for _, h := range holds {
			h.doubtful = true
		}
		return nil, fmt.Errorf("send %d jobs to %s: %w", len(jobs), f.options.Centre, err)
	}
	var settlements []sluice.Settlement
	var failed []error
	for i, h := range holds {
		var refusal error
		if batch != nil {
			refusal = batch.Failed[i]
		}
		var s sluice.Settlement
		var err error
		if refusal == nil {
			s, err = f.stored(ctx, h, receipts[i].ID, sent)
		} else {
			s, err = f.refused(ctx, h, refusal, sent)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		settlements = append(settlements, s)
	}
	return settlements, errors.Join(failed...)
}

// stored settles a job that the centre has under an id: its own, or that of the job that holds its key.
func (f *Forwarder) stored(ctx context.Context, h *hold, id sluice.ID, sent *Sent) (sluice.Settlement, error) {
	if id != h.claim.ID {
		sent.Duplicates++
		return f.arrived(h, id), nil
	}
	refusal, err := f.revive(ctx, h)
	switch {
	case err != nil:
		h.doubtful = true
		return sluice.Settlement{}, err
	case refusal != nil:
		return f.bury(h, refusal, sent), nil
	}
	sent.Forwarded++
	return f.arrived(h, sluice.ID{}), nil
}

// unwanted reports whether the centre refuses a job for now: until somebody declares its queue or makes room.
func unwanted(refusal error) bool {
	var unknown *admission.UnknownQueueError
	var limit *admission.QueueLimitError
	return errors.As(refusal, &unknown) || errors.As(refusal, &limit) || errors.Is(refusal, pressure.ErrFull)
}

// refused makes a dead letter of a job that breaks a rule of the centre, unless the centre took it before the
// rule existed. A job whose queue the centre refuses stays local and is sent again.
func (f *Forwarder) refused(ctx context.Context, h *hold, refusal error, sent *Sent) (sluice.Settlement, error) {
	if unwanted(refusal) {
		return sluice.Settlement{}, fmt.Errorf("send job %s to %s: %w", h.claim.ID, f.options.Centre, refusal)
	}
	if h.doubtful {
		err := f.lookUp(ctx, h.claim.ID)
		if err == nil {
			sent.Forwarded++
			return f.arrived(h, sluice.ID{}), nil
		}
		if !errors.Is(err, sluice.ErrNotFound) {
			return sluice.Settlement{}, fmt.Errorf("ask the centre %s: %w", f.options.Centre, err)
		}
	}
	return f.bury(h, refusal, sent), nil
}

func (f *Forwarder) bury(h *hold, refusal error, sent *Sent) sluice.Settlement {
	sent.Refused++
	s := settlementOf(h, f.holder.ID)
	s.Event, s.Error, s.Reason = sluice.EventBury, refusal.Error(), "refused by "+f.options.Centre
	f.log.EmitJob(event.JobBuried, h.claim, "error", s.Error, "reason", s.Reason)
	return s
}

func settlementOf(h *hold, holder string) sluice.Settlement {
	return sluice.Settlement{ID: h.claim.ID, Token: h.claim.Token, Holder: holder, Claim: h.claim}
}

// arrived returns the settlement that completes a job stored at the centre.
func (f *Forwarder) arrived(h *hold, twin sluice.ID) sluice.Settlement {
	s := settlementOf(h, f.holder.ID)
	s.Event = sluice.EventComplete
	s.Result, _ = json.Marshal(Arrival{To: f.options.Centre, DuplicateOf: twin}) // a text and an id always marshal
	return s
}

// settle writes settlements. If that fails, the jobs are sent again, and the centre finds them by their ids.
func (f *Forwarder) settle(ctx context.Context, l *servedQueue, settlements []sluice.Settlement) error {
	if len(settlements) == 0 {
		return nil
	}
	var errs []error
	err := f.call(ctx, func(ctx context.Context) (err error) {
		errs, err = f.local.Settle(ctx, settlements)
		return err
	})
	if err != nil {
		for _, h := range l.holding() {
			h.doubtful = true
		}
		return fmt.Errorf("settle %d jobs: %w", len(settlements), err)
	}
	for i, s := range settlements {
		l.let(s.ID)
		if errs[i] != nil { // another forwarder was faster, or a person cancelled the job
			f.log.Emit(event.SettlementRefused, l.queue, "job", s.ID, "event", s.Event, "error", errs[i])
		}
	}
	return nil
}

// jobOf returns a claimed job as the centre should store it, with the same id and due time.
func (f *Forwarder) jobOf(ctx context.Context, h *hold) (sluice.NewJob, error) {
	c := h.claim
	if !h.full && (c.Key != "" || len(c.Payload) == 0) {
		var whole sluice.Job
		err := f.call(ctx, func(ctx context.Context) (err error) {
			whole, err = f.local.Job(ctx, c.ID)
			return err
		})
		if err != nil {
			return sluice.NewJob{}, err
		}
		c.Payload, c.KeyScope, c.KeyUntil, h.full = whole.Payload, whole.KeyScope, whole.KeyUntil, true
	}
	job := sluice.NewJob{Queue: c.Queue, Payload: c.Payload, EnqueueOptions: sluice.EnqueueOptions{
		ID: c.ID, Tenant: c.Tenant, Key: c.Key, DueAt: c.DueAt, Priority: c.Priority, ExpiresAt: c.ExpiresAt, Labels: c.Labels,
		MaxAttempts: c.MaxAttempts, OrderKey: c.OrderKey, Timeout: c.Timeout, LimitKey: c.LimitKey, Cost: c.Cost,
	}}
	if c.Key != "" {
		job.KeyScope = c.KeyScope
		if c.KeyScope == sluice.ForWindow || c.KeyScope == "" { // the rest of the window; if it is over, next to nothing
			job.KeyScope, job.KeyWindow = sluice.ForWindow, max(time.Until(c.KeyUntil), time.Microsecond)
		}
	}
	var err error
	if job.After, job.AfterFailures, err = f.after(ctx, c.Job); err == nil && len(job.After) > 0 {
		job.AfterFailure = c.AfterFailure
	}
	return job, err
}

// after lists the jobs that a job must wait for at the centre: those forwarded before. Jobs that ended locally
// are left out. Rules are the failure rules for single ones.
func (f *Forwarder) after(ctx context.Context, j sluice.Job) (there []sluice.ID, rules map[sluice.ID]sluice.AfterFailure, err error) {
	rules = make(map[sluice.ID]sluice.AfterFailure)
	for _, id := range j.After {
		rule := j.AfterFailures[id]
		var other sluice.Job
		err := f.call(ctx, func(ctx context.Context) (err error) {
			other, err = f.local.Job(ctx, id)
			return err
		})
		var arrival Arrival
		switch {
		case errors.Is(err, sluice.ErrNotFound): // deleted locally; the centre may know the job
		case err != nil:
			return nil, nil, err
		case other.State == sluice.StateCompleted && json.Unmarshal(other.Result, &arrival) == nil && arrival.To != "":
			if !arrival.DuplicateOf.IsZero() {
				id = arrival.DuplicateOf
			}
		case other.State.Finished():
			continue
		}
		if !slices.Contains(there, id) {
			there = append(there, id)
		}
		if rule != "" {
			rules[id] = rule
		}
	}
	return there, rules, nil
}
