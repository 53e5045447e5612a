package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/room"
	"github.com/sluice-queue/sluice/pressure"
)

//go:embed sql/waiting_jobs.sql
var waitingJobsSQL string

//go:embed sql/waiting_jobs_tenant.sql
var waitingJobsTenantSQL string

//go:embed sql/stored_or_kept.sql
var storedOrKeptSQL string

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
	err := s.call(ctx, "count waiting jobs", func(ctx context.Context, _ bool) (err error) {
		waiting, err = waitingJobs(ctx, s.pool, queue, tenant, limit)
		return err
	})
	return waiting, err
}

func waitingJobs(ctx context.Context, db rowsQuerier, queue, tenant string, limit int) (int, error) {
	text, arguments := waitingJobsSQL, []any{queue, limit}
	if tenant != "" {
		text, arguments = waitingJobsTenantSQL, []any{queue, tenant, limit}
	}
	counts, err := list(ctx, db, pgx.RowTo[int], text, arguments...)
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
		err = s.call(ctx, "shed", func(ctx context.Context, _ bool) error {
			var out endings
			err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
				out, done, err = shed(ctx, tx, of)
				return err
			})
			if err == nil {
				s.acted(sluice.EventCancel, out.rows)
			}
			return err
		})
		return done, err
	}, Stored: func(ctx context.Context, jobs []sluice.Insert) (found map[sluice.ID]bool, err error) {
		err = s.call(ctx, "look for jobs that are sent again", func(ctx context.Context, _ bool) (err error) {
			found, err = storedOrKept(ctx, s.pool, jobs)
			return err
		})
		return found, err
	}}
}

// roomSourceIn is roomSource through a caller's transaction.
func (s *Store) roomSourceIn(tx rowsQuerier) room.Source {
	return room.Source{
		Waiting: func(ctx context.Context, queue, tenant string, limit int) (int, error) {
			return waitingJobs(ctx, tx, queue, tenant, limit)
		},
		Shed: func(ctx context.Context, of room.Shedding) (bool, error) {
			out, done, err := shed(ctx, tx, of)
			if err == nil {
				s.acted(sluice.EventCancel, out.rows)
			}
			return done, err
		},
		Stored: func(ctx context.Context, jobs []sluice.Insert) (map[sluice.ID]bool, error) {
			return storedOrKept(ctx, tx, jobs)
		},
		InTx: true,
	}
}

// storedOrKept returns those of these jobs that are stored, or whose key keeps them out.
func storedOrKept(ctx context.Context, db rowsQuerier, jobs []sluice.Insert) (map[sluice.ID]bool, error) {
	ids, queues, keys := make(uuidArray, len(jobs)), make([]string, len(jobs)), make([]*string, len(jobs))
	for i := range jobs {
		in := &jobs[i]
		if ids[i], queues[i] = in.ID, in.Queue; room.Keeps(in) {
			keys[i] = &in.Key
		}
	}
	rows, err := list(ctx, db, pgx.RowTo[pgtype.UUID], storedOrKeptSQL, ids, queues, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[sluice.ID]bool, len(rows))
	for _, id := range rows {
		found[idOf(id)] = true
	}
	return found, nil
}

// shed cancels waiting jobs to make room, or none of them if there are too few. It leaves jobs that a claim or another
// transaction has locked.
func shed(ctx context.Context, db rowsQuerier, of room.Shedding) (out endings, done bool, err error) {
	text, arguments := shedSQL, []any{of.Queue, of.Below, of.Jobs}
	switch {
	case of.Tenant != "":
		text, arguments = shedTenantSQL, []any{of.Queue, of.Tenant, of.Below, of.Jobs}
	case of.ByTenant:
		text = shedTurnsSQL
	}
	found, err := list(ctx, db, pgx.RowTo[pgtype.UUID], text, arguments...)
	if err != nil || len(found) < of.Jobs {
		return out, false, err
	}
	e := actEnding{event: sluice.EventCancel, from: []sluice.State{sluice.StateQueued}}
	order := sortedByID(len(found), func(i int) sluice.ID { return idOf(found[i]) })
	for _, i := range order {
		e.ids = append(e.ids, idOf(found[i]))
		e.reasons, e.actors = append(e.reasons, room.Reason), append(e.actors, "sluice")
	}
	out, err = endByAct(ctx, db, e)
	return out, err == nil, err
}
