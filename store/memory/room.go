package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/room"
	"github.com/sluice-queue/sluice/pressure"
)

var _ pressure.Store = (*Store)(nil)

// WaitingJobs counts the queued jobs of a queue or of one of its tenants, up to a limit.
func (s *Store) WaitingJobs(ctx context.Context, queue, tenant string, limit int) (int, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	return s.waitingJobs(ctx, queue, tenant, limit)
}

func (s *Store) waitingJobs(_ context.Context, queue, tenant string, limit int) (int, error) {
	if tenant != "" && !s.byTenant(queue) {
		return 0, nil
	}
	waiting := 0
	for _, j := range s.jobs {
		if waiting == limit {
			break
		}
		if j.live && j.State == sluice.StateQueued && j.Queue == queue && (tenant == "" || j.Tenant == tenant) {
			waiting++
		}
	}
	return waiting, nil
}

// PressureCounts returns what this store has refused and shed.
func (s *Store) PressureCounts() map[string]pressure.Counts { return s.room.Counts() }

// roomSource counts and sheds for the room.
func (s *Store) roomSource() room.Source {
	return room.Source{Waiting: s.WaitingJobs, Shed: func(ctx context.Context, shed room.Shedding) (bool, error) {
		leave, err := s.enter(ctx)
		if err != nil {
			return false, err
		}
		defer leave()
		return s.shed(ctx, shed)
	}, Stored: func(ctx context.Context, jobs []sluice.Insert) (map[sluice.ID]bool, error) {
		leave, err := s.enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
		return s.stored(ctx, jobs)
	}}
}

// roomSourceIn is roomSource within a verb.
func (s *Store) roomSourceIn() room.Source {
	return room.Source{Waiting: s.waitingJobs, Shed: s.shed, Stored: s.stored, InTx: true}
}

// stored returns those of these jobs that are stored, or whose key keeps them out.
func (s *Store) stored(_ context.Context, jobs []sluice.Insert) (map[sluice.ID]bool, error) {
	stored := make(map[sluice.ID]bool)
	for i := range jobs {
		in := &jobs[i]
		hold, held := s.keys[queueKey{in.Queue, in.Key}]
		stored[in.ID] = s.jobs[in.ID] != nil || room.Keeps(in) && held && s.holds(hold)
	}
	return stored, nil
}

// shed cancels waiting jobs: the lowest priority first, of these the last due. It spares jobs of an order, jobs that
// wait for others, and jobs that others run after.
func (s *Store) shed(_ context.Context, shed room.Shedding) (bool, error) {
	var found []*job
	for _, j := range s.jobs {
		waits := j.live && j.State == sluice.StateQueued && j.Queue == shed.Queue && j.Priority > shed.Below
		if waits && (shed.Tenant == "" || j.Tenant == shed.Tenant) && (j.BlockedBy.IsZero() || j.parked) && j.OrderKey == "" && len(s.after[j.ID]) == 0 {
			found = append(found, j)
		}
	}
	if len(found) < shed.Jobs {
		return false, nil
	}
	slices.SortFunc(found, func(a, b *job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), b.DueAt.Compare(a.DueAt), cmp.Compare(b.place, a.place))
	})
	for _, j := range found[:shed.Jobs] {
		s.finish(j, sluice.EventCancel, sluice.Act{By: "sluice", Reason: room.Reason})
	}
	return true, nil
}
