package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/tenant_queue_idle.sql
var tenantQueueIdleSQL string

//go:embed sql/tenant_queue_forget.sql
var tenantQueueForgetSQL string

// tenantQueueName identifies a tenant queue.
type tenantQueueName struct{ queue, tenant string }

// tendedTenantQueue is a tenant queue that upkeep evaluates.
type tendedTenantQueue struct {
	flow.TenantQueue
	queue string
	busy  bool // jobs wait in the tenant queue, or are in flight
}

// pruneTenantQueues deletes idle tenant queues in one slice, so that tenant queues of former tenants do not stay for ever.
func (s *Store) pruneTenantQueues(ctx context.Context, limit int) error {
	s.pruning.Lock()
	defer s.pruning.Unlock()
	var next tenantQueueName
	err := s.write(ctx, "prune tenant queues", func(tx runner, _ bool) (err error) {
		if _, err := tx.exec(limitKeysForgetSQL, now(), limit); err != nil {
			return err
		}
		next, err = pruneTenantQueues(tx, s.pruneFrom, limit)
		return err
	})
	if err == nil {
		s.pruneFrom = next
	}
	return err
}

func pruneTenantQueues(tx runner, after tenantQueueName, limit int) (next tenantQueueName, err error) {
	slice, err := list(tx, scanTended, tenantQueueIdleSQL, after.queue, after.tenant, limit)
	if err != nil {
		return after, err
	}
	idle := make(map[string][]*tendedTenantQueue)
	for _, l := range slice {
		if !l.busy {
			idle[l.queue] = append(idle[l.queue], l)
		}
	}
	for queue, lines := range idle {
		if err := forgetTenantQueues(tx, queue, lines); err != nil {
			return after, err
		}
	}
	if len(slice) == limit {
		last := slice[limit-1]
		next = tenantQueueName{last.queue, last.Tenant}
	}
	return next, nil
}

func scanTended(rows *sql.Rows) (*tendedTenantQueue, error) {
	l := &tendedTenantQueue{}
	var wakeAt, filledAt *int64
	err := rows.Scan(&l.queue, &l.Tenant, &l.VirtualStart, &l.Active, &l.Full, &wakeAt, &l.Bucket.Tokens, &filledAt, &l.busy)
	l.WakeAt, l.Bucket.FilledAt = timeOf(wakeAt), timeOf(filledAt)
	return l, err
}

// forgetTenantQueues deletes the tenant queues of a queue that hold no state worth keeping.
func forgetTenantQueues(tx runner, queue string, lines []*tendedTenantQueue) error {
	g, err := gateOf(tx, queue)
	if err != nil {
		return err
	}
	tenants := make([]string, len(lines))
	for i, l := range lines {
		tenants[i] = l.Tenant
	}
	at := now()
	terms, err := termsOf(tx, queue, g.settings, tenants, at)
	if err != nil {
		return err
	}
	for _, l := range lines {
		l.EffectiveLimits = terms[l.Tenant]
		if !l.Spare(g.mark, g.byTenant, time.UnixMicro(at)) {
			continue
		}
		if _, err := tx.exec(tenantQueueForgetSQL, queue, l.Tenant); err != nil {
			return err
		}
	}
	return nil
}
