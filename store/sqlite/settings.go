package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/group"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/tenancy"
)

//go:embed sql/queues.sql
var queuesSQL string

//go:embed sql/now.sql
var nowSQL string

//go:embed sql/queue.sql
var queueSQL string

// queuesWithinSQL is queue.sql for all queues and groups whose names begin with ?1. Internal queues have no group.
var queuesWithinSQL = strings.Replace(queueSQL, "where name = ?1", "where substr(name, 1, length(?1)) = ?1 and substr(name, 1, 7) <> 'sluice.'\norder by name", 1)

//go:embed sql/queue_save.sql
var queueSaveSQL string

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
	err := s.read(ctx, "list queues", func(tx runner) (err error) {
		out, err = listQueues(tx, filter)
		return err
	})
	return out, err
}

func listQueues(tx runner, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	names, err := jsonUnlessNone(filter.Names)
	if err != nil {
		return nil, err
	}
	engines, err := jsonUnlessNone(filter.Engines)
	if err != nil {
		return nil, err
	}
	return list(tx, scanQueue, queuesSQL, now(), names, engines, filter.After, cmp.Or(filter.Limit, -1), filter.Engined, filter.Groups)
}

// jsonUnlessNone makes a JSON argument of names, each once. No names make a null.
func jsonUnlessNone(names []string) (any, error) {
	if len(names) == 0 {
		return nil, nil
	}
	return jsonOf(slices.Compact(slices.Sorted(slices.Values(names))))
}

// Now reads the store's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var at time.Time
	err := s.read(ctx, "read clock", func(tx runner) (err error) {
		at, err = readNow(tx)
		return err
	})
	return at, err
}

func readNow(tx runner) (time.Time, error) {
	at, err := list(tx, scanOne[int64], nowSQL, now())
	if err != nil {
		return time.Time{}, err
	}
	return timeOf(&at[0]), nil
}

// scanQueue reads a queue's row; changed_at is the third column, and the clock the sixth.
func scanQueue(rows *sql.Rows) (sluice.Queue, error) {
	columns, err := rows.Columns()
	if err != nil {
		return sluice.Queue{}, err
	}
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := rows.Scan(targets...); err != nil {
		return sluice.Queue{}, err
	}
	for i, value := range values {
		if text, ok := value.([]byte); ok { // some drivers return texts as bytes
			values[i] = string(text)
		}
	}
	for _, i := range []int{2, 5} {
		if at, ok := values[i].(int64); ok {
			values[i] = time.UnixMicro(at)
		}
	}
	return sluice.QueueFromRow(values)
}

// SaveQueue stores a queue's settings and their audit entry.
func (s *Store) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	act = saving.Named(act)
	at := queueHome(queue.Name)
	at.store = func(tx runner, next sluice.Queue) error {
		if queue.Version == 0 {
			if err := admitDeclared(tx, queue.Name); err != nil {
				return err
			}
		}
		if sluice.IsGroup(next.Name) {
			if err := followGroup(tx, next, act); err != nil {
				return err
			}
		}
		return storeQueue(tx, next)
	}
	return save(ctx, s, "save queue", saving.Queues, queue, act, at)
}

// followGroup changes the queues of a group before the group itself is stored, in the same transaction.
func followGroup(tx runner, changed sluice.Queue, act sluice.Act) error {
	stored, err := listQueues(tx, sluice.QueueFilter{Names: append(sluice.GroupsOf(changed.Name), changed.Name)})
	if err != nil {
		return err
	}
	within, err := list(tx, scanQueue, queuesWithinSQL, group.Prefix(changed.Name), now())
	if err != nil {
		return err
	}
	follow, err := group.Follow(changed.Name, group.Before(changed.Name, stored), changed.Settings, within)
	if err != nil {
		return err
	}
	for i, q := range follow {
		before := within[slices.IndexFunc(within, func(w sluice.Queue) bool { return w.Name == q.Name })]
		if _, err := put(tx, saving.Queues, &before, follow[i], group.Act(changed.Name, act), queueHome(q.Name)); err != nil {
			return fmt.Errorf("queue %q of %s: %w", q.Name, changed.Name, err)
		}
	}
	return nil
}

// queueHome returns where the store keeps a queue.
func queueHome(name string) home[sluice.Queue] {
	return home[sluice.Queue]{
		stored: func(tx runner) ([]sluice.Queue, error) { return list(tx, scanQueue, queueSQL, name, now()) },
		store:  storeQueue,
	}
}

// storeQueue stores a queue's settings.
func storeQueue(tx runner, next sluice.Queue) error {
	arguments := []any{next.Name, next.Version, micros(next.ChangedAt), next.ChangedBy, next.Reason}
	for _, setting := range sluice.StoredSettings() {
		value := setting.Stored(next.Settings)
		if at, isInstant := value.(time.Time); isInstant {
			value = at.UnixMicro()
		}
		arguments = append(arguments, value)
	}
	if _, err := tx.exec(queueSaveSQL, arguments...); err != nil {
		return err
	}
	return storeAudited(tx, next)
}

// storeAudited stores the settings that the audit knows of a queue.
func storeAudited(tx runner, next sluice.Queue) error {
	told, plans := next.Columns()
	_, err := tx.exec(queueRecordedSQL, next.Name, next.Version, micros(next.ChangedAt), next.ChangedBy, next.Reason, told, nullText(plans))
	tx.signal(sluice.Signal{Queue: next.Name})
	return err
}

// RecordQueueChange audits settings that were changed by plain SQL.
func (s *Store) RecordQueueChange(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	at := queueHome(queue.Name)
	at.store = storeAudited
	return save(ctx, s, "tell of a queue", saving.QueueRecords, queue, act, at)
}

// Tenant returns a stored tenant.
func (s *Store) Tenant(ctx context.Context, name string) (tenancy.Tenant, error) {
	return lookUp(ctx, s, "look up tenant", scanTenant, tenantSQL, name)
}

// Tenants lists stored tenants by name.
func (s *Store) Tenants(ctx context.Context, after string, limit int) ([]tenancy.Tenant, error) {
	var out []tenancy.Tenant
	err := s.read(ctx, "list tenants", func(tx runner) (err error) {
		out, err = list(tx, scanTenant, tenantsSQL, after, limit)
		return err
	})
	return out, err
}

func scanTenant(rows *sql.Rows) (tenancy.Tenant, error) {
	var t tenancy.Tenant
	var at int64
	err := rows.Scan(&t.Name, &t.Tier, &t.Version, &at, &t.ChangedBy, &t.Reason)
	t.ChangedAt = timeOf(&at)
	return t, err
}

// SaveTenant stores a tenant and its audit entry.
func (s *Store) SaveTenant(ctx context.Context, tenant tenancy.Tenant, act sluice.Act) (tenancy.Tenant, error) {
	return save(ctx, s, "save tenant", saving.Tenants, tenant, act, home[tenancy.Tenant]{
		stored: func(tx runner) ([]tenancy.Tenant, error) { return list(tx, scanTenant, tenantSQL, tenant.Name) },
		store:  storeTenant,
	})
}

func storeTenant(tx runner, next tenancy.Tenant) error {
	_, err := tx.exec(tenantSaveSQL, next.Name, next.Tier, next.Version, micros(next.ChangedAt), next.ChangedBy, next.Reason)
	return err
}

// Tiers lists the tiers by name.
func (s *Store) Tiers(ctx context.Context) ([]tenancy.Tier, error) {
	var out []tenancy.Tier
	err := s.read(ctx, "list tiers", func(tx runner) (err error) {
		out, err = tiers(tx)
		return err
	})
	return out, err
}

func tiers(tx runner) ([]tenancy.Tier, error) {
	return list(tx, func(rows *sql.Rows) (tenancy.Tier, error) {
		var t tenancy.Tier
		var at int64
		err := rows.Scan(&t.Name, &t.Version, &at, &t.ChangedBy, &t.Reason)
		t.ChangedAt = timeOf(&at)
		return t, err
	}, tiersSQL)
}

// SaveTier stores a tier and its audit entry.
func (s *Store) SaveTier(ctx context.Context, tier tenancy.Tier, act sluice.Act) (tenancy.Tier, error) {
	return save(ctx, s, "save tier", saving.Tiers, tier, act, home[tenancy.Tier]{
		stored: func(tx runner) ([]tenancy.Tier, error) {
			all, err := tiers(tx)
			return slices.DeleteFunc(all, func(t tenancy.Tier) bool { return t.Name != tier.Name }), err
		},
		store: func(tx runner, next tenancy.Tier) error {
			_, err := tx.exec(tierSaveSQL, next.Name, next.Version, micros(next.ChangedAt), next.ChangedBy, next.Reason)
			return err
		},
	})
}
