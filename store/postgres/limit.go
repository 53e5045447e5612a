package postgres

import (
	"context"
	_ "embed"
	"errors"
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

// limits remembers which queues have limits, so that their claims take the right way at once. A wrong entry does no
// harm: each way notices the error and takes the other.
type limits struct{ queues sync.Map }

func (l *limits) known(queue string) bool {
	_, known := l.queues.Load(queue)
	return known
}

func (l *limits) learn(queue string)  { l.queues.Store(queue, true) }
func (l *limits) forget(queue string) { l.queues.Delete(queue) }

// claimLimited claims from a queue with limits, one claim at a time. Jobs in flight are counted under the lock, so
// no other claim can add to them. Jobs that end meanwhile only make more room.
func (s *Store) claimLimited(ctx context.Context, request sluice.ClaimRequest) (out sluice.Claimed, limited bool, err error) {
	walk := s.lowWater.walk(request.Queue, request.ClaimAhead)
	var locked *gate
	answer := func() (sluice.Claimed, error) { return out, nil }
	err = s.pipelined(ctx, func(tx *pipeline) error {
		asked := time.Now()
		gate, busy, err := lockFlow(ctx, tx, request.Queue)
		locked = gate
		if gate != nil {
			gate.reading.Asked, gate.reading.Answered = asked, time.Now()
		}
		if busy {
			out, limited = sluice.Claimed{NextDue: busyWait, Limited: true, Unheard: true}, true
		}
		if err != nil || gate == nil {
			return err
		}
		if !gate.byTenant {
			if err := s.dissolve(ctx, tx, request.Queue); err != nil {
				return err
			}
		}
		if limited = gate.byTenant || flow.Limited(gate.settings); !limited {
			return nil
		}
		if err := request.CheckRunner(gate.engine); err != nil {
			return err
		}
		if gate.settings.Paused {
			out = sluice.Claimed{NextDue: -1}
			return gate.hear(ctx, tx, s, request)
		}
		answer, err = s.claimThrough(ctx, tx, gate, walk, request)
		return err
	})
	if isCode(err, "55P03") { // another claim has held the lock of a shared limit for too long, and this one has changed nothing
		return sluice.Claimed{NextDue: sharedWait, Limited: true, Unheard: true}, true, nil
	}
	if err == nil {
		out, err = answer()
	}
	if err == nil && locked != nil {
		s.advance(locked, walk, out.Jobs)
		if !locked.readAt.IsZero() {
			s.ahead.Answer(&out, locked.readAt, locked.hold)
		}
	}
	return out, limited, err
}

// advance moves the marks past the jobs claimed from a queue or its tenant queues. Call it after the commit.
func (s *Store) advance(g *gate, w walk, jobs []*sluice.Claim) {
	if !g.byTenant {
		w.advance(jobs)
		return
	}
	s.toldUpTo(g, w.queue)
	for _, a := range g.adopted {
		w.passed(a.priority, a.place, g.now)
	}
	for _, j := range jobs {
		s.tenantQueueLowWater.advance(tenantQueueKey(w.queue, j.Tenant), j.Priority, place{j.DueAt, j.ID}, j.ClaimedAt)
	}
}

// gate is the part of a queue's settings and state that decides a claim.
type gate struct {
	settings sluice.Settings // only paused and the limits, including tenants' limits
	version  int64           // of the settings
	changed  time.Time       // time of the last change of the settings
	isNew    bool            // no claim has used this version yet
	bucket   flow.Bucket
	window   flow.Window
	// permitsFrom is before all permits. Zero: unknown.
	permitsFrom time.Time
	wasSet      bool          // the server's clock was set
	reading     flow.Reading  // of the server's clock
	now         time.Time     // by the server's clock
	at          time.Time     // the instant of the claim: now, but later than every earlier claim's
	stored      time.Time     // the instant up to which the row records claims
	readAt      time.Time     // when this process had read the clock of the last limit, by its own clock
	hold        time.Duration // how long after now the claimed jobs may start
	count       counting
	byTenant    bool
	engine      string // runs the queue's jobs
	turns       turns
	shared      []*sharedLimit
	keyed       keyedClaim
	adopted     []adopted
	more        bool      // more jobs wait to enter tenant queues than one claim moves
	changesTo   time.Time // the last tenant change that was read
}

// adopted is a job that entered its tenant queue.
type adopted struct {
	priority int
	place    place
}

// counting is the place from which jobs in flight are counted. An old transaction keeps the index entries of all
// jobs that were claimed since it began; they lie before this place.
type counting struct {
	from    time.Time // nothing in flight was claimed before; zero: unknown
	version int64     // of the settings at the last claim
	since   time.Time // when that version was first seen
}

// straggle is the longest time of a claim that began before it could know of the limits, and so did not wait for
// the lock. Until that time has passed, all jobs in flight are counted.
const straggle = time.Minute

// busyWait is when to claim again from a queue whose lock another claim holds. No claim waits for the lock: the
// process that holds it may be frozen, and the worker has other queues to claim from.
const busyWait = 10 * time.Millisecond

// lockFlow locks the row of a queue's limits. If busy is set, another claim holds the lock. Without both, the queue
// has no limits.
func lockFlow(ctx context.Context, tx *pipeline, queue string) (locked *gate, busy bool, err error) {
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

// tryFlow locks the row of a queue's limits. Nil: no row could be locked.
func tryFlow(ctx context.Context, tx *pipeline, queue string) (*gate, error) {
	gates, err := list(ctx, tx, scanGate, flowLockSQL, queue)
	if err != nil || len(gates) == 0 {
		return nil, err
	}
	return &gates[0], nil
}

func scanGate(row pgx.CollectableRow) (gate, error) {
	var g gate
	var rate, tenantRate float64
	var ratePer, tenantRatePer, ahead int64
	var filledAt, claimedAt, from, since, wakesFrom, turnsSince, changedAt, permitsFrom pgtype.Timestamptz
	err := row.Scan(&g.settings.Paused, &rate, &ratePer, &g.settings.Burst, &g.settings.Concurrency, &g.version,
		&g.bucket.Tokens, &filledAt, &claimedAt, &from, &g.count.version, &since, &g.now,
		&g.settings.TenantConcurrency, &tenantRate, &tenantRatePer, &g.settings.TenantBurst, &g.byTenant,
		&g.turns.lowWater.VirtualStart, &g.turns.lowWater.Tenant, &wakesFrom, &turnsSince, &changedAt, &g.engine, &permitsFrom, &ahead, &g.settings.Limits)
	g.settings.Rate, g.settings.TenantRate = sluice.StoredRate(rate, ratePer), sluice.StoredRate(tenantRate, tenantRatePer)
	g.turns.wakesFrom, g.changed = timeOf(wakesFrom), timeOf(changedAt)
	g.permitsFrom = timeOf(permitsFrom)
	g.reading = flow.Reading{StoreTime: g.now, Ahead: time.Duration(ahead) * time.Microsecond}
	if g.byTenant {
		g.turns.since = timeOf(turnsSince)
	}
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

// claimThrough claims the jobs that the limits allow, and stores the remaining rate and turns. Answer gives the answer
// once the statements of tx are sent.
func (s *Store) claimThrough(ctx context.Context, tx *pipeline, g *gate, walk walk, request sluice.ClaimRequest) (answer func() (sluice.Claimed, error), err error) {
	before := *g
	if request.Limit == 0 {
		return func() (sluice.Claimed, error) { return sluice.Claimed{NextDue: -1}, nil }, g.hear(ctx, tx, s, request)
	}
	if err := errors.Join(g.readWindow(ctx, tx, s, request), g.readShared(ctx, tx, s, request)); err != nil {
		return nil, err
	}
	g.readAt = time.Now()
	for _, l := range g.shared { // for whose locks the claim may have waited
		if l.now.After(g.at) {
			g.at = l.now
		}
	}
	bucket := g.bucket.Filled(g.settings, g.now)
	inFlight, err := g.inFlight(ctx, tx, request.Queue)
	if err != nil {
		return nil, err
	}
	ahead := s.ahead.Of(request)
	room, err := g.sharedRoom(ctx, tx, flow.RoomWithin(request.Limit, g.settings, bucket, &g.window, g.now, inFlight, ahead), request.Limit, ahead)
	if err != nil {
		return nil, err
	}
	if g.addKeyed(); len(g.keyed.names) > 0 && room.Jobs > 0 {
		if walk, err = s.letIn(ctx, tx, g, walk, request); err != nil {
			return nil, err
		}
	}
	jobs, err := s.claimRoom(ctx, tx, g, walk, request, room.Jobs)
	if err != nil {
		return nil, err
	}
	g.hold = g.untilFree(bucket, len(jobs))
	if !g.settings.Rate.IsZero() && len(jobs) > 0 {
		g.bucket = bucket.Take(len(jobs))
		g.takeFromWindow(tx, request, len(jobs))
	}
	if g.keyed.stopped {
		room = flow.Room{Jobs: len(jobs), Wait: g.keyed.wait, Full: g.keyed.wait == 0}
	}
	paced := g.takeShared(tx, request, len(jobs)) || !g.settings.Rate.IsZero()
	if g.mustKeep(before, len(jobs)) {
		g.keep(tx, request.Queue)
	}
	short, letIn, due := len(jobs) < request.Limit, time.Duration(-1), time.Duration(-1)
	if short {
		if letIn, err = g.untilLetIn(ctx, tx, request.Queue); err != nil {
			return nil, err
		}
	}
	if len(jobs) == 0 || g.byTenant && short {
		if err := g.lookAhead(ctx, tx, walk, room.Jobs == 0, &due); err != nil {
			return nil, err
		}
	}
	return func() (sluice.Claimed, error) {
		out, err := g.answer(room, jobs, request.Limit, due, letIn)
		out.Paced = paced
		return out, err
	}, nil
}

// answer returns the answer to a claim that asked for limit jobs. Other jobs are due and parked jobs get in after a
// time; negative: never.
func (g *gate) answer(room flow.Room, jobs []*sluice.Claim, limit int, due, letIn time.Duration) (sluice.Claimed, error) {
	out, err := room.Answer(len(jobs), limit, func() (time.Duration, error) { return sooner(due, letIn), nil })
	short := len(jobs) < limit
	if g.byTenant && !out.Limited && short {
		out.Full = true
		if len(jobs) > 0 {
			out.NextDue = due
		}
	}
	if letIn >= 0 && !out.Limited {
		out.Full, out.NextDue = true, sooner(out.NextDue, letIn)
	}
	out.Jobs = jobs
	return out, err
}

// untilFree returns how long until the queue's rate, and those of the limits that it shares, let this many jobs start.
func (g *gate) untilFree(bucket flow.Bucket, jobs int) time.Duration {
	free := g.window.UntilFree(jobs, g.settings, bucket, g.now)
	for _, l := range g.shared {
		free = max(free, l.window.UntilFree(jobs, l.settings, l.bucket.Filled(l.settings, l.now), l.now))
	}
	return free
}

// claimRoom claims as many jobs as there is room for.
func (s *Store) claimRoom(ctx context.Context, tx *pipeline, g *gate, walk walk, request sluice.ClaimRequest, room int) ([]*sluice.Claim, error) {
	switch {
	case g.byTenant:
		return s.serve(ctx, tx, g, walk, request, room)
	case room > 0 && len(g.keyed.names) > 0:
		return s.claimKeyed(ctx, tx, g, walk, request, room)
	case room > 0:
		return s.claimAlong(ctx, tx, walk, request, room, g.at)
	}
	return nil, nil
}

// lookAhead asks how long until a job may be claimed. The answer is in due once the statements of tx are sent: with
// its commit, unless unwalked is set. Unwalked means that no claim has walked from the front yet, and that this look may.
func (g *gate) lookAhead(ctx context.Context, tx *pipeline, walk walk, unwalked bool, due *time.Duration) error {
	begun := time.Now()
	tx.queue(nextDueSQL, func(rows pgx.Rows) (err error) {
		*due, _, _, err = walk.readNextDue(rows)
		return err
	}, walk.nextDueArguments()...)
	if g.byTenant {
		g.lookAtTenantQueues(tx, walk, !unwalked, due)
	}
	if !unwalked {
		return nil
	}
	err := tx.flush(ctx)
	walk.lowWater.walked(walk.key, time.Since(begun), walk.untilFront == 0)
	return err
}

// mustKeep reports whether the row must be written. Without a rate or turns, once a second is enough, because an
// old transaction keeps each version of the row. The old contents stay true: later claims have later instants, and
// the cursors of turns only move on.
func (g *gate) mustKeep(before gate, claimed int) bool {
	setBack := g.turns.wakesFrom.Before(before.turns.wakesFrom) // the clock was set back: tenant queues sleep until earlier instants
	if g.wasSet || g.turns.lowWater != before.turns.lowWater || g.turns.since != before.turns.since || setBack {
		return true
	}
	return claimed > 0 && (!g.settings.Rate.IsZero() || g.isNew || g.at.Sub(g.stored) >= time.Second ||
		g.count.from.Sub(before.count.from) >= time.Second)
}

func (g *gate) keep(tx *pipeline, queue string) {
	tx.queue(flowTakeSQL, nil, queue, g.bucket.Tokens, nullTime(g.bucket.FilledAt), g.at, nullTime(g.count.from), g.count.version,
		g.count.since, g.turns.lowWater.VirtualStart, g.turns.lowWater.Tenant, nullTime(g.turns.wakesFrom), nullTime(g.turns.since), nullTime(g.permitsFrom),
		g.reading.Ahead.Microseconds())
}

// inFlight counts the jobs in flight up to the limit, and notes the place from which to count.
func (g *gate) inFlight(ctx context.Context, tx *pipeline, queue string) (int, error) {
	if g.settings.Concurrency == 0 {
		return 0, nil
	}
	rows, err := query(ctx, tx, inFlightSQL, queue, g.settings.Concurrency, nullTime(g.count.from))
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
