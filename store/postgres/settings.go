package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/group"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/tenancy"
)

//go:embed sql/queues.sql
var queuesSQL string

// queuesNamedSQL is queues.sql reduced to the filter by name, so that it has one plan.
var queuesNamedSQL = queuesSQL[:strings.Index(queuesSQL, "where q.name > ")] + "where q.name = any($1::text[])\norder by q.name"

// queuesWithinSQL is queue_lock.sql for all queues and groups whose names begin with $1. Internal queues have no group.
var queuesWithinSQL = strings.Replace(queueLockSQL, "where name = $1::text", "where starts_with(name, $1::text) and not starts_with(name, 'sluice.')\norder by name", 1)

//go:embed sql/now.sql
var nowSQL string

//go:embed sql/queue_lock.sql
var queueLockSQL string

//go:embed sql/queue_insert.sql
var queueInsertSQL string

//go:embed sql/queue_update.sql
var queueUpdateSQL string

//go:embed sql/queue_recorded.sql
var queueRecordedSQL string

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
	return list(ctx, db, scanQueue, queuesSQL, unlessNone(filter.Names), unlessNone(filter.Engines), filter.After, max(filter.Limit, 0), filter.Engined, filter.Groups)
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

// SaveQueue stores a queue's settings and scheduled changes, and their audit entry.
func (s *Store) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	act = saving.Named(act)
	var followed []sluice.Queue
	saved, err := s.saveQueue(ctx, "save queue", saving.Queues, queue, act, func(ctx context.Context, tx pgx.Tx, stored *sluice.Queue) (at time.Time, err error) {
		if stored == nil {
			if err := admitDeclared(ctx, tx, queue.Name); err != nil {
				return at, err
			}
		}
		if sluice.IsGroup(queue.Name) {
			if followed, err = followGroup(ctx, tx, queue, act); err != nil {
				return at, err
			}
		}
		return writeWhole(ctx, tx, queue, act)
	})
	if err == nil {
		for _, q := range followed {
			s.signal(sluice.Signal{Queue: q.Name})
		}
	}
	return saved, err
}

// followGroup changes the queues of a group before the group itself is stored, in the same transaction.
func followGroup(ctx context.Context, tx pgx.Tx, changed sluice.Queue, act sluice.Act) ([]sluice.Queue, error) {
	stored, err := list(ctx, tx, scanQueue, queuesNamedSQL, append(sluice.GroupsOf(changed.Name), changed.Name))
	if err != nil {
		return nil, err
	}
	within, err := list(ctx, tx, scanQueue, queuesWithinSQL, group.Prefix(changed.Name))
	if err != nil {
		return nil, err
	}
	follow, err := group.Follow(changed.Name, group.Before(changed.Name, stored), changed.Settings, within)
	if err != nil {
		return nil, err
	}
	act = group.Act(changed.Name, act)
	for _, q := range follow {
		before := within[slices.IndexFunc(within, func(w sluice.Queue) bool { return w.Name == q.Name })]
		if _, err := put(ctx, tx, saving.Queues, q, act, home[sluice.Queue]{
			stored: func(context.Context, rowsQuerier) ([]sluice.Queue, error) { return []sluice.Queue{before}, nil }, // locked above
			store: func(ctx context.Context, tx pgx.Tx, _ *sluice.Queue) (time.Time, error) {
				return writeWhole(ctx, tx, q, act)
			},
		}); err != nil {
			return nil, fmt.Errorf("queue %q of %s: %w", q.Name, changed.Name, err)
		}
	}
	return follow, nil
}

// writeWhole stores a queue's settings, and those that the audit knows of it.
func writeWhole(ctx context.Context, tx pgx.Tx, queue sluice.Queue, act sluice.Act) (time.Time, error) {
	at, err := writeQueue(ctx, tx, queue, act)
	if err != nil {
		return at, err
	}
	return at, storeAudited(ctx, tx, queue.Stored(at, act))
}

// storedQueue reads a queue. In a transaction, it locks the queue.
func storedQueue(name string) func(context.Context, rowsQuerier) ([]sluice.Queue, error) {
	return func(ctx context.Context, db rowsQuerier) ([]sluice.Queue, error) {
		if _, inTx := db.(pgx.Tx); inTx && sluice.IsGroup(name) { // no queue of the group is made meanwhile
			if err := exec(ctx, db, queuePolicyLockSQL); err != nil {
				return nil, err
			}
		}
		return list(ctx, db, scanQueue, queueLockSQL, name)
	}
}

// RecordQueueChange audits settings that were changed by plain SQL.
func (s *Store) RecordQueueChange(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	return s.saveQueue(ctx, "tell of a queue", saving.QueueRecords, queue, act, func(ctx context.Context, tx pgx.Tx, stored *sluice.Queue) (time.Time, error) {
		return stored.Now, storeAudited(ctx, tx, queue.Stored(stored.Now, act))
	})
}

// saveQueue saves a queue, whose row it locks.
func (s *Store) saveQueue(ctx context.Context, verb string, kind saving.Kind[sluice.Queue], queue sluice.Queue, act sluice.Act, store func(context.Context, pgx.Tx, *sluice.Queue) (time.Time, error)) (sluice.Queue, error) {
	saved, err := save(ctx, s, verb, kind, queue, act, home[sluice.Queue]{
		stored: storedQueue(queue.Name),
		store:  store,
	})
	if err == nil {
		s.signal(sluice.Signal{Queue: queue.Name})
	}
	return saved, err
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
	return savedRow(ctx, tx, queueUpdateSQL, queueArguments(queue.Name, queue.Settings, act)...)
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

// storeAudited stores the settings that the audit knows of a queue.
func storeAudited(ctx context.Context, tx pgx.Tx, next sluice.Queue) error {
	told, plans := next.Columns()
	return exec(ctx, tx, queueRecordedSQL, next.Name, next.Version, next.ChangedAt, next.ChangedBy, next.Reason, told, nullText(plans))
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
	return save(ctx, s, "save tenant", saving.Tenants, tenant, act, home[tenancy.Tenant]{
		stored: func(ctx context.Context, db rowsQuerier) ([]tenancy.Tenant, error) {
			return list(ctx, db, scanTenant, tenantSQL, tenant.Name)
		},
		store: func(ctx context.Context, tx pgx.Tx, _ *tenancy.Tenant) (time.Time, error) {
			return savedRow(ctx, tx, tenantSaveSQL, tenant.Name, tenant.Tier, tenant.Version, act.By, act.Reason)
		},
	})
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
	return save(ctx, s, "save tier", saving.Tiers, tier, act, home[tenancy.Tier]{
		stored: func(ctx context.Context, db rowsQuerier) ([]tenancy.Tier, error) {
			all, err := list(ctx, db, scanTier, tiersSQL)
			return slices.DeleteFunc(all, func(t tenancy.Tier) bool { return t.Name != tier.Name }), err
		},
		store: func(ctx context.Context, tx pgx.Tx, _ *tenancy.Tier) (time.Time, error) {
			return savedRow(ctx, tx, tierSaveSQL, tier.Name, tier.Version, act.By, act.Reason)
		},
	})
}
