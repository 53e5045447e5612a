package postgres

import (
	"context"
	_ "embed"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/flow_lock.sql
var flowLockSQL string

//go:embed sql/flow_add.sql
var flowAddSQL string

//go:embed sql/flow_there.sql
var flowThereSQL string

//go:embed sql/flow_take.sql
var flowTakeSQL string

//go:embed sql/in_flight.sql
var inFlightSQL string

// limits remembers which queues have limits, so that their claims go the right way at once. It may be
// wrong: each way notices and takes the other.
type limits struct{ queues sync.Map }

func (l *limits) known(queue string) bool {
	_, known := l.queues.Load(queue)
	return known
}

func (l *limits) learn(queue string)  { l.queues.Store(queue, true) }
func (l *limits) forget(queue string) { l.queues.Delete(queue) }

// claimLimited claims from a queue with limits, one claim after the other: what is in flight is counted
// after the lock was got, so that nobody can add to it. What ends meanwhile only makes more room.
func (s *Store) claimLimited(ctx context.Context, request sluice.ClaimRequest) (out sluice.Claimed, limited bool, err error) {
	walk := s.marks.walk(request.Queue)
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		gate, busy, err := lockFlow(ctx, tx, request.Queue)
		if busy {
			out, limited = sluice.Claimed{NextDue: busyWait, Limited: true}, true
		}
		if err != nil || gate == nil {
			return err
		}
		if limited = flow.Limited(gate.settings); !limited {
			return nil
		}
		if gate.settings.Paused {
			out = sluice.Claimed{NextDue: -1}
			return nil
		}
		out, err = gate.claim(ctx, tx, walk, request)
		return err
	})
	if err == nil {
		walk.advance(out.Jobs)
	}
	return out, limited, err
}

// gate is what a queue's settings say to a claim, and what the claims before it have left.
type gate struct {
	settings sluice.Settings // paused and the limits alone
	version  int64           // of the settings
	isNew    bool            // nobody has claimed by this version yet
	bucket   flow.Bucket
	now      time.Time // by the server's clock
	at       time.Time // the instant of the claim: now, but later than that of every claim before it
	stored   time.Time // up to when the row says that claims were made
	count    counting
}

// counting is from where what is in flight is counted. An old transaction keeps the index entries of all
// that was claimed since; they lie before it.
type counting struct {
	from    time.Time // nothing in flight was claimed before; zero: that is not known
	version int64     // of the settings, when the queue was last claimed from
	since   time.Time // when that version was first seen
}

// straggle is how long a claim may take that began before it could know of the limits, and so did not
// wait for the lock. Until then all that is in flight is counted, wherever it lies.
const straggle = time.Minute

// busyWait is when to claim again from a queue whose lock another claim has. Nobody waits for the lock: a
// process that has it may be frozen, and the worker has other queues to claim from.
const busyWait = 10 * time.Millisecond

// lockFlow locks what a queue's limits are kept by. No gate: it has none, or another claim has the lock.
func lockFlow(ctx context.Context, tx pgx.Tx, queue string) (locked *gate, busy bool, err error) {
	if locked, err = tryFlow(ctx, tx, queue); err != nil || locked != nil {
		return locked, false, err
	}
	there, err := list(ctx, tx, pgx.RowTo[bool], flowThereSQL, queue)
	if err != nil || there[0] {
		return nil, err == nil, err
	}
	if err := exec(ctx, tx, flowAddSQL, queue); err != nil {
		return nil, false, err
	}
	locked, err = tryFlow(ctx, tx, queue)
	return locked, false, err
}

// tryFlow locks the row of a queue's limits; nil: there is none that could be locked.
func tryFlow(ctx context.Context, tx pgx.Tx, queue string) (*gate, error) {
	gates, err := list(ctx, tx, scanGate, flowLockSQL, queue)
	if err != nil || len(gates) == 0 {
		return nil, err
	}
	return &gates[0], nil
}

func scanGate(row pgx.CollectableRow) (gate, error) {
	var g gate
	var filledAt, claimedAt, from, since pgtype.Timestamptz
	err := row.Scan(&g.settings.Paused, &g.settings.Rate, &g.settings.Burst, &g.settings.InFlightLimit, &g.version,
		&g.bucket.Tokens, &filledAt, &claimedAt, &from, &g.count.version, &since, &g.now)
	g.bucket.FilledAt, g.stored = timeOf(filledAt), timeOf(claimedAt)
	g.at = g.now
	if next := g.stored.Add(time.Microsecond); next.After(g.at) {
		g.at = next // the clock was set back
	}
	g.count.from, g.count.since = timeOf(from), timeOf(since)
	if g.isNew = g.count.version != g.version; g.isNew {
		g.count = counting{version: g.version, since: g.at}
	}
	return g, err
}

func (g *gate) claim(ctx context.Context, tx pgx.Tx, walk walk, request sluice.ClaimRequest) (out sluice.Claimed, err error) {
	before, bucket := g.count, g.bucket.Filled(g.settings, g.now)
	inFlight, err := g.inFlight(ctx, tx, request.Queue)
	if err != nil {
		return out, err
	}
	room := flow.RoomFor(request.Limit, g.settings, bucket, inFlight)
	var jobs []*sluice.Claim
	if room.Jobs > 0 {
		if jobs, err = walk.claim(ctx, tx, request, room.Jobs, g.at); err != nil {
			return out, err
		}
	}
	if len(jobs) > 0 && g.mustKeep(before) {
		left := g.bucket
		if g.settings.Rate > 0 {
			left = bucket.Take(len(jobs))
		}
		if err := exec(ctx, tx, flowTakeSQL, request.Queue, left.Tokens, nullTime(left.FilledAt), g.at,
			nullTime(g.count.from), g.count.version, g.count.since); err != nil {
			return out, err
		}
	}
	out, err = room.Answer(len(jobs), request.Limit, func() (time.Duration, error) {
		begun := time.Now()
		due, _, err := walk.nextDue(ctx, tx)
		if room.Jobs == 0 && walk.untilFront == 0 {
			walk.marks.walked(walk.queue, time.Since(begun)) // no claim has walked from the front, but this did
		}
		return due, err
	})
	out.Jobs = jobs
	return out, err
}

// mustKeep reports whether the row has to be written. Without a rate that is once a second: each version of
// it is kept by an old transaction, and what it says stays true, because later claims have later instants.
func (g *gate) mustKeep(before counting) bool {
	return g.settings.Rate > 0 || g.isNew || g.at.Sub(g.stored) >= time.Second || g.count.from.Sub(before.from) >= time.Second
}

// inFlight counts what is in flight, as far as the limit, and notes from where it needs to be counted.
func (g *gate) inFlight(ctx context.Context, tx pgx.Tx, queue string) (int, error) {
	if g.settings.InFlightLimit == 0 {
		return 0, nil
	}
	rows, err := query(ctx, tx, inFlightSQL, queue, g.settings.InFlightLimit, nullTime(g.count.from))
	if err != nil {
		return 0, err
	}
	var n int
	var first pgtype.Timestamptz
	_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&n, &first)
	})
	if g.at.Sub(g.count.since) > straggle {
		g.count.from = g.at
		if first.Valid {
			g.count.from = timeOf(first)
		}
	}
	return n, err
}
