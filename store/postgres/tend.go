package postgres

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/late.sql
var lateSQL string

//go:embed sql/expired.sql
var expiredSQL string

//go:embed sql/repair_blocked.sql
var repairBlockedSQL string

//go:embed sql/repair_tenant_queues.sql
var repairTenantQueuesSQL string

//go:embed sql/repair_queues.sql
var repairQueuesSQL string

//go:embed sql/forget_holders.sql
var forgetHoldersSQL string

// lateClaim is a claim whose lease has ended.
type lateClaim struct {
	id         sluice.ID
	token      sluice.Token
	holder     string
	recoveries int // including this one
	poison     bool
}

func scanLate(row pgx.CollectableRow) (lateClaim, error) {
	var late lateClaim
	var id, token pgtype.UUID
	var holder *string
	err := row.Scan(&id, &token, &holder, &late.recoveries, &late.poison)
	late.id, late.token, late.holder = idOf(id), token.Bytes, orZero(holder)
	return late, err
}

// Recover requeues jobs whose lease has ended, or buries them as poison. Each write shows the token that was read,
// so a holder that settles at the same moment wins. If the server's clock was just set forward, Recover does
// nothing: healthy holders renew their leases first.
func (s *Store) Recover(ctx context.Context, queue string, limit int, by string) (sluice.Recovered, error) {
	var out sluice.Recovered
	err := s.call(ctx, "recover", func(ctx context.Context, _ bool) error {
		late, err := list(ctx, s.pool, scanLate, lateSQL, queue, limit, sluice.DefaultSettings().MaxRecoveries)
		if err != nil {
			return err
		}
		if set, err := s.clock.look(ctx, s.pool, len(late) > 0); err != nil || set || len(late) == 0 {
			return err
		}
		slices.SortFunc(late, func(a, b lateClaim) int { return bytes.Compare(a.id[:], b.id[:]) })
		back, end, err := s.recover(ctx, late, by)
		out.Requeued += back
		out.Buried += end
		return err
	})
	s.tally.Recovered(queue, out) // also of tries that failed midway
	return out, err
}

func (s *Store) recover(ctx context.Context, late []lateClaim, by string) (requeued, buried int, err error) {
	again := handBack{event: sluice.EventRecover, counts: "recovery", late: true}
	poison := ending{event: sluice.EventBury, counts: "recovery", late: true}
	for _, l := range late {
		if l.poison {
			text := storing.PoisonError(l.recoveries)
			poison.ids, poison.tokens = append(poison.ids, l.id), append(poison.tokens, l.token)
			poison.errors = append(poison.errors, &text)
			poison.reasons, poison.actors = append(poison.reasons, "recoveries spent"), append(poison.actors, by)
			continue
		}
		again.ids, again.tokens = append(again.ids, l.id), append(again.tokens, l.token)
		again.reasons, again.actors = append(again.reasons, "the lease of "+l.holder+" ran out"), append(again.actors, by)
	}
	rows, err := back(ctx, s.pool, again)
	if err != nil {
		return 0, 0, err
	}
	s.signalMoved(again.event, rows)
	out, err := end(ctx, s.pool, poison)
	s.signalMoved(poison.event, out.rows)
	s.unblock(ctx, out.awaited)
	return len(rows), len(movedIDs(out.rows)), err
}

// Expire cancels queued jobs whose expires_at has passed.
func (s *Store) Expire(ctx context.Context, limit int, by string) (int, error) {
	expired := 0
	err := s.call(ctx, "expire", func(ctx context.Context, _ bool) error {
		found, err := list(ctx, s.pool, pgx.RowTo[pgtype.UUID], expiredSQL, limit)
		if err != nil || len(found) == 0 {
			return err
		}
		e := actEnding{event: sluice.EventCancel, from: []sluice.State{sluice.StateQueued}}
		for _, id := range found {
			e.ids = append(e.ids, idOf(id))
			e.reasons, e.actors = append(e.reasons, "expired"), append(e.actors, by)
		}
		slices.SortFunc(e.ids, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
		var out endings
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			out, err = endByAct(ctx, tx, e)
			return err
		})
		if err == nil {
			s.acted(e.event, out.rows)
			s.unblock(ctx, out.awaited)
			expired += len(movedIDs(out.rows))
		}
		return err
	})
	return expired, err
}

// Repair repairs states that no other method handles: jobs of queues without settings, and jobs whose blocker has
// ended. Repair also deletes unused order keys, ends limits of tenants whose time is over, reads old tenant changes, wakes
// tenant queues, deletes old holders and begins a vacuum where many rows are dead.
func (s *Store) Repair(ctx context.Context, by string) (int, error) {
	repaired, err := s.repair(ctx, by)
	return repaired, errors.Join(err, s.clean(ctx))
}

func (s *Store) repair(ctx context.Context, by string) (int, error) {
	freed, err := s.repairBlocked(ctx)
	if err != nil {
		return freed, err
	}
	if err := s.repairOrderKeys(ctx); err != nil {
		return freed, err
	}
	if err := s.endTenantLimits(ctx, by); err != nil {
		return freed, err
	}
	if err := s.repairTenantChanges(ctx); err != nil {
		return freed, err
	}
	if err := s.repairTenantQueues(ctx); err != nil {
		return freed, err
	}
	var orphans []string
	err = s.call(ctx, "repair", func(ctx context.Context, _ bool) (err error) {
		if orphans, err = list(ctx, s.pool, pgx.RowTo[string], repairQueuesSQL); err != nil {
			return err
		}
		if err := s.dissolveTenantQueues(ctx); err != nil {
			return err
		}
		if err := exec(ctx, s.pool, forgetHoldersSQL); err != nil {
			return err
		}
		return exec(ctx, s.pool, instructionForgetSQL)
	})
	if err != nil {
		return freed, err
	}
	if len(orphans) == 0 {
		return freed, nil
	}
	err = s.call(ctx, "repair queues", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			return makeQueues(ctx, tx, orphans, sluice.Act{By: by, Reason: "jobs wait in it, and it had no settings"})
		})
	})
	if err != nil {
		return freed, err
	}
	return freed + len(orphans), nil
}

// dissolveTenantQueues moves some jobs out of tenant queues of queues that no longer use them. Claims do this, too, but only
// claims that know of it or find no other job.
func (s *Store) dissolveTenantQueues(ctx context.Context) error {
	queues, err := listQueues(ctx, s.pool, sluice.QueueFilter{})
	if err != nil {
		return err
	}
	for _, q := range queues {
		if q.ByTenant {
			continue
		}
		if err := s.dissolve(ctx, s.pool, q.Name); err != nil {
			return err
		}
	}
	return nil
}

// tenantQueueName identifies a tenant queue.
type tenantQueueName struct{ queue, tenant string }

// repairTenantQueues makes claims look at tenant queues that sleep although jobs wait, one slice of the tenant queues at a time.
func (s *Store) repairTenantQueues(ctx context.Context) error {
	s.repairing.Lock()
	defer s.repairing.Unlock()
	var last []tenantQueueName
	looked := 0
	err := s.call(ctx, "repair tenant queues", func(ctx context.Context, _ bool) (err error) {
		last, err = list(ctx, s.pool, func(row pgx.CollectableRow) (tenantQueueName, error) {
			var n tenantQueueName
			err := row.Scan(&n.queue, &n.tenant, &looked)
			return n, err
		}, repairTenantQueuesSQL, s.repairFrom.line.queue, s.repairFrom.line.tenant, maxMoved)
		return err
	})
	if err != nil {
		return err
	}
	if s.repairFrom.line = (tenantQueueName{}); looked == maxMoved {
		s.repairFrom.line = last[0]
	}
	return nil
}
