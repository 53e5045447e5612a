package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
)

// fillTenantQueues reads the tenant changes of a queue, moves jobs into tenant queues, and wakes the tenant queues that
// are due. It reads the first of them along, which saves a wait for an answer where nothing changed.
func (v *serving) fillTenantQueues(ctx context.Context, stray walk, limit int) error {
	s, tx, g := v.store, v.tx, v.gate
	begun := time.Now()
	news := make(map[string]*news)
	changesUntilFront := s.takeChanges(tx, g, stray.queue, tenantChangeTakeSQL, news)
	s.adopt(tx, g, stray, news)
	wakeDue(tx, g, stray)
	if limit > 0 {
		v.readFirst(limit)
	}
	if err := tx.flush(ctx); err != nil {
		return err
	}
	if len(news) > 0 {
		v.ahead = nil
	}
	s.changeCursor.walked(stray.queue, time.Since(begun), changesUntilFront == 0)
	s.lowWater.walked(stray.key, time.Since(begun), stray.untilFront == 0)
	wakeTenantQueues(tx, g, stray.queue, news)
	return nil
}

// news is the changes of a tenant queue.
type news struct {
	jobs  int32
	dueAt time.Time // of the first job that came; zero: none came
	room  bool
	terms bool
}

// arrived records that jobs came.
func (n *news) arrived(jobs int32, dueAt time.Time) {
	n.jobs |= jobs
	if !dueAt.IsZero() && (n.dueAt.IsZero() || dueAt.Before(n.dueAt)) {
		n.dueAt = dueAt
	}
}

// takeChanges reads tenant changes, and returns how long until the next claim reads from the front. 0: this one does.
func (s *Store) takeChanges(tx *pipeline, g *gate, queue, statement string, all map[string]*news) (untilFront time.Duration) {
	from, untilFront := s.changeCursor.start(queue)
	tx.queue(statement, func(rows pgx.Rows) error {
		var tenant string
		var jobs int32
		var dueAt pgtype.Timestamptz
		var room, terms bool
		var at time.Time
		count := 0
		_, err := pgx.ForEachRow(rows, []any{&tenant, &jobs, &dueAt, &room, &terms, &at}, func() error {
			count++
			g.changesTo = latest(g.changesTo, at)
			n := newsOf(all, tenant)
			n.arrived(jobs, timeOf(dueAt))
			n.room, n.terms = n.room || room, n.terms || terms
			return nil
		})
		g.more = g.more || count == maxTenantChanges
		return err
	}, queue, from[0].dueAt, maxTenantChanges)
	return untilFront
}

func newsOf(all map[string]*news, tenant string) *news {
	n := all[tenant]
	if n == nil {
		n = &news{}
		all[tenant] = n
	}
	return n
}

// adopt moves jobs without a tenant queue into the tenant queues.
func (s *Store) adopt(tx *pipeline, g *gate, stray walk, all map[string]*news) {
	order, dueAts, ids := stray.inOrder(sluice.ClaimRequest{}.Priorities())
	tx.queue(tenantQueueAdoptSQL, func(rows pgx.Rows) error {
		var tenant string
		var job adopted
		var id pgtype.UUID
		_, err := pgx.ForEachRow(rows, []any{&tenant, &job.priority, &job.place.dueAt, &id}, func() error {
			newsOf(all, tenant).arrived(1<<job.priority, job.place.dueAt)
			job.place.id = idOf(id)
			g.adopted = append(g.adopted, job)
			s.tenantQueueLowWater.disturb(tenantQueueKey(stray.queue, tenant))
			return nil
		})
		g.more = g.more || len(g.adopted) == maxMoved
		return err
	}, stray.queue, order, dueAts, ids, maxMoved, stray.lead)
}

func wakeTenantQueues(tx *pipeline, g *gate, queue string, all map[string]*news) {
	if len(all) == 0 {
		return
	}
	var tenants []string
	var jobs []int32
	var dueAt []*time.Time
	var room, terms []bool
	for tenant, n := range all {
		tenants, jobs, dueAt = append(tenants, tenant), append(jobs, n.jobs), append(dueAt, nullTime(n.dueAt))
		room, terms = append(room, n.room), append(terms, n.terms)
	}
	tx.queue(tenantQueueWakeSQL, nil, queue, tenants, jobs, dueAt, room, terms, g.now, g.turns.lowWater.Behind())
}

// wakeDue wakes the tenant queues that are due, and records the instant up to which it did.
func wakeDue(tx *pipeline, g *gate, w walk) {
	tx.queue(tenantQueueDueSQL, func(rows pgx.Rows) error {
		var woken int
		var last pgtype.Timestamptz
		_, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, row.Scan(&woken, &last)
		})
		g.turns.wakesFrom = g.now
		if woken == maxMoved {
			g.more = true
			if timeOf(last).Before(g.now) {
				g.turns.wakesFrom = timeOf(last)
			}
		}
		return err
	}, w.queue, g.turns.wakesOn(), g.now.Add(w.lead), g.turns.lowWater.Behind(), maxMoved)
}
