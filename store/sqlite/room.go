package sqlite

import (
	"context"
	_ "embed"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/room"
	"github.com/sluice-queue/sluice/pressure"
)

//go:embed sql/waiting_jobs.sql
var waitingJobsSQL string

//go:embed sql/waiting_jobs_tenant.sql
var waitingJobsTenantSQL string

//go:embed sql/shed.sql
var shedSQL string

//go:embed sql/shed_tenant.sql
var shedTenantSQL string

//go:embed sql/shed_turns.sql
var shedTurnsSQL string

var _ pressure.Store = (*Store)(nil)

// WaitingJobs counts the queued jobs of a queue or of one of its tenants, up to a limit.
func (s *Store) WaitingJobs(ctx context.Context, queue, tenant string, limit int) (int, error) {
	waiting := 0
	err := s.read(ctx, "count waiting jobs", func(tx runner) (err error) {
		waiting, err = waitingJobs(tx, queue, tenant, limit)
		return err
	})
	return waiting, err
}

func waitingJobs(tx runner, queue, tenant string, limit int) (int, error) {
	text, arguments := waitingJobsSQL, []any{queue, limit}
	if tenant != "" {
		text, arguments = waitingJobsTenantSQL, []any{queue, tenant, limit}
	}
	counts, err := list(tx, scanOne[int], text, arguments...)
	if err != nil {
		return 0, err
	}
	return counts[0], nil
}

// PressureCounts returns what this store has refused and shed.
func (s *Store) PressureCounts() map[string]pressure.Counts { return s.room.Counts() }

// roomSource counts and sheds for the room.
func (s *Store) roomSource() room.Source {
	return room.Source{Waiting: s.WaitingJobs, Shed: func(ctx context.Context, of room.Shedding) (done bool, err error) {
		err = s.write(ctx, "shed", func(tx runner, _ bool) (err error) {
			done, err = shed(tx, of)
			return err
		})
		return done, err
	}, Stored: func(ctx context.Context, jobs []sluice.Insert) (found map[sluice.ID]bool, err error) {
		err = s.read(ctx, "look for jobs that are sent again", func(tx runner) (err error) {
			found, err = stored(tx, jobs)
			return err
		})
		return found, err
	}}
}

// roomSourceIn is roomSource through a caller's transaction.
func roomSourceIn(tx runner) room.Source {
	return room.Source{
		Waiting: func(_ context.Context, queue, tenant string, limit int) (int, error) {
			return waitingJobs(tx, queue, tenant, limit)
		},
		Shed: func(_ context.Context, of room.Shedding) (bool, error) { return shed(tx, of) },
		Stored: func(_ context.Context, jobs []sluice.Insert) (map[sluice.ID]bool, error) {
			return stored(tx, jobs)
		},
		InTx: true,
	}
}

// stored returns those of these jobs that are stored, or whose key keeps them out.
func stored(tx runner, jobs []sluice.Insert) (map[sluice.ID]bool, error) {
	found := make(map[sluice.ID]bool)
	for i := range jobs {
		in := &jobs[i]
		is, err := isStored(tx, in.ID)
		if err == nil && !is && room.Keeps(in) {
			var holds []keyHold
			holds, err = list(tx, scanKeyHold, keyHolderSQL, in.Queue, in.Key)
			is = len(holds) > 0 && holds[0].holds(now())
		}
		if err != nil {
			return nil, err
		}
		found[in.ID] = is
	}
	return found, nil
}

// shed cancels waiting jobs to make room, or none of them if there are too few.
func shed(tx runner, of room.Shedding) (bool, error) {
	text, arguments := shedSQL, []any{of.Queue, of.Below, of.Jobs}
	switch {
	case of.Tenant != "":
		text, arguments = shedTenantSQL, []any{of.Queue, of.Tenant, of.Below, of.Jobs}
	case of.ByTenant:
		text = shedTurnsSQL
	}
	found, err := list(tx, scanOne[[]byte], text, arguments...)
	if err != nil || len(found) < of.Jobs {
		return false, err
	}
	_, err = end(tx, ending{
		event: sluice.EventCancel, from: []sluice.State{sluice.StateQueued}, ids: idsOf(found),
		act: sluice.Act{By: "sluice", Reason: room.Reason},
	})
	return err == nil, err
}
