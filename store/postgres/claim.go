package postgres

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/claim.sql
var claimFile string

var claimSQL = jobColumns.In(claimFile)

//go:embed sql/claimed_before.sql
var claimedBeforeFile string

var claimedBeforeSQL = jobColumns.In(claimedBeforeFile)

//go:embed sql/next_due.sql
var nextDueSQL string

//go:embed sql/renew.sql
var renewSQL string

//go:embed sql/checkpoint.sql
var checkpointSQL string

// Claim hands out due jobs by priority, then by due time.
func (s *Store) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	var out sluice.Claimed
	if err := request.Check(); err != nil {
		return out, err
	}
	if len(request.Queues) > 0 {
		return s.claimTogether(ctx, request)
	}
	before, counted := s.crowds.before(request), false // counted when the claim was sent before
	err := s.call(ctx, "claim", func(ctx context.Context, again bool) (err error) {
		if again || request.Again {
			out.Jobs, err = list(ctx, s.pool, claimScanner(request), claimedBeforeSQL, [16]byte(request.Token))
			if err == nil {
				out.Jobs, err = s.existing(ctx, s.pool, request, out.Jobs)
			}
			if err != nil || len(out.Jobs) > 0 {
				out.Paced, counted = request.ReportsBegun, request.Again
				flow.HoldBack(time.Now(), flow.MaxAhead)
				return err
			}
		}
		out, err = s.claim(ctx, request)
		return err
	})
	if err == nil && !counted {
		s.tally.Claimed(out.Jobs)
		s.tellTaken(request, out.Jobs, before)
	}
	return out, err
}

// claim claims from a queue without limits in one statement, which finds nothing in a queue with limits. If the
// store does not know yet whether the queue has limits, claim tries the one way, and then the other.
func (s *Store) claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	for range 2 {
		if s.limits.known(request.Queue) {
			out, limited, err := s.claimLimited(ctx, request)
			if err != nil || limited {
				return out, err
			}
			s.limits.forget(request.Queue)
		}
		out, limited, err := s.claimPlain(ctx, request)
		if err != nil || !limited {
			return out, err
		}
		s.limits.learn(request.Queue)
		s.lowWater.disturb(request.Queue) // it gave no job of a queue with limits, so it was no walk from the front
	}
	return sluice.Claimed{Limited: true}, nil // the limits change at this moment
}

// claimPlain claims from a queue without limits, or reports that the queue has limits.
func (s *Store) claimPlain(ctx context.Context, request sluice.ClaimRequest) (out sluice.Claimed, limited bool, err error) {
	if request.Limit == 0 {
		return s.tellOnly(ctx, request)
	}
	walk := s.lowWater.walk(request.Queue, request.ClaimAhead)
	out.Jobs, err = s.claimAlong(ctx, s.pool, walk, request, request.Limit, time.Time{})
	if err != nil {
		return sluice.Claimed{}, false, err
	}
	if len(out.Jobs) > 0 {
		walk.advance(out.Jobs)
		return out, false, nil
	}
	engine := ""
	out.NextDue, limited, engine, err = walk.nextDue(ctx, s.pool)
	if err == nil {
		err = request.CheckRunner(engine)
	}
	return out, limited, err
}

// tellOnly handles a claim that only reports begun jobs. Without limits, the report is not needed.
func (s *Store) tellOnly(ctx context.Context, request sluice.ClaimRequest) (out sluice.Claimed, limited bool, err error) {
	there, err := list(ctx, s.pool, pgx.RowTo[bool], flowThereSQL, request.Queue)
	return sluice.Claimed{NextDue: -1}, err == nil && there[0] && !s.limits.known(request.Queue), err
}

// walk is the path of one claim through the claim index of a queue.
type walk struct {
	lowWater   *lowWater
	queue      string
	lead       time.Duration
	key        string // of the low-water marks
	dueAts     []time.Time
	ids        uuidArray
	untilFront time.Duration // until the next claim walks from the front; 0: this one does
}

func (m *lowWater) walk(queue string, lead time.Duration) walk {
	key := queue
	if lead > 0 {
		key = aheadOf(queue)
	}
	from, untilFront := m.start(key)
	dueAts, ids := arguments(from)
	return walk{m, queue, lead, key, dueAts, ids, untilFront}
}

// claim claims up to limit jobs, including orphans. A time in at means that limits were checked, as of then.
func (w walk) claim(ctx context.Context, db rowsQuerier, request sluice.ClaimRequest, limit int, at time.Time) ([]*sluice.Claim, error) {
	begun := time.Now()
	order, dueAts, ids := w.inOrder(request.Priorities())
	jobs, err := list(ctx, db, claimScanner(request), claimSQL, w.queue, order, dueAts, ids,
		limit, [16]byte(request.Token), request.Holder, request.Lease, !at.IsZero(), nullTime(at), request.ClaimAhead, request.Engine)
	w.lowWater.walked(w.key, time.Since(begun), w.untilFront == 0) // also if the claim failed because it took so long
	w.lowWater.filled(w.key, len(jobs) == limit)
	slices.SortFunc(jobs, inClaimOrder)
	return jobs, err
}

// claimAlong claims up to limit jobs along a walk.
func (s *Store) claimAlong(ctx context.Context, db rowsQuerier, walk walk, request sluice.ClaimRequest, limit int, at time.Time) ([]*sluice.Claim, error) {
	jobs, err := walk.claim(ctx, db, request, limit, at)
	if err != nil {
		return nil, err
	}
	return s.existing(ctx, db, request, jobs)
}

// inOrder returns priorities and their marks as the claim statement takes them.
func (w walk) inOrder(served []int) (order []int16, dueAts []time.Time, ids uuidArray) {
	for _, priority := range served {
		order = append(order, int16(priority))
		dueAts, ids = append(dueAts, w.dueAts[priority-1]), append(ids, w.ids[priority-1])
	}
	return order, dueAts, ids
}

// inClaimOrder sorts claimed jobs. The server does not sort them, because it would carry the payloads along.
func inClaimOrder(a, b *sluice.Claim) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.DueAt.Compare(b.DueAt), bytes.Compare(a.ID[:], b.ID[:]))
}

// advance moves the marks past the claimed jobs. Call it after the commit.
func (w walk) advance(jobs []*sluice.Claim) {
	for _, j := range jobs {
		w.passed(j.Priority, place{j.DueAt, j.ID}, j.ClaimedAt)
	}
}

// passed moves the marks past a job that has left its place in the index.
func (w walk) passed(priority int, at place, now time.Time) {
	w.lowWater.advance(w.queue, priority, at, now)
	if w.lead > 0 {
		w.lowWater.advance(w.key, priority, at, now.Add(w.lead))
	}
}

// nextDue returns how long until a job is due, and whether the queue has limits.
func (w walk) nextDue(ctx context.Context, db rowsQuerier) (wait time.Duration, limited bool, engine string, err error) {
	rows, err := query(ctx, db, nextDueSQL, w.nextDueArguments()...)
	if err != nil {
		return -1, false, "", err
	}
	return w.readNextDue(rows)
}

func (w walk) nextDueArguments() []any { return []any{w.queue, priorities, w.dueAts, w.ids, w.lead} }

func (w walk) readNextDue(rows pgx.Rows) (wait time.Duration, limited bool, engine string, err error) {
	var millis *int64
	_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&millis, &limited, &engine)
	})
	wait = -1
	if millis != nil {
		wait = time.Duration(max(*millis, 0)) * time.Millisecond
	}
	if w.untilFront > 0 && (wait < 0 || w.untilFront < wait) {
		wait = w.untilFront // jobs behind the marks were not read
	}
	return wait, limited, engine, err
}

func orZero[T any](value *T) T {
	if value == nil {
		var zero T
		return zero
	}
	return *value
}

// Renew extends claims, and returns the lost ones.
func (s *Store) Renew(ctx context.Context, renewals []sluice.Renewal) ([]sluice.ID, error) {
	ids, tokens, leases := make(uuidArray, len(renewals)), make(uuidArray, len(renewals)), make([]time.Duration, len(renewals))
	for k, i := range sortedByID(len(renewals), func(i int) sluice.ID { return renewals[i].ID }) {
		ids[k], tokens[k], leases[k] = renewals[i].ID, renewals[i].Token, renewals[i].Lease
	}
	var held []pgtype.UUID
	err := s.call(ctx, "renew", func(ctx context.Context, _ bool) (err error) {
		held, err = list(ctx, s.pool, pgx.RowTo[pgtype.UUID], renewSQL, ids, tokens, leases)
		return err
	})
	if err != nil {
		return nil, err
	}
	holds := make(map[sluice.ID]bool, len(held))
	for _, id := range held {
		holds[idOf(id)] = true
	}
	var lost []sluice.ID
	for _, r := range renewals {
		if !holds[r.ID] {
			lost = append(lost, r.ID)
		}
	}
	return lost, nil
}

// SaveCheckpoint stores the progress of a claimed job.
func (s *Store) SaveCheckpoint(ctx context.Context, id sluice.ID, token sluice.Token, checkpoint json.RawMessage) error {
	if err := sluice.CheckResult("checkpoint", checkpoint); err != nil {
		return fmt.Errorf("save checkpoint of job %s: %w", id, err)
	}
	return s.call(ctx, "save checkpoint", func(ctx context.Context, _ bool) error {
		saved, err := list(ctx, s.pool, pgx.RowTo[pgtype.UUID], checkpointSQL, [16]byte(id), [16]byte(token), []byte(checkpoint))
		if err != nil || len(saved) > 0 {
			return err
		}
		if err := s.tellLost(ctx, []lostWrite{{id: id, verb: "checkpoint"}}); err != nil {
			return err
		}
		return sluice.ErrLost
	})
}
