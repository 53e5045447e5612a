package postgres

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/tenant_queue_idle.sql
var tenantQueueIdleSQL string

//go:embed sql/tenant_queue_spare.sql
var tenantQueueSpareSQL string

//go:embed sql/tenant_queue_forget.sql
var tenantQueueForgetSQL string

//go:embed sql/tenant_change_stale.sql
var tenantChangeStaleSQL string

//go:embed sql/tenant_change_left.sql
var tenantChangeLeftSQL string

const (
	// changePatience is how long tenant changes are left to the claims of their queue. A queue has no claims while it is
	// paused or no worker serves it.
	changePatience = 10 * time.Second
	// changeSlices is how many slices of maxTenantChanges upkeep reads from a queue at once.
	changeSlices = 85
	// maxForgotten is how many tenant queues are deleted while claims of their queue wait.
	maxForgotten = 200
)

// repairTenantChanges reads tenant changes that no claim reads.
func (s *Store) repairTenantChanges(ctx context.Context) error {
	queues, err := s.Queues(ctx, sluice.QueueFilter{})
	if err != nil {
		return err
	}
	for _, q := range queues {
		for range changeSlices {
			if more, err := s.takeStaleChanges(ctx, q.Name); err != nil {
				return err
			} else if !more {
				break
			}
		}
	}
	return nil
}

// takeStaleChanges reads some tenant changes of a queue, if they are old.
func (s *Store) takeStaleChanges(ctx context.Context, queue string) (more bool, err error) {
	err = s.call(ctx, "repair tenant changes", func(ctx context.Context, _ bool) error {
		stale, err := s.hasStaleChanges(ctx, queue)
		if err != nil || !stale {
			more = false
			return err
		}
		var locked *gate
		err = s.pipelined(ctx, func(tx *pipeline) error {
			g, busy, err := lockFlow(ctx, tx, queue)
			if err == nil && g == nil && !busy {
				g, err = neverServed(ctx, tx, queue)
			}
			if locked = g; err != nil || g == nil {
				return err
			}
			return s.takeChangesOf(ctx, tx, g, queue)
		})
		if more = false; err == nil && locked != nil {
			more = locked.more
			s.toldUpTo(locked, queue)
		}
		return err
	})
	return more, err
}

// neverServed returns a gate for a queue without limits that no claim has served by tenant queues: its tenant changes are of no use.
// Nil: the queue has just got its row.
func neverServed(ctx context.Context, tx *pipeline, queue string) (*gate, error) {
	there, err := list(ctx, tx, pgx.RowTo[bool], flowThereSQL, queue)
	if err != nil || there[0] {
		return nil, err
	}
	return &gate{}, nil
}

// hasStaleChanges reports whether a queue has tenant changes that claims have left for changePatience. The check has separate
// marks: the marks of claims end at tenant changes that were read, not at tenant changes that were checked.
func (s *Store) hasStaleChanges(ctx context.Context, queue string) (bool, error) {
	begun := time.Now()
	from, untilFront := s.staleCursor.start(queue)
	var stale bool
	var upTo time.Time
	rows, err := query(ctx, s.pool, tenantChangeStaleSQL, queue, from[0].dueAt, changePatience)
	if err != nil {
		return false, err
	}
	_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&stale, &upTo)
	})
	s.staleCursor.walked(queue, time.Since(begun), untilFront == 0)
	if err == nil && !stale {
		s.staleCursor.advance(queue, 1, place{dueAt: upTo}, upTo.Add(lowWaterSlack))
	}
	return stale, err
}

// takeChangesOf reads tenant changes under the lock of a queue's flow, as a claim does. If the tenants no longer take turns,
// the tenant changes only mark the remaining tenant queues for the time when turns return.
func (s *Store) takeChangesOf(ctx context.Context, tx *pipeline, g *gate, queue string) error {
	if g.turns.wakesFrom.After(g.now) {
		return nil // the clock was set back; the next claim records when tenant queues wake
	}
	begun := time.Now()
	statement := tenantChangeTakeSQL
	if !g.byTenant {
		statement = tenantChangeLeftSQL
	}
	told := make(map[string]*news)
	untilFront := s.takeChanges(tx, g, queue, statement, told)
	if err := tx.flush(ctx); err != nil {
		return err
	}
	s.changeCursor.walked(queue, time.Since(begun), untilFront == 0)
	if !g.byTenant {
		for _, n := range told {
			n.jobs, n.dueAt = 0, time.Time{}
		}
	}
	wakeTenantQueues(tx, g, queue, told)
	return nil
}

// toldUpTo moves the marks past the tenant changes that were read. Call it after the commit.
func (s *Store) toldUpTo(g *gate, queue string) {
	if !g.changesTo.IsZero() {
		s.changeCursor.advance(queue, 1, place{dueAt: g.changesTo}, g.now)
	}
}

// idleTenantQueue is a tenant queue that upkeep evaluated.
type idleTenantQueue struct {
	tenantQueueName
	version int64
	idle    bool // no job waits in it, and none is in flight
}

// pruneTenantQueues deletes idle tenant queues in one slice, so that tenant queues of former tenants do not stay for ever.
func (s *Store) pruneTenantQueues(ctx context.Context, limit int) error {
	s.repairing.Lock()
	defer s.repairing.Unlock()
	var slice []idleTenantQueue
	err := s.call(ctx, "prune tenant queues", func(ctx context.Context, _ bool) (err error) {
		slice, err = s.idleTenantQueues(ctx, limit)
		return err
	})
	if err != nil {
		return err
	}
	var failed []error
	for _, lines := range byQueue(slice) {
		for some := range slices.Chunk(lines, maxForgotten) {
			failed = append(failed, s.call(ctx, "prune tenant queues", func(ctx context.Context, _ bool) error {
				return s.forgetTenantQueues(ctx, some)
			}))
		}
	}
	if s.repairFrom.idle = (tenantQueueName{}); len(slice) == limit {
		s.repairFrom.idle = slice[limit-1].tenantQueueName
	}
	return errors.Join(failed...)
}

// idleTenantQueues evaluates a slice of the tenant queues.
func (s *Store) idleTenantQueues(ctx context.Context, limit int) ([]idleTenantQueue, error) {
	queues, err := listQueues(ctx, s.pool, sluice.QueueFilter{})
	if err != nil {
		return nil, err
	}
	inTurns := []string{}
	for _, q := range queues {
		if q.ByTenant {
			inTurns = append(inTurns, q.Name)
		}
	}
	return list(ctx, s.pool, func(row pgx.CollectableRow) (l idleTenantQueue, err error) {
		err = row.Scan(&l.queue, &l.tenant, &l.version, &l.idle)
		return l, err
	}, tenantQueueIdleSQL, s.repairFrom.idle.queue, s.repairFrom.idle.tenant, limit, inTurns)
}

func byQueue(slice []idleTenantQueue) map[string][]idleTenantQueue {
	out := make(map[string][]idleTenantQueue)
	for _, l := range slice {
		if l.idle {
			out[l.queue] = append(out[l.queue], l)
		}
	}
	return out
}

// forgetTenantQueues deletes the tenant queues of one queue that hold no state worth keeping. Each claim that served a tenant queue has
// written its row, and jobs that came since have left tenant changes that make the tenant queue again. If a claim holds the lock,
// the tenant queues wait for the next pass.
func (s *Store) forgetTenantQueues(ctx context.Context, lines []idleTenantQueue) error {
	queue := lines[0].queue
	var tenants []string
	var versions []int64
	for _, l := range lines {
		tenants, versions = append(tenants, l.tenant), append(versions, l.version)
	}
	return s.pipelined(ctx, func(tx *pipeline) error {
		g, _, err := lockFlow(ctx, tx, queue)
		if err != nil || g == nil {
			return err
		}
		places := make(map[*flow.TenantQueue]pgtype.TID)
		found, err := list(ctx, tx, func(row pgx.CollectableRow) (*flow.TenantQueue, error) {
			l, place, err := scanSpare(row)
			places[l] = place
			return l, err
		}, tenantQueueSpareSQL, queue, tenants, versions)
		if err != nil {
			return err
		}
		limits, err := termsOf(ctx, tx, queue, g.settings, tenants, g.now)
		if err != nil {
			return err
		}
		spare := []pgtype.TID{}
		for _, l := range found {
			if l.EffectiveLimits = limits[l.Tenant].EffectiveLimits; l.Spare(g.turns.lowWater, g.byTenant, g.now) {
				spare = append(spare, places[l])
			}
		}
		if len(spare) > 0 {
			tx.queue(tenantQueueForgetSQL, nil, spare)
		}
		return nil
	})
}

func scanSpare(row pgx.CollectableRow) (*flow.TenantQueue, pgtype.TID, error) {
	l := &flow.TenantQueue{}
	var place pgtype.TID
	var wakeAt, filledAt pgtype.Timestamptz
	err := row.Scan(&place, &l.Tenant, &l.VirtualStart, &l.Active, &l.Full, &wakeAt, &l.Bucket.Tokens, &filledAt)
	l.WakeAt, l.Bucket.FilledAt = timeOf(wakeAt), timeOf(filledAt)
	return l, place, err
}
