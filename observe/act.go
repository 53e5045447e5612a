package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

// act makes a call for an act of a person. Acts name jobs by id, so their moves have no queue.

func (s *store) act(ctx context.Context, name string, event sluice.Event, jobs int, method func(context.Context) ([]error, error)) ([]error, error) {
	return s.each(ctx, &Call{Kind: KindStore, Name: name, Jobs: jobs, event: event, reason: "act"}, method)
}

func (s *store) Cancel(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "cancel", sluice.EventCancel, len(ids), func(ctx context.Context) ([]error, error) { return s.Store.Cancel(ctx, ids, act) })
}

func (s *store) Requeue(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	event := sluice.EventRequeue
	if act.Undo {
		event = sluice.EventUndo
	}
	return s.act(ctx, "requeue", event, len(ids), func(ctx context.Context) ([]error, error) { return s.Store.Requeue(ctx, ids, act) })
}

func (s *store) Resolve(ctx context.Context, ids []sluice.ID, outcome sluice.State, act sluice.Act) ([]error, error) {
	move, _ := sluice.Resolution(outcome)
	return s.act(ctx, "resolve", move.Event, len(ids), func(ctx context.Context) ([]error, error) { return s.Store.Resolve(ctx, ids, outcome, act) })
}

func (s *store) Terminate(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "terminate", "", len(ids), func(ctx context.Context) ([]error, error) { return s.Store.Terminate(ctx, ids, act) })
}

func (s *store) Reschedule(ctx context.Context, ids []sluice.ID, dueAt time.Time, act sluice.Act) ([]error, error) {
	return s.act(ctx, "reschedule", "", len(ids), func(ctx context.Context) ([]error, error) { return s.Store.Reschedule(ctx, ids, dueAt, act) })
}

func (s *store) DeleteJobs(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "delete_jobs", "", len(ids), func(ctx context.Context) ([]error, error) { return s.Store.DeleteJobs(ctx, ids, act) })
}
