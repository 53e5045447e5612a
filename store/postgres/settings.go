package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/storing"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/tenancy"
)

//go:embed sql/queues.sql
var queuesSQL string

// queuesNamedSQL is queues.sql reduced to the filter by name, so that it has one plan.
var queuesNamedSQL = queuesSQL[:strings.Index(queuesSQL, "where q.name > ")] + "where q.name = any($1::text[])\norder by q.name"

//go:embed sql/now.sql
var nowSQL string

//go:embed sql/queue_lock.sql
var queueLockSQL string

//go:embed sql/queue_insert.sql
var queueInsertSQL string

//go:embed sql/queue_update.sql
var queueUpdateSQL string

//go:embed sql/queue_told.sql
var queueToldSQL string

//go:embed sql/audit_change.sql
var auditChangeSQL string

//go:embed sql/tenant.sql
var tenantSQL string

//go:embed sql/tenants.sql
var tenantsSQL string

//go:embed sql/tenant_save.sql
var tenantSaveSQL string

//go:embed sql/tiers.sql
var tiersSQL string

//go:embed sql/tier_save.sql
var tierSaveSQL string

//go:embed sql/beat.sql
var beatSQL string

// beatAndCheckSQL also reports whether the schema has a step that is too new for a program that knows $9 steps.
var beatAndCheckSQL = beatSQL + "\nreturning exists (select from sluice.migration where works_from > $9::integer)"

//go:embed sql/leave.sql
var leaveSQL string

//go:embed sql/holders.sql
var holdersSQL string

// Queues lists queues with their settings, by name.
func (s *Store) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	var out []sluice.Queue
	err := s.call(ctx, "list queues", func(ctx context.Context, _ bool) (err error) {
		if len(filter.Names) > fewQueues && onlyNames(filter) {
			out, err = s.queuesByName(ctx, filter.Names)
			return err
		}
		out, err = listQueues(ctx, s.pool, filter)
		return err
	})
	return out, err
}

// onlyNames reports whether a filter chooses by names alone.
func onlyNames(f sluice.QueueFilter) bool {
	return len(f.Names) > 0 && len(f.Engines) == 0 && f.After == "" && f.Limit == 0 && !f.Engined
}

func listQueues(ctx context.Context, db rowsQuerier, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	if onlyNames(filter) {
		return list(ctx, db, scanQueue, queuesNamedSQL, filter.Names)
	}
	return list(ctx, db, scanQueue, queuesSQL, unlessNone(filter.Names), unlessNone(filter.Engines), filter.After, max(filter.Limit, 0), filter.Engined)
}

// unlessNone makes an argument of names. No names make a null.
func unlessNone(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return names
}

// Now reads the store's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.call(ctx, "read clock", func(ctx context.Context, _ bool) (err error) {
		now, err = readNow(ctx, s.pool)
		return err
	})
	return now, err
}

func readNow(ctx context.Context, db rowsQuerier) (time.Time, error) {
	rows, err := list(ctx, db, pgx.RowTo[time.Time], nowSQL)
	if err != nil {
		return time.Time{}, err
	}
	return rows[0].UTC(), nil
}

func scanQueue(row pgx.CollectableRow) (sluice.Queue, error) {
	values, err := row.Values()
	if err != nil {
		return sluice.Queue{}, err
	}
	return sluice.QueueFromRow(values)
}

// SaveQueue stores a queue's settings and plans, and their audit entry.
func (s *Store) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	return s.putQueue(ctx, "save queue", queue, act, func(tx pgx.Tx, stored *sluice.Queue) (sluice.Queue, error) {
		if stored == nil {
			if err := admitDeclared(ctx, tx, queue.Name); err != nil {
				return sluice.Queue{}, err
			}
		}
		changedAt, err := writeQueue(ctx, tx, queue, act)
		if err != nil {
			return sluice.Queue{}, err
		}
		next := queue.Stored(changedAt, act)
		return next, tellQueue(ctx, tx, next, storing.QueueChanges(stored, next, act))
	})
}

// RecordQueueChange audits settings that were changed by plain SQL.
func (s *Store) RecordQueueChange(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	return s.putQueue(ctx, "tell of a queue", queue, act, func(tx pgx.Tx, stored *sluice.Queue) (sluice.Queue, error) {
		if stored == nil {
			return sluice.Queue{}, sluice.ErrConflict
		}
		next := queue.Stored(stored.Now, act)
		return next, tellQueue(ctx, tx, next, []storing.Change{{Before: stored.ToldForAudit(), After: queue.ForAudit(), Act: act}})
	})
}

// putQueue locks a queue's row, if it has one, and stores the next version.
func (s *Store) putQueue(ctx context.Context, verb string, queue sluice.Queue, act sluice.Act, put func(tx pgx.Tx, stored *sluice.Queue) (sluice.Queue, error)) (next sluice.Queue, err error) {
	err = s.call(ctx, verb, func(ctx context.Context, again bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			rows, err := list(ctx, tx, scanQueue, queueLockSQL, queue.Name)
			if err != nil {
				return err
			}
			var stored *sluice.Queue
			version := int64(0)
			if len(rows) > 0 {
				stored, version = &rows[0], rows[0].Version
			}
			if again && stored != nil && isNext(*stored, queue, act) {
				next = *stored // an earlier try stored it
				return nil
			}
			if version != queue.Version {
				return sluice.ErrConflict
			}
			next, err = put(tx, stored)
			return err
		})
	})
	if err != nil {
		return sluice.Queue{}, err
	}
	s.signal(sluice.Signal{Queue: queue.Name})
	return next, nil
}

// isNext reports whether stored is the result of storing queue by act.
func isNext(stored, queue sluice.Queue, act sluice.Act) bool {
	return stored.Version == queue.Version+1 && stored.Settings == queue.Settings && stored.ChangedBy == act.By && stored.Reason == act.Reason
}

// writeQueue stores a queue's settings, and returns the time by the server's clock.
func writeQueue(ctx context.Context, tx pgx.Tx, queue sluice.Queue, act sluice.Act) (time.Time, error) {
	if queue.Version == 0 {
		made, changedAt, err := insertQueues(ctx, tx, []string{queue.Name}, queue.Settings, act)
		if err == nil && len(made) == 0 {
			err = sluice.ErrConflict // another process has just created it
		}
		return changedAt, err
	}
	_, changedAt, err := savedRow(ctx, tx, queueUpdateSQL, queueArguments(queue.Name, queue.Settings, act)...)
	return changedAt, err
}

// insertQueues stores the queues that are new, and returns their names and the time by the server's clock.
func insertQueues(ctx context.Context, tx pgx.Tx, names []string, settings sluice.Settings, act sluice.Act) (made []string, at time.Time, err error) {
	made, err = list(ctx, tx, func(row pgx.CollectableRow) (name string, err error) {
		err = row.Scan(&name, &at)
		return name, err
	}, queueInsertSQL, queueArguments(names, settings, act)...)
	return made, at.UTC(), err
}

// queueArguments returns the arguments of a statement that stores the settings of one queue or of several.
func queueArguments[T string | []string](name T, settings sluice.Settings, act sluice.Act) []any {
	arguments := []any{name, act.By, act.Reason}
	for _, setting := range sluice.StoredSettings() {
		arguments = append(arguments, setting.Stored(settings))
	}
	return arguments
}

// tellQueue stores the settings that the audit knows of a queue, and adds the audit entries.
func tellQueue(ctx context.Context, tx pgx.Tx, next sluice.Queue, tellings []storing.Change) error {
	told, plans := next.Columns()
	if err := exec(ctx, tx, queueToldSQL, next.Name, next.Version, next.ChangedAt, next.ChangedBy, next.Reason, told, nullText(plans)); err != nil {
		return err
	}
	for _, t := range tellings {
		if err := tellChange(ctx, tx, audit.ObjectQueue, next.Name, t.Before, t.After, t.Act); err != nil {
			return err
		}
	}
	return nil
}

// savedRow runs a statement that stores a queue, tenant or tier. If no row returns, another process has changed it
// in between.
func savedRow(ctx context.Context, tx pgx.Tx, sql string, arguments ...any) (version int64, changedAt time.Time, err error) {
	rows, err := query(ctx, tx, sql, arguments...)
	if err != nil {
		return 0, changedAt, err
	}
	_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&version, &changedAt)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = sluice.ErrConflict
	}
	return version, changedAt.UTC(), err
}

func tellChange(ctx context.Context, tx pgx.Tx, object sluice.Object, name string, before, after any, act sluice.Act) error {
	var old []byte
	if before != nil {
		var err error
		if old, err = json.Marshal(before); err != nil {
			return err
		}
	}
	changed, err := json.Marshal(after)
	if err != nil {
		return err
	}
	return exec(ctx, tx, auditChangeSQL, string(object), name, act.By, act.Reason, old, changed, nullUUID(act.ID))
}

// Tenant returns a stored tenant.
func (s *Store) Tenant(ctx context.Context, name string) (tenancy.Tenant, error) {
	return lookUp(ctx, s, "look up tenant", scanTenant, tenantSQL, name)
}

// Tenants lists stored tenants by name.
func (s *Store) Tenants(ctx context.Context, after string, limit int) ([]tenancy.Tenant, error) {
	var out []tenancy.Tenant
	err := s.call(ctx, "list tenants", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, scanTenant, tenantsSQL, after, limit)
		return err
	})
	return out, err
}

func scanTenant(row pgx.CollectableRow) (tenancy.Tenant, error) {
	var t tenancy.Tenant
	err := row.Scan(&t.Name, &t.Tier, &t.Version, &t.ChangedAt, &t.ChangedBy, &t.Reason)
	t.ChangedAt = t.ChangedAt.UTC()
	return t, err
}

// SaveTenant stores a tenant and its audit entry.
func (s *Store) SaveTenant(ctx context.Context, tenant tenancy.Tenant, act sluice.Act) (tenancy.Tenant, error) {
	saved := tenant
	err := s.call(ctx, "save tenant", func(ctx context.Context, again bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			stored, err := list(ctx, tx, scanTenant, tenantSQL, tenant.Name)
			if err != nil {
				return err
			}
			var before any
			if len(stored) > 0 {
				if again && stored[0].Version == tenant.Version+1 && stored[0].Tier == tenant.Tier {
					saved = stored[0] // an earlier try stored it
					return nil
				}
				before = map[string]string{"tier": stored[0].Tier}
			}
			version, changedAt, err := savedRow(ctx, tx, tenantSaveSQL, tenant.Name, tenant.Tier, tenant.Version, act.By, act.Reason)
			if err != nil {
				return err
			}
			saved.Version, saved.ChangedAt, saved.ChangedBy, saved.Reason = version, changedAt, act.By, act.Reason
			return tellChange(ctx, tx, audit.ObjectTenant, tenant.Name, before, map[string]string{"tier": tenant.Tier}, act)
		})
	})
	return saved, err
}

// Tiers lists the tiers by name.
func (s *Store) Tiers(ctx context.Context) ([]tenancy.Tier, error) {
	var out []tenancy.Tier
	err := s.call(ctx, "list tiers", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, scanTier, tiersSQL)
		return err
	})
	return out, err
}

func scanTier(row pgx.CollectableRow) (tenancy.Tier, error) {
	var t tenancy.Tier
	err := row.Scan(&t.Name, &t.Version, &t.ChangedAt, &t.ChangedBy, &t.Reason)
	t.ChangedAt = t.ChangedAt.UTC()
	return t, err
}

// SaveTier stores a tier and its audit entry.
func (s *Store) SaveTier(ctx context.Context, tier tenancy.Tier, act sluice.Act) (tenancy.Tier, error) {
	saved := tier
	err := s.call(ctx, "save tier", func(ctx context.Context, again bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if again {
				stored, err := list(ctx, tx, scanTier, tiersSQL)
				if err != nil {
					return err
				}
				at := slices.IndexFunc(stored, func(t tenancy.Tier) bool { return t.Name == tier.Name && t.Version == tier.Version+1 })
				if at >= 0 {
					saved = stored[at] // an earlier try stored it
					return nil
				}
			}
			version, changedAt, err := savedRow(ctx, tx, tierSaveSQL, tier.Name, tier.Version, act.By, act.Reason)
			if err != nil {
				return err
			}
			saved.Version, saved.ChangedAt, saved.ChangedBy, saved.Reason = version, changedAt, act.By, act.Reason
			return tellChange(ctx, tx, audit.ObjectTier, tier.Name, nil, map[string]string{}, act)
		})
	})
	return saved, err
}

// Beat stores a holder's heartbeat.
func (s *Store) Heartbeat(ctx context.Context, holder presence.Holder) error {
	conditions, err := presence.StoredConditions(holder.Conditions)
	if err != nil {
		return err
	}
	queues := holder.Queues
	if queues == nil {
		queues = []string{}
	}
	ctx, done := sign(ctx)
	defer done()
	return s.callAndCheck(ctx, "heartbeat", func(ctx context.Context, knows int) (newer bool, err error) {
		said, err := list(ctx, s.pool, pgx.RowTo[bool], beatAndCheckSQL,
			holder.ID, holder.Role, queues, holder.Slots, holder.Busy, holder.Version, conditions, s.tally != nil, knows)
		return len(said) > 0 && said[0], err
	})
}

// Deregister removes a holder that ends, and releases its tasks.
func (s *Store) Deregister(ctx context.Context, holderID string) error {
	return s.call(ctx, "deregister", func(ctx context.Context, _ bool) error {
		return exec(ctx, s.pool, leaveSQL, holderID)
	})
}

// Holders lists the processes with a heartbeat in the last hour.
func (s *Store) Holders(ctx context.Context) ([]presence.Holder, error) {
	var out []presence.Holder
	err := s.call(ctx, "list holders", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, func(row pgx.CollectableRow) (presence.Holder, error) {
			var h presence.Holder
			var conditions string
			var needs *int
			err := row.Scan(&h.ID, &h.Role, &h.Queues, &h.Slots, &h.Busy, &h.Version, &h.Started, &h.Seen, &conditions, &h.Counts, &needs)
			h.Started, h.Seen, h.Conditions = h.Started.UTC(), h.Seen.UTC(), presence.ConditionsFromRow(conditions)
			if needs != nil {
				h.Conditions = append(h.Conditions, presence.TooOld(*needs))
			}
			return h, err
		}, holdersSQL)
		return err
	})
	return out, err
}
