package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/tenancy"
)

//go:embed sql/tenant_change_take.sql
var tenantChangeTakeSQL string

//go:embed sql/tenant_queue_adopt.sql
var tenantQueueAdoptSQL string

//go:embed sql/tenant_queue_dissolve.sql
var tenantQueueDissolveSQL string

//go:embed sql/tenant_queue_due.sql
var tenantQueueDueSQL string

//go:embed sql/tenant_queue_wake.sql
var tenantQueueWakeSQL string

//go:embed sql/tenant_queue_first.sql
var tenantQueueFirstSQL string

//go:embed sql/tenant_queue_limits.sql
var tenantQueueLimitsSQL string

//go:embed sql/tenant_queue_held.sql
var tenantQueueHeldSQL string

//go:embed sql/tenant_queue_claim.sql
var tenantQueueClaimFile string

var tenantQueueClaimSQL = jobColumns.In(tenantQueueClaimFile)

//go:embed sql/tenant_queue_look.sql
var tenantQueueLookSQL string

//go:embed sql/tenant_queue_keep.sql
var tenantQueueKeepSQL string

//go:embed sql/tenant_queue_next.sql
var tenantQueueNextSQL string

const (
	// maxMoved is how many jobs one claim moves into tenant queues before it serves, and how many tenant queues it wakes.
	maxMoved = 1000
	// maxTenantChanges is how many tenant changes one claim reads. Most changes of tenants that are new make a tenant queue,
	// some 10 us each: 1,500 at once took claims to 21 ms, 600 to 15.
	maxTenantChanges = 600
)

// turns is the state of the turns of a queue's tenants.
type turns struct {
	lowWater  flow.LowWater
	wakesFrom time.Time // no tenant queue sleeps until an earlier instant
	since     time.Time // when turns began; zero: there are none
}

// wakesOn is the instant from which to look for tenant queues that wake.
func (t turns) wakesOn() time.Time {
	if t.wakesFrom.IsZero() {
		return front.dueAt
	}
	return t.wakesFrom
}

// tenantQueueKey names the marks of a tenant queue.
func tenantQueueKey(queue, tenant string) string { return queue + "\x00" + tenant }

// serving is one claim from the tenant queues of a queue, under the lock of its flow.
type serving struct {
	store   *Store
	tx      *pipeline
	gate    *gate
	request sluice.ClaimRequest
	lines   map[*flow.TenantQueue]*tenantQueueRow
	jobs    []*sluice.Claim
	ahead   *readAhead // nil: not read, used, or out of date
}

// readAhead is the first tenant queues, which were read together with the tenant changes.
type readAhead struct {
	lowWater flow.LowWater
	limit    int
	lines    []*flow.TenantQueue
}

// tenantQueueRow is the store's data of a tenant queue beside the tenant queue itself.
type tenantQueueRow struct {
	place       pgtype.TID
	countedFrom time.Time
	changed     time.Time // when the limits in effect were last changed
	untold      bool      // the end of a job in flight will leave no tenant change
	walk        walk
}

// serve claims up to limit jobs from the tenant queues of a queue.
func (s *Store) serve(ctx context.Context, tx *pipeline, g *gate, stray walk, request sluice.ClaimRequest, limit int) ([]*sluice.Claim, error) {
	if g.turns.since.IsZero() {
		g.turns.since = g.at
	}
	v := &serving{store: s, tx: tx, gate: g, request: request, lines: make(map[*flow.TenantQueue]*tenantQueueRow)}
	stored, _ := s.widths.LoadOrStore(request.Queue, &flow.Width{})
	width := stored.(*flow.Width)
	if err := v.fillTenantQueues(ctx, stray, width.Lines(limit)); err != nil {
		return nil, err
	}
	var err error
	g.turns.lowWater, err = flow.Serve(limit, g.turns.lowWater, g.now, request.ClaimAhead, width, contextual{v, ctx})
	return v.jobs, err
}

// readFirst reads the first tenant queues along with the next statements.
func (v *serving) readFirst(limit int) {
	v.ahead = &readAhead{lowWater: v.gate.turns.lowWater, limit: limit}
	v.tx.queue(tenantQueueFirstSQL, func(rows pgx.Rows) (err error) {
		v.ahead.lines, err = pgx.CollectRows(rows, v.scanTenantQueue)
		return err
	}, v.firstArguments(v.ahead.lowWater, limit)...)
}

// first returns the first tenant queues from a mark on.
func (v *serving) first(ctx context.Context, lowWater flow.LowWater, limit int) (lines []*flow.TenantQueue, err error) {
	ahead := v.ahead
	v.ahead = nil
	if ahead != nil && ahead.lowWater == lowWater && ahead.limit == limit {
		lines = ahead.lines
	} else {
		clear(v.lines)
		lines, err = list(ctx, v.tx, v.scanTenantQueue, tenantQueueFirstSQL, v.firstArguments(lowWater, limit)...)
	}
	for _, l := range lines {
		v.lines[l].walk = v.store.tenantQueueLowWater.walk(tenantQueueKey(v.request.Queue, l.Tenant), 0)
	}
	return lines, err
}

func (v *serving) firstArguments(lowWater flow.LowWater, limit int) []any {
	return []any{v.request.Queue, lowWater.VirtualStart, lowWater.Tenant, limit}
}

// contextual adds a context to a serving, because the methods that [flow.Serve] calls take none.
type contextual struct {
	*serving
	ctx context.Context
}

// First returns the first active tenant queues, with their limits and their jobs in flight.
func (v contextual) First(lowWater flow.LowWater, limit int) ([]*flow.TenantQueue, error) {
	lines, err := v.first(v.ctx, lowWater, limit)
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	tenants := make([]string, len(lines))
	for i, l := range lines {
		tenants[i] = l.Tenant
	}
	terms, err := termsOf(v.ctx, v.tx, v.request.Queue, v.gate.settings, tenants, v.gate.now)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		l.EffectiveLimits, v.lines[l].changed = terms[l.Tenant].EffectiveLimits, terms[l.Tenant].changed
	}
	return lines, v.count(lines)
}

func (v *serving) scanTenantQueue(row pgx.CollectableRow) (*flow.TenantQueue, error) {
	l, kept := &flow.TenantQueue{Active: true}, &tenantQueueRow{}
	var filledAt, countedFrom pgtype.Timestamptz
	err := row.Scan(&kept.place, &l.Tenant, &l.VirtualStart, &l.Jobs, &l.Bucket.Tokens, &filledAt, &countedFrom)
	l.Bucket.FilledAt, kept.countedFrom = timeOf(filledAt), timeOf(countedFrom)
	v.lines[l] = kept
	return l, err
}

// terms are a tenant's limits in effect, and the time of their last change.
type terms struct {
	sluice.EffectiveLimits
	changed time.Time
}

// termsOf returns the limits in effect of tenants.
func termsOf(ctx context.Context, db rowsQuerier, queue string, s sluice.Settings, tenants []string, now time.Time) (map[string]terms, error) {
	nearest := make(map[string][]tenancy.Limits)
	_, err := list(ctx, db, func(row pgx.CollectableRow) (struct{}, error) {
		var tenant string
		limits, err := scanLimits(row, &tenant)
		nearest[tenant] = append(nearest[tenant], limits)
		return struct{}{}, err
	}, tenantQueueLimitsSQL, queue, tenants)
	if err != nil {
		return nil, err
	}
	all := make(map[string]terms, len(tenants))
	for _, tenant := range tenants {
		t := terms{EffectiveLimits: flow.EffectiveLimitsOf(tenant, s, now, nearest[tenant]...)}
		for _, l := range nearest[tenant] {
			t.changed = latest(t.changed, l.ChangedAt)
		}
		all[tenant] = t
	}
	return all, nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// count counts the jobs in flight of tenants with a concurrency limit, up to that limit, and notes the place from
// which to count.
func (v contextual) count(lines []*flow.TenantQueue) error {
	limited := make(map[string]*flow.TenantQueue)
	var tenants []string
	var most []int32
	var from []*time.Time
	for _, l := range lines {
		if l.EffectiveLimits.Concurrency > 0 {
			limited[l.Tenant] = l
			tenants, most = append(tenants, l.Tenant), append(most, int32(l.EffectiveLimits.Concurrency))
			from = append(from, nullTime(v.lines[l].countedFrom))
		}
	}
	if len(tenants) == 0 {
		return nil
	}
	rows, err := query(v.ctx, v.tx, tenantQueueHeldSQL, v.request.Queue, tenants, most, from)
	if err != nil {
		return err
	}
	toldApart := latest(v.gate.turns.since, v.gate.changed)
	var tenant string
	var held int
	var first pgtype.Timestamptz
	var untold bool
	_, err = pgx.ForEachRow(rows, []any{&tenant, &held, &first, &untold}, func() error {
		l := limited[tenant]
		kept := v.lines[l]
		l.Held, kept.untold = held, untold
		if v.gate.at.Sub(latest(toldApart, kept.changed)) > straggle {
			// Not this claim's instant: the next claim's is later than the stored one. If the clock is set back, it
			// may be earlier than this one's.
			kept.countedFrom = v.gate.stored
			if first.Valid && timeOf(first).Before(kept.countedFrom) {
				kept.countedFrom = timeOf(first)
			}
		}
		return nil
	})
	return err
}

// arguments returns tenant queues as the statements take them.
func (v *serving) arguments(lines []*flow.TenantQueue) (tenants []string, shares, jobs []int32, dueAts []time.Time, ids uuidArray) {
	for _, l := range lines {
		tenants, shares, jobs = append(tenants, l.Tenant), append(shares, int32(l.Share)), append(jobs, int32(l.Jobs))
		walk := v.lines[l].walk
		dueAts, ids = append(dueAts, walk.dueAts...), append(ids, walk.ids...)
	}
	return tenants, shares, jobs, dueAts, ids
}

// Claim claims each tenant queue's share. Nothing overtakes a job that a limit by cost keeps out.
func (v contextual) Claim(lines []*flow.TenantQueue) error {
	if v.gate.keyed.stopped {
		return nil
	}
	begun := time.Now()
	tenants, shares, waiting, dueAts, ids := v.arguments(lines)
	var order []int16
	for _, priority := range v.request.Priorities() {
		order = append(order, int16(priority))
	}
	jobs, err := v.take(lines, tenants, shares, waiting, dueAts, ids, order)
	v.walked(lines, time.Since(begun))
	if err != nil {
		return err
	}
	v.jobs = append(v.jobs, jobs...)
	got := make(map[string]int, len(lines))
	for _, j := range jobs {
		got[j.Tenant]++
	}
	for _, l := range lines {
		l.Got = got[l.Tenant]
	}
	return nil
}

// nearLimit returns the tenants that will have at least half of their limit in flight. The ends of their jobs
// leave tenant changes, because they may make room.
func nearLimit(lines []*flow.TenantQueue) []string {
	near := []string{}
	for _, l := range lines {
		if l.EffectiveLimits.Concurrency > 0 && 2*(l.Held+l.Share) >= l.EffectiveLimits.Concurrency {
			near = append(near, l.Tenant)
		}
	}
	return near
}

// walked records how long a walk along tenant queues took.
func (v *serving) walked(lines []*flow.TenantQueue, cost time.Duration) {
	for _, l := range lines {
		walk := v.lines[l].walk
		v.store.tenantQueueLowWater.walked(walk.queue, cost, walk.untilFront == 0)
	}
}

// Look reads which jobs remain in tenant queues, but not behind a mark. A tenant queue with a mark wakes soon.
func (v contextual) Look(lines []*flow.TenantQueue) error {
	tenants, _, waiting, dueAts, ids := v.arguments(lines)
	for _, l := range lines {
		l.Jobs, l.NextDue = 0, time.Time{}
	}
	rows, err := query(v.ctx, v.tx, tenantQueueLookSQL, v.request.Queue, tenants, waiting, dueAts, ids)
	if err != nil {
		return err
	}
	var no, priority int
	var due time.Time
	_, err = pgx.ForEachRow(rows, []any{&no, &priority, &due}, func() error {
		l := lines[no-1]
		l.Jobs |= 1 << priority
		if l.NextDue.IsZero() || due.Before(l.NextDue) {
			l.NextDue = due
		}
		return nil
	})
	for i, l := range lines {
		if wait := v.lines[l].walk.untilFront; wait > 0 {
			l.Jobs = uint16(waiting[i])
			if front := v.gate.now.Add(wait); l.NextDue.IsZero() || front.Before(l.NextDue) {
				l.NextDue = front
			}
		}
	}
	return err
}

// untoldWait is when to look again at a full tenant queue if some jobs in flight will leave no tenant change when they end.
const untoldWait = time.Second

// Keep stores tenant queues after they were served.
func (v contextual) Keep(lines []*flow.TenantQueue) error {
	var places []pgtype.TID
	var turn, tokens []float64
	var jobs []int32
	var active, atCapacity []bool
	var wakeAt, filledAt, countedFrom []*time.Time
	for _, l := range lines {
		kept := v.lines[l]
		if l.Full && kept.untold {
			l.WakeAt = v.gate.now.Add(untoldWait)
		}
		places, turn, tokens, jobs = append(places, kept.place), append(turn, l.VirtualStart), append(tokens, l.Bucket.Tokens), append(jobs, int32(l.Jobs))
		active, atCapacity = append(active, l.Active), append(atCapacity, l.Full)
		wakeAt, filledAt = append(wakeAt, nullTime(l.WakeAt)), append(filledAt, nullTime(l.Bucket.FilledAt))
		countedFrom = append(countedFrom, nullTime(kept.countedFrom))
	}
	v.tx.queue(tenantQueueKeepSQL, nil, places, turn, jobs, active, atCapacity, wakeAt, tokens, filledAt, countedFrom)
	return nil
}

// lookAtTenantQueues asks how long until a claim may find jobs in a tenant queue of the queue, and shortens due to it.
func (g *gate) lookAtTenantQueues(tx *pipeline, w walk, served bool, due *time.Duration) {
	tx.queue(tenantQueueNextSQL, func(rows pgx.Rows) error {
		var awake bool
		var wakeAt pgtype.Timestamptz
		var now time.Time
		_, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, row.Scan(&awake, &wakeAt, &now)
		})
		switch {
		case err != nil:
			return err
		case awake || g.more:
			*due = 0
		case wakeAt.Valid: // otherwise no tenant queue wakes by itself
			*due = sooner(*due, flow.UntilWake(timeOf(wakeAt).Sub(now), w.lead, served))
		}
		return nil
	}, w.queue, g.turns.lowWater.VirtualStart, g.turns.lowWater.Tenant, g.turns.wakesOn())
}

// sooner returns the shorter of two waits. A negative wait has no end.
func sooner(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// dissolve moves jobs out of the tenant queues of a queue that no longer serves its tenants in turns.
func (s *Store) dissolve(ctx context.Context, db rowsQuerier, queue string) error {
	moved, err := list(ctx, db, pgx.RowTo[pgtype.UUID], tenantQueueDissolveSQL, queue, maxMoved)
	if len(moved) > 0 {
		s.lowWater.disturb(queue)
	}
	return err
}
