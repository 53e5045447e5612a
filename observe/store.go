package observe

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/progress"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/tenancy"
)

// store is a store whose calls are observed, except Watch, which waits on purpose, and Close.
type store struct {
	sluice.Store
	tokens
	policies
	alerts
	awaits
	batches
	deadNotes
	edits
	engineRuns
	explanations
	forecasts
	holds
	limits
	operations
	processes
	pressures
	progresses
	schedules
	stats
	tenants
	observers []Observer
}

// Distinct names let the struct embed several ports, all named Store.
type (
	alerts       = alert.Store
	awaits       = await.Store
	batches      = batch.Store
	deadNotes    = deadletter.Store
	tokens       = access.Store
	policies     = admission.Store
	edits        = edit.Store
	engineRuns   = engine.Store
	explanations = explain.Store
	forecasts    = forecast.Store
	holds        = hold.Store
	limits       = limit.Store
	operations   = operation.Store
	processes    = presence.Store
	pressures    = pressure.Store
	progresses   = progress.Store
	schedules    = schedule.Store
	stats        = stat.Store
	tenants      = tenancy.Store
)

// Store decorates a store. Its method Unwrap returns the store. Observers begin in their order and end in
// reverse order; nil observers are left out. With a nil store, every method returns a [sluice.ErrInvalid].
func Store(inner sluice.Store, observers ...Observer) sluice.Store {
	return &store{sluice.GivenStore(inner), access.Given(inner), admission.Given(inner), alert.Given(inner), await.Given(inner), batch.Given(inner), deadletter.Given(inner), edit.Given(inner), engine.Given(inner), explain.Given(inner), forecast.Given(inner), hold.Given(inner), limit.Given(inner), operation.Given(inner), presence.Given(inner), pressure.Given(inner), progress.Given(inner), schedule.Given(inner), stat.Given(inner), tenancy.Given(inner), given(observers)}
}

// given leaves out nil observers.
func given(observers []Observer) []Observer {
	return slices.DeleteFunc(slices.Clone(observers), func(o Observer) bool { return o == nil })
}

// Enqueuer decorates an enqueuer that works in the caller's transaction. A job counts as enqueued even if the
// transaction is later rolled back.
func Enqueuer(inner sluice.Enqueuer, observers ...Observer) sluice.Enqueuer {
	return &enqueuer{sluice.GivenEnqueuer(inner), given(observers)}
}

type enqueuer struct {
	sluice.Enqueuer
	observers []Observer
}

func (e *enqueuer) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	return enqueue(ctx, e.observers, e.Enqueuer, jobs)
}

// Unwrap returns the decorated store.
func (s *store) Unwrap() sluice.Store { return s.Store }

// do makes a call that its name, queue and error describe fully.
func do[T any](ctx context.Context, s *store, name, queue string, method func(context.Context) (T, error)) (T, error) {
	return observed(ctx, s.observers, &Call{Kind: KindStore, Name: name, Queue: queue}, method)
}

func observed[T any](ctx context.Context, observers []Observer, c *Call, method func(context.Context) (T, error)) (T, error) {
	c.Began = time.Now()
	ctx = begin(ctx, observers, c)
	value, err := method(ctx)
	c.Err = err
	end(ctx, observers, c)
	return value, err
}

// none is the result of methods that return only an error.
type none struct{}

func enqueue(ctx context.Context, observers []Observer, inner sluice.Enqueuer, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	c := &Call{Kind: KindStore, Name: "enqueue", Inserts: jobs, Jobs: len(jobs)}
	if len(jobs) > 0 {
		c.Queue = jobs[0].Queue
	}
	return observed(ctx, observers, c, func(ctx context.Context) (receipts []sluice.Receipt, err error) {
		receipts, err = inner.Enqueue(ctx, c.Inserts)
		c.Receipts = receipts
		return receipts, err
	})
}

func (s *store) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	return enqueue(ctx, s.observers, s.Store, jobs)
}

func (s *store) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	c := &Call{Kind: KindStore, Name: "claim", Queue: request.Queue}
	return observed(ctx, s.observers, c, func(ctx context.Context) (claimed sluice.Claimed, err error) {
		claimed, err = s.Store.Claim(ctx, request)
		now := time.Now()
		for _, claim := range claimed.Jobs {
			claim.ReceivedAt = now
		}
		c.Claims, c.Claimed, c.Jobs = claimed.Jobs, claimed, len(claimed.Jobs)
		return claimed, err
	})
}

func (s *store) NextDue(ctx context.Context, queues []string) (map[string]time.Duration, error) {
	return do(ctx, s, "next_due", "", func(ctx context.Context) (map[string]time.Duration, error) { return s.Store.NextDue(ctx, queues) })
}

func (s *store) Renew(ctx context.Context, renewals []sluice.Renewal) ([]sluice.ID, error) {
	c := &Call{Kind: KindStore, Name: "renew", Renewals: renewals, Jobs: len(renewals)}
	if len(renewals) > 0 {
		c.Queue = renewals[0].Queue
	}
	return observed(ctx, s.observers, c, func(ctx context.Context) (lost []sluice.ID, err error) {
		lost, err = s.Store.Renew(ctx, renewals)
		c.Lost, c.LostJobs = len(lost), lost
		return lost, err
	})
}

func (s *store) SaveCheckpoint(ctx context.Context, id sluice.ID, token sluice.Token, checkpoint json.RawMessage) error {
	_, err := do(ctx, s, "save_checkpoint", "", func(ctx context.Context) (none, error) {
		return none{}, s.Store.SaveCheckpoint(ctx, id, token, checkpoint)
	})
	return err
}

func (s *store) RecordIntent(ctx context.Context, intents []engine.Intent) ([]error, error) {
	c := &Call{Kind: KindStore, Name: "record_intent", Intents: intents, Jobs: len(intents)}
	return s.each(ctx, c, func(ctx context.Context) ([]error, error) { return s.engineRuns.RecordIntent(ctx, intents) })
}

func (s *store) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	c := &Call{Kind: KindStore, Name: "settle", Settlements: settlements, Jobs: len(settlements)}
	if len(settlements) > 0 && settlements[0].Claim != nil {
		c.Queue = settlements[0].Claim.Queue
	}
	return s.each(ctx, c, func(ctx context.Context) ([]error, error) { return s.Store.Settle(ctx, settlements) })
}

// each makes a call that answers for each job.
func (s *store) each(ctx context.Context, c *Call, method func(context.Context) ([]error, error)) ([]error, error) {
	return observed(ctx, s.observers, c, func(ctx context.Context) (errs []error, err error) {
		errs, err = method(ctx)
		c.Errs = errs
		return errs, err
	})
}
