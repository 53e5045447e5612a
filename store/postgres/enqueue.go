package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/enqueue.sql
var enqueueSQL string

//go:embed sql/enqueue_one.sql
var enqueueOneSQL string

//go:embed sql/enqueue_new.sql
var enqueueNewSQL string

//go:embed sql/enqueue_batch.sql
var enqueueBatchSQL string

//go:embed sql/flow_start.sql
var flowStartSQL string

// Enqueue stores jobs in one transaction.
func (s *Store) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	stay, err := s.room.Enter(ctx, jobs, s.roomSource())
	if err != nil {
		return make([]sluice.Receipt, len(jobs)), err
	}
	var out enqueued
	defer func() { stay.End(jobs, out.receipts) }()
	if err := s.noteAwaited(ctx, jobs); err != nil {
		return nil, err
	}
	err = s.call(ctx, "enqueue", func(ctx context.Context, again bool) (err error) {
		if !again && mayShare(jobs) {
			out, err = s.groups.enqueue(ctx, jobs)
			return err
		}
		if !keyed(jobs) {
			out, err = enqueue(ctx, s.pool, jobs, enqueuing{again: again, brief: true, alone: !again})
			return err
		}
		how := enqueuing{again: again, brief: true, fresh: !again && onlyBatched(jobs)}
		if out, err = s.enqueueInTx(ctx, jobs, how); how.fresh && violatesUnique(err) {
			how.fresh = false
			out, err = s.enqueueInTx(ctx, jobs, how)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.tellEnqueued(jobs, out.receipts)
	s.disturbLowWater(jobs)
	if out.told {
		s.signalHere(sluice.Signal{Queue: jobs[0].Queue})
	} else {
		s.signalQueues(queuesOf(jobs))
	}
	s.unblock(ctx, out.behind)
	return out.receipts, out.refusal()
}

// countEnqueued counts the jobs that an enqueue stored, and the jobs that they replaced.
func (s *Store) countEnqueued(jobs []sluice.Insert, receipts []sluice.Receipt) {
	s.tally.Enqueued(jobs, receipts)
	for i := range receipts {
		if !receipts[i].Replaced.IsZero() {
			s.tally.Moved(jobs[i].Queue, "", sluice.EventCancel, 1)
		}
	}
}

// tellEnqueued counts the jobs that a committed enqueue stored, and tells those who wait for a job that it replaced.
func (s *Store) tellEnqueued(jobs []sluice.Insert, receipts []sluice.Receipt) {
	s.countEnqueued(jobs, receipts)
	for _, r := range receipts {
		if !r.Replaced.IsZero() && s.awaits.Take(r.Replaced) {
			s.signal(sluice.Signal{Ended: r.Replaced})
		}
	}
}

func (s *Store) enqueueInTx(ctx context.Context, jobs []sluice.Insert, how enqueuing) (out enqueued, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		out, err = enqueue(ctx, tx, jobs, how)
		return err
	})
	return out, err
}

// enqueued is the result of storing a batch.
type enqueued struct {
	receipts []sluice.Receipt
	refused  map[int]error
	behind   []sluice.ID // jobs for which others wait, and which may have ended meanwhile
	told     bool        // the commit woke other processes
}

// refusal returns the error of a batch with refused jobs.
func (e enqueued) refusal() error {
	if len(e.refused) == 0 {
		return nil
	}
	return &sluice.BatchError{Failed: e.refused, Total: len(e.receipts)}
}

// disturbLowWater records jobs whose due time is so old that they may lie behind the marks.
func (s *Store) disturbLowWater(jobs []sluice.Insert) {
	edge := time.Now().Add(-lowWaterSlack)
	for _, j := range jobs {
		if !j.DueAt.IsZero() && j.DueAt.Before(edge) {
			s.lowWater.disturb(j.Queue)
			s.tenantQueueLowWater.disturb(tenantQueueKey(j.Queue, j.Tenant))
		}
	}
}

// keyed reports whether a job has a key, an order key, jobs that it runs after, a hold, or a batch. Such jobs need a transaction.
func keyed(jobs []sluice.Insert) bool {
	for i := range jobs {
		if jobs[i].Key != "" || ordered(&jobs[i]) || jobs[i].Hold != "" || !jobs[i].Batch.IsZero() {
			return true
		}
	}
	return false
}

// onlyBatched reports whether jobs need a transaction only because of their batches.
func onlyBatched(jobs []sluice.Insert) bool {
	for i := range jobs {
		if jobs[i].Key != "" || ordered(&jobs[i]) || jobs[i].Hold != "" {
			return false
		}
	}
	return true
}

func queuesOf(jobs []sluice.Insert) map[string]bool {
	queues := make(map[string]bool)
	for _, j := range jobs {
		queues[j.Queue] = true
	}
	return queues
}

// enqueuing controls how enqueue stores jobs.
type enqueuing struct {
	again bool   // an earlier try may have stored them, so that stored ones are no duplicates
	brief bool   // the transaction ends at once, so that other transactions may be kept waiting
	alone bool   // each statement is a transaction, so that one may fail
	fresh bool   // the caller makes another transaction, without fresh, if an id is taken
	carry string // the signal that goes with a plain job that is alone
}

// enqueue stores jobs through a pool or a transaction. For jobs that are keyed, db must be a transaction.
func enqueue(ctx context.Context, db rowsQuerier, jobs []sluice.Insert, how enqueuing) (enqueued, error) {
	if known, err := flowKnown(ctx, db, jobs); known || err != nil {
		return enqueued{receipts: storing.Known(jobs, how.again)}, err
	}
	receipts := make([]sluice.Receipt, len(jobs))
	jobs, refused, err := enterBatches(ctx, db, jobs)
	if err != nil {
		return enqueued{}, err
	}
	line, err := newLineUp(ctx, db, jobs, refused)
	if err != nil {
		return enqueued{}, err
	}
	if line != nil {
		refused = line.refused
	}
	var behind []sluice.ID
	for _, round := range rounds(jobs) {
		round = line.taking(round)
		places, err := placeRound(ctx, db, jobs, round, how.brief)
		if err != nil {
			return enqueued{}, err
		}
		round, refused = line.refuseByKey(jobs, round, places, refused)
		var stored []int
		for _, i := range round {
			receipts[i] = sluice.Receipt{ID: jobs[i].ID, Replaced: places[i].replaced}
			behind = append(behind, places[i].awaited...)
			if twin := places[i].duplicateOf; !twin.IsZero() {
				receipts[i] = sluice.Receipt{ID: twin, Duplicate: !how.again || twin != jobs[i].ID}
				line.twin(jobs[i].ID, twin)
				continue
			}
			stored = append(stored, i)
		}
		places = line.place(jobs, stored, places)
		taken, err := insert(ctx, db, jobs, stored, places, how)
		if err != nil {
			return enqueued{}, err
		}
		if err := putHolds(ctx, db, jobs, stored, places, taken); err != nil {
			return enqueued{}, err
		}
		if err := line.put(ctx, db, jobs, stored, places, taken); err != nil {
			return enqueued{}, err
		}
		for _, i := range stored {
			receipts[i].Duplicate = taken[jobs[i].ID] && !how.again
		}
	}
	return line.outcome(receipts, refused, behind), nil
}

// flowKnown reports whether jobs are those of a flow that is stored. It waits for another start of the same flow.
func flowKnown(ctx context.Context, db rowsQuerier, jobs []sluice.Insert) (bool, error) {
	id := storing.FlowOf(jobs)
	if id.IsZero() {
		return false, nil
	}
	if err := exec(ctx, db, flowStartSQL, [16]byte(id)); err != nil {
		return false, err
	}
	found, err := list(ctx, db, pgx.RowTo[bool], jobInSQL, [16]byte(id), flow.EndQueue)
	return first(found), err
}

// insert stores the chosen jobs and returns the ids that were taken.
func insert(ctx context.Context, db rowsQuerier, jobs []sluice.Insert, chosen []int, places map[int]keyPlace, how enqueuing) (map[sluice.ID]bool, error) {
	if len(chosen) == 0 {
		return nil, nil
	}
	if i := chosen[0]; len(chosen) == 1 && plain(&jobs[i]) {
		return insertOne(ctx, db, &jobs[i], how.carry)
	}
	order := sortedByID(len(chosen), func(i int) sluice.ID { return jobs[chosen[i]].ID })
	bytes := 0
	for _, i := range chosen {
		bytes += len(jobs[i].Payload)
	}
	columns := newInsertColumns(len(chosen), bytes)
	for _, o := range order {
		if err := columns.add(&jobs[chosen[o]], places[chosen[o]]); err != nil {
			return nil, err
		}
	}
	known := knownQueues(jobs, chosen)
	if of := columns.onlyBatch(); how.fresh && of.Valid {
		return takenIDs(ctx, db, enqueueBatchSQL, append(columns.fewArguments(known), of), known...)
	}
	if how.alone && columns.batches == nil && columns.few() {
		taken, err := takenIDs(ctx, db, enqueueNewSQL, columns.fewArguments(known), known...)
		if !violatesUnique(err) {
			return taken, err
		}
	}
	return takenIDs(ctx, db, enqueueSQL, columns.arguments(known), known...)
}

// orNull returns nil for the zero value.
func orNull[T comparable](value T) *T {
	var nothing T
	if value == nothing {
		return nil
	}
	return &value
}

// takenIDs runs a statement that stores jobs, and returns the ids that were taken. If a known queue is gone, it
// returns a [sluice.ErrQueueGone]. The statement locks the table of jobs before it checks the queues, and
// DeleteQueue makes such statements wait. So no statement misses a deletion.
func takenIDs(ctx context.Context, db rowsQuerier, text string, arguments []any, known ...string) (map[sluice.ID]bool, error) {
	ids, err := list(ctx, db, pgx.RowTo[pgtype.UUID], text, arguments...)
	if err != nil {
		return nil, err
	}
	taken := make(map[sluice.ID]bool, len(ids))
	for _, id := range ids {
		if !id.Valid {
			return nil, fmt.Errorf("queues %.200q: one was deleted: %w", known, sluice.ErrQueueGone)
		}
		taken[idOf(id)] = true
	}
	return taken, nil
}

// knownQueues lists, each once, the queues of the chosen jobs that were stored when their settings were read.
func knownQueues(jobs []sluice.Insert, chosen []int) []string {
	var names []string
	seen := make(map[string]bool)
	for _, i := range chosen {
		if j := &jobs[i]; j.Known && !seen[j.Queue] {
			seen[j.Queue] = true
			names = append(names, j.Queue)
		}
	}
	return names
}

func violatesUnique(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "23505"
}

// refusesSignals reports whether the server has no room for a notification.
func refusesSignals(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "54000"
}
