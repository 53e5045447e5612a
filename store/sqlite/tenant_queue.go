package sqlite

import (
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/tenancy"
)

//go:embed sql/tenant_queue_adopt.sql
var tenantQueueAdoptSQL string

//go:embed sql/tenant_queue_dissolve.sql
var tenantQueueDissolveSQL string

//go:embed sql/tenant_queue_wake.sql
var tenantQueueWakeSQL string

//go:embed sql/tenant_queue_first.sql
var tenantQueueFirstSQL string

//go:embed sql/tenant_queue_limits.sql
var tenantQueueLimitsSQL string

//go:embed sql/tenant_queue_held.sql
var tenantQueueHeldSQL string

//go:embed sql/tenant_queue_find.sql
var tenantQueueFindSQL string

//go:embed sql/tenant_queue_due.sql
var tenantQueueDueSQL string

//go:embed sql/tenant_queue_keep.sql
var tenantQueueKeepSQL string

//go:embed sql/tenant_queue_low_water.sql
var tenantQueueLowWaterSQL string

//go:embed sql/tenant_queue_next.sql
var tenantQueueNextSQL string

// maxMoved is how many waiting jobs one claim moves into or out of tenant queues after the queue's settings
// have changed.
const maxMoved = 1000

// serving is one claim from the tenant queues of a queue, whose tenants take turns. [flow.Serve] calls its
// methods.
type serving struct {
	tx      runner
	queue   *gate
	request sluice.ClaimRequest
	at      int64
	seqs    []int64 // claimed so far
}

// serve claims up to limit jobs from the tenant queues of a queue.
func (g *gate) serve(tx runner, request sluice.ClaimRequest, limit int, at int64) ([]int64, error) {
	moved, err := affected(tx.exec(tenantQueueAdoptSQL, request.Queue, maxMoved))
	if err != nil {
		return nil, err
	}
	g.moreToMove = moved == maxMoved
	if _, err := tx.exec(tenantQueueWakeSQL, request.Queue, at+request.ClaimAhead.Microseconds(), g.mark.Behind()); err != nil {
		return nil, err
	}
	v := &serving{tx: tx, queue: g, request: request, at: at}
	mark, err := flow.Serve(limit, g.mark, time.UnixMicro(at), request.ClaimAhead, &flow.Width{}, v)
	if err != nil || mark == g.mark {
		return v.seqs, err
	}
	_, err = tx.exec(tenantQueueLowWaterSQL, request.Queue, mark.VirtualStart, mark.Tenant)
	return v.seqs, err
}

// First returns the first active tenant queues, with their limits and their jobs in flight.
func (v *serving) First(mark flow.LowWater, limit int) ([]*flow.TenantQueue, error) {
	lines, err := list(v.tx, func(rows *sql.Rows) (*flow.TenantQueue, error) {
		l := &flow.TenantQueue{Active: true}
		var filledAt *int64
		err := rows.Scan(&l.Tenant, &l.VirtualStart, &l.Jobs, &l.Bucket.Tokens, &filledAt)
		l.Bucket.FilledAt = timeOf(filledAt)
		return l, err
	}, tenantQueueFirstSQL, v.request.Queue, mark.VirtualStart, mark.Tenant, limit)
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	tenants := make([]string, len(lines))
	for i, l := range lines {
		tenants[i] = l.Tenant
	}
	terms, err := termsOf(v.tx, v.request.Queue, v.queue.settings, tenants, v.at)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		l.EffectiveLimits = terms[l.Tenant]
	}
	return lines, v.count(lines)
}

// termsOf returns the limits in effect of tenants.
func termsOf(tx runner, queue string, s sluice.Settings, tenants []string, at int64) (map[string]sluice.EffectiveLimits, error) {
	names, err := jsonOf(tenants)
	if err != nil {
		return nil, err
	}
	nearest := make(map[string][]tenancy.Limits)
	_, err = list(tx, func(rows *sql.Rows) (struct{}, error) {
		var tenant string
		limits, err := scanLimits(rows, &tenant)
		nearest[tenant] = append(nearest[tenant], limits)
		return struct{}{}, err
	}, tenantQueueLimitsSQL, queue, names)
	if err != nil {
		return nil, err
	}
	terms := make(map[string]sluice.EffectiveLimits, len(tenants))
	for _, tenant := range tenants {
		terms[tenant] = flow.EffectiveLimitsOf(tenant, s, time.UnixMicro(at), nearest[tenant]...)
	}
	return terms, nil
}

// count counts the jobs in flight of tenants with a concurrency limit, up to that limit.
func (v *serving) count(lines []*flow.TenantQueue) error {
	var tenants []string
	most := 0
	for _, l := range lines {
		if l.EffectiveLimits.Concurrency > 0 {
			tenants, most = append(tenants, l.Tenant), max(most, l.EffectiveLimits.Concurrency)
		}
	}
	if len(tenants) == 0 {
		return nil
	}
	names, err := jsonOf(tenants)
	if err != nil {
		return err
	}
	held := make(map[string]int, len(tenants))
	_, err = list(v.tx, func(rows *sql.Rows) (struct{}, error) {
		var tenant string
		var n int
		err := rows.Scan(&tenant, &n)
		held[tenant] = n
		return struct{}{}, err
	}, tenantQueueHeldSQL, v.request.Queue, names, most)
	for _, l := range lines {
		l.Held = held[l.Tenant]
	}
	return err
}

// Claim marks each tenant queue's share as claimed.
func (v *serving) Claim(lines []*flow.TenantQueue) error {
	var taken []int64
	for _, l := range lines {
		for _, priority := range v.request.Priorities() {
			if l.Got == l.Share || v.queue.keyed.stopped != nil {
				break
			}
			if l.Jobs&(1<<priority) == 0 {
				continue
			}
			found, err := list(v.tx, scanOne[int64], tenantQueueFindSQL, v.request.Queue, l.Tenant, priority, v.at, l.Share-l.Got, v.at+v.request.ClaimAhead.Microseconds())
			if err != nil {
				return err
			}
			if found, err = v.queue.admit(v.tx, v.request.Queue, found, v.at); err != nil {
				return err
			}
			l.Got += len(found)
			taken = append(taken, found...)
		}
	}
	v.seqs = append(v.seqs, taken...)
	return v.queue.claimSeqs(v.tx, v.request, v.at, taken)
}

// Look reads which jobs remain in tenant queues.
func (v *serving) Look(lines []*flow.TenantQueue) error {
	for _, l := range lines {
		l.NextDue = time.Time{}
		for priority := 1; priority <= 10; priority++ {
			if l.Jobs&(1<<priority) == 0 {
				continue
			}
			due, err := list(v.tx, scanOne[int64], tenantQueueDueSQL, v.request.Queue, l.Tenant, priority, v.at)
			if err != nil {
				return err
			}
			if len(due) == 0 {
				l.Jobs &^= 1 << priority
			} else if first := time.UnixMicro(due[0]); l.NextDue.IsZero() || first.Before(l.NextDue) {
				l.NextDue = first
			}
		}
	}
	return nil
}

// Keep stores tenant queues after they were served.
func (v *serving) Keep(lines []*flow.TenantQueue) error {
	for _, l := range lines {
		_, err := v.tx.exec(tenantQueueKeepSQL, v.request.Queue, l.Tenant, l.VirtualStart, l.Jobs, l.Active, l.Full, micros(l.WakeAt),
			l.Bucket.Tokens, micros(l.Bucket.FilledAt))
		if err != nil {
			return err
		}
	}
	return nil
}

// tenantQueuesNext returns how long until a claim may find jobs in a tenant queue of a queue, and whether a tenant queue
// waits for its tenant's limit.
func (g *gate) tenantQueuesNext(tx runner, request sluice.ClaimRequest, at int64, served bool) (wait time.Duration, full bool, err error) {
	wait = -1
	_, err = list(tx, func(rows *sql.Rows) (struct{}, error) {
		var wakeAt *int64
		err := rows.Scan(&wakeAt, &full)
		if wakeAt != nil {
			wait = flow.UntilWake(time.Duration(*wakeAt-at)*time.Microsecond, request.ClaimAhead, served)
		}
		return struct{}{}, err
	}, tenantQueueNextSQL, request.Queue)
	if g.moreToMove {
		wait = 0
	}
	return wait, full, err
}
