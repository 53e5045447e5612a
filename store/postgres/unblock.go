package postgres

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/unblock.sql
var unblockSQL string

//go:embed sql/limit_unpark_strays.sql
var limitUnparkStraysSQL string

//go:embed sql/repair_order_keys.sql
var repairOrderKeysSQL string

// look is a row of unblock.sql: the state of one waiting job.
type look struct {
	id      sluice.ID
	queue   string
	behind  sluice.ID // the job that it waits for now; zero: none
	failed  sluice.ID // the failed job that cancels it; zero: none
	outcome sluice.State
	changed bool
	locked  bool // its row was locked, and skipped
	unread  bool // behind has ended, and the jobs before behind were not read yet
}

func scanLook(row pgx.CollectableRow) (look, error) {
	var l look
	var id, behind, failed pgtype.UUID
	var outcome string
	err := row.Scan(&id, &l.queue, &behind, &failed, &outcome, &l.changed, &l.locked, &l.unread)
	l.id, l.behind, l.failed, l.outcome = idOf(id), idOf(behind), idOf(failed), sluice.State(outcome)
	return l, err
}

const (
	// unblockSlice is how many waiting jobs one statement evaluates.
	unblockSlice = 1000
	// edgeSlice is how many jobs that one runs after a statement reads of each waiting job. The rounds at the end of a job
	// read all of [sluice.MaxAfter].
	edgeSlice = 2500
	// unblockRounds is how many slices are evaluated when a job ends, because settling must stay quick. Upkeep
	// evaluates the rest.
	unblockRounds = 10
	// repairRounds is how many slices upkeep evaluates.
	repairRounds = 1000
	// repairSlice is how many blocked jobs one call of repairBlocked reads.
	repairSlice = 20_000
)

// unblocker evaluates the jobs that wait for jobs that may have ended. Jobs that it cancels end too, and the new
// blockers of jobs may have just ended. So the unblocker continues until no job is left.
type unblocker struct {
	db      rowsQuerier
	cancel  func(ctx context.Context, e actEnding) (endings, error)
	ended   []sluice.ID
	next    []sluice.ID // evaluated after all jobs that wait for ended
	after   sluice.ID   // position in the slices of waiting jobs
	changed int
}

func (u *unblocker) run(ctx context.Context, rounds int, moved func(sluice.Event, []moved)) error {
	for ; rounds > 0 && len(u.ended) > 0; rounds-- {
		rows, err := list(ctx, u.db, scanLook, unblockSQL, uuids(u.ended), uuidArray{}, [16]byte(u.after), unblockSlice, edgeSlice)
		if err != nil {
			return err
		}
		moved(sluice.EventRelease, u.letGo(rows))
		cancelled, err := u.cancelFailed(ctx, rows)
		if err != nil {
			return err
		}
		moved(sluice.EventCancel, cancelled.rows)
		u.next = append(u.next, cancelled.awaited...)
		if len(rows) == unblockSlice {
			u.after = rows[len(rows)-1].id
			continue
		}
		u.ended, u.next, u.after = sortedOnce(u.next), nil, sluice.ID{}
	}
	return nil
}

// letGo returns the jobs that wait for nothing any longer, and notes the jobs to evaluate next.
func (u *unblocker) letGo(rows []look) (free []moved) {
	locked := false
	for _, r := range rows {
		locked = locked || r.locked
		if r.changed {
			u.changed++
		}
		switch {
		case r.locked, !r.failed.IsZero():
		case r.behind.IsZero():
			free = append(free, moved{id: r.id, queue: r.queue, from: letGo})
		case r.unread, !slices.Contains(u.ended, r.behind):
			u.next = append(u.next, r.behind)
		}
	}
	if locked {
		u.next = append(u.next, u.ended...)
	}
	return free
}

// cancelFailed cancels the jobs that run after a failed job, if their failure rule asks for it.
func (u *unblocker) cancelFailed(ctx context.Context, rows []look) (endings, error) {
	e := actEnding{event: sluice.EventCancel, from: []sluice.State{sluice.StateQueued}}
	for _, r := range rows { // sorted
		if !r.failed.IsZero() {
			e.ids = append(e.ids, r.id)
			e.reasons, e.actors = append(e.reasons, storing.AfterFailed(r.failed, r.outcome)), append(e.actors, "sluice")
		}
	}
	if len(e.ids) == 0 {
		return endings{}, nil
	}
	out, err := u.cancel(ctx, e)
	u.changed += len(out.rows)
	return out, err
}

// unblock evaluates the jobs that wait for jobs that may have ended. Call it after the commit. If it fails, upkeep
// does the work: the ended jobs stay ended. So it does for jobs that a caller's transaction has locked; unblock itself looks again
// once, because most transactions are brief.
func (s *Store) unblock(ctx context.Context, ended []sluice.ID) {
	if len(ended) == 0 {
		return
	}
	u, err := s.unblockUpTo(ctx, ended, unblockRounds)
	if err != nil && ctx.Err() == nil {
		s.log.Emit(event.NotUnblocked, "", "error", err)
	}
	if err != nil || len(u.ended) == 0 {
		return
	}
	time.AfterFunc(txNotifyInterval, func() {
		if !s.closed.Load() {
			_, _ = s.unblockUpTo(context.Background(), u.ended, unblockRounds) // upkeep does what fails
		}
	})
}

// unblockUpTo returns the unblocker, whose ended jobs are left.
func (s *Store) unblockUpTo(ctx context.Context, ended []sluice.ID, rounds int) (*unblocker, error) {
	u := &unblocker{db: s.pool, ended: ended, cancel: func(ctx context.Context, e actEnding) (out endings, err error) {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			out, err = endByAct(ctx, tx, e)
			return err
		})
		return out, err
	}}
	return u, s.call(ctx, "unblock", func(ctx context.Context, _ bool) error { return u.run(ctx, rounds, s.unblocked) })
}

// unblockIn is unblock inside a caller's transaction, whose changes no other transaction can see yet. Upkeep
// handles jobs that end meanwhile.
func unblockIn(ctx context.Context, tx rowsQuerier, ended []sluice.ID) error {
	u := unblocker{db: tx, ended: ended, cancel: func(ctx context.Context, e actEnding) (endings, error) { return endByAct(ctx, tx, e) }}
	return u.run(ctx, unblockRounds, func(sluice.Event, []moved) {})
}

// repairPlaces holds the positions at which upkeep continues.
type repairPlaces struct {
	blocker sluice.ID
	key     queueKey
	line    tenantQueueName // tenant queue in which jobs wait
	idle    tenantQueueName // tenant queue that may be idle
}

// repairBlocked finds jobs whose blocker has ended in one slice of the blocked jobs, and evaluates them again.
func (s *Store) repairBlocked(ctx context.Context) (int, error) {
	s.repairing.Lock()
	defer s.repairing.Unlock()
	var ended []sluice.ID
	err := s.call(ctx, "repair", func(ctx context.Context, _ bool) error {
		rows, err := query(ctx, s.pool, repairBlockedSQL, [16]byte(s.repairFrom.blocker), repairSlice)
		if err != nil {
			return err
		}
		var id pgtype.UUID
		var left bool
		var count, looked int
		ended = nil
		next := s.repairFrom
		_, err = pgx.ForEachRow(rows, []any{&id, &left, &count}, func() error {
			looked, next.blocker = looked+count, idOf(id)
			if left {
				ended = append(ended, idOf(id))
			}
			return nil
		})
		if looked < repairSlice {
			next.blocker = sluice.ID{}
		}
		if err == nil {
			s.repairFrom = next
		}
		return err
	})
	if err != nil || len(ended) == 0 {
		return 0, err
	}
	var letIn []moved
	err = s.call(ctx, "repair", func(ctx context.Context, _ bool) (err error) {
		letIn, err = list(ctx, s.pool, scanMoved, limitUnparkStraysSQL, uuids(sortedOnce(ended)))
		return err
	})
	if err != nil {
		return 0, err
	}
	s.unblocked(sluice.EventRelease, letIn)
	u, err := s.unblockUpTo(ctx, sortedOnce(ended), repairRounds)
	return len(letIn) + u.changed, err
}

// repairOrderKeys deletes order keys without unfinished jobs, in one slice.
func (s *Store) repairOrderKeys(ctx context.Context) error {
	s.repairing.Lock()
	defer s.repairing.Unlock()
	return s.call(ctx, "repair", func(ctx context.Context, _ bool) error {
		last, err := list(ctx, s.pool, scanQueueKey, repairOrderKeysSQL, s.repairFrom.key.queue, s.repairFrom.key.key, unblockSlice)
		if err == nil {
			s.repairFrom.key = queueKey{}
			if len(last) > 0 {
				s.repairFrom.key = last[0]
			}
		}
		return err
	})
}

// unblockLater does for a caller's transaction what Enqueue does around its own. The function records that the end
// of some jobs must unblock others, and checks whether they have ended meanwhile, jobs of the transaction too. If the
// caller has not committed by then, upkeep finds the jobs.
func (s *Store) unblockLater(jobs []sluice.Insert, behind []sluice.ID) {
	if !anyOrdered(jobs) {
		return
	}
	jobs, behind = slices.Clone(jobs), slices.Clone(behind)
	for i := range jobs {
		behind = append(behind, jobs[i].ID)
	}
	time.AfterFunc(txNotifyInterval, func() {
		if s.closed.Load() {
			return
		}
		if err := s.noteAwaited(context.Background(), jobs); err == nil {
			s.unblock(context.Background(), behind)
		}
	})
}
