package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/queues.sql
var queuesSQL string

//go:embed sql/queue.sql
var queueSQL string

//go:embed sql/queue_save.sql
var queueSaveSQL string

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

//go:embed sql/leave.sql
var leaveSQL string

//go:embed sql/holders.sql
var holdersSQL string

// Queues lists every queue with its settings, by name.
func (s *Store) Queues(ctx context.Context) ([]sluice.Queue, error) {
	var out []sluice.Queue
	err := s.read(ctx, "list queues", func(tx runner) (err error) {
		out, err = list(tx, scanQueue, queuesSQL)
		return err
	})
	return out, err
}

// scanQueue reads a queue's row; changed_at is the third column.
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
		if text, ok := value.([]byte); ok { // some drivers give texts so
			values[i] = string(text)
		}
	}
	if at, ok := values[2].(int64); ok {
		values[2] = time.UnixMicro(at)
	}
	return sluice.QueueFromRow(values)
}

// SaveQueue stores a queue's settings, and tells the audit.
func (s *Store) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	var saved sluice.Queue
	err := s.write(ctx, "save queue", func(tx runner, _ bool) (err error) {
		saved, err = saveQueue(tx, queue, act)
		return err
	})
	return saved, err
}

func saveQueue(tx runner, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	stored, err := list(tx, scanQueue, queueSQL, queue.Name)
	if err != nil {
		return sluice.Queue{}, err
	}
	var before any
	version := int64(0)
	if len(stored) > 0 {
		before, version = stored[0].Settings, stored[0].Version
	}
	if version != queue.Version {
		return sluice.Queue{}, sluice.ErrConflict
	}
	at := now()
	queue.Version++
	queue.ChangedAt, queue.ChangedBy, queue.Reason = timeOf(&at), act.By, act.Reason
	arguments := []any{queue.Name, queue.Version, at, act.By, act.Reason}
	for _, setting := range sluice.AllSettings() {
		value := setting.Stored(queue.Settings)
		if at, isInstant := value.(time.Time); isInstant {
			value = at.UnixMicro()
		}
		arguments = append(arguments, value)
	}
	if _, err := tx.exec(queueSaveSQL, arguments...); err != nil {
		return sluice.Queue{}, err
	}
	tx.signal(sluice.Signal{Queue: queue.Name})
	return queue, tellChange(tx, sluice.ObjectQueue, queue.Name, before, queue.Settings, act)
}

// Tenant looks a stored tenant up.
func (s *Store) Tenant(ctx context.Context, name string) (sluice.Tenant, error) {
	return lookUp(ctx, s, "look up tenant", scanTenant, tenantSQL, name)
}

// Tenants lists stored tenants by name.
func (s *Store) Tenants(ctx context.Context, after string, limit int) ([]sluice.Tenant, error) {
	var out []sluice.Tenant
	err := s.read(ctx, "list tenants", func(tx runner) (err error) {
		out, err = list(tx, scanTenant, tenantsSQL, after, limit)
		return err
	})
	return out, err
}

func scanTenant(rows *sql.Rows) (sluice.Tenant, error) {
	var t sluice.Tenant
	var at int64
	err := rows.Scan(&t.Name, &t.Tier, &t.Version, &at, &t.ChangedBy, &t.Reason)
	t.ChangedAt = timeOf(&at)
	return t, err
}

// SaveTenant stores a tenant, and tells the audit.
func (s *Store) SaveTenant(ctx context.Context, tenant sluice.Tenant, act sluice.Act) (sluice.Tenant, error) {
	saved := tenant
	err := s.write(ctx, "save tenant", func(tx runner, _ bool) error {
		stored, err := list(tx, scanTenant, tenantSQL, tenant.Name)
		if err != nil {
			return err
		}
		var before any
		version := int64(0)
		if len(stored) > 0 {
			before, version = map[string]string{"tier": stored[0].Tier}, stored[0].Version
		}
		if version != tenant.Version {
			return sluice.ErrConflict
		}
		at := now()
		saved.Version, saved.ChangedAt, saved.ChangedBy, saved.Reason = version+1, timeOf(&at), act.By, act.Reason
		if _, err := tx.exec(tenantSaveSQL, saved.Name, saved.Tier, saved.Version, at, act.By, act.Reason); err != nil {
			return err
		}
		return tellChange(tx, sluice.ObjectTenant, saved.Name, before, map[string]string{"tier": saved.Tier}, act)
	})
	return saved, err
}

// Tiers lists the tiers by name.
func (s *Store) Tiers(ctx context.Context) ([]sluice.Tier, error) {
	var out []sluice.Tier
	err := s.read(ctx, "list tiers", func(tx runner) (err error) {
		out, err = tiers(tx)
		return err
	})
	return out, err
}

func tiers(tx runner) ([]sluice.Tier, error) {
	return list(tx, func(rows *sql.Rows) (sluice.Tier, error) {
		var t sluice.Tier
		var at int64
		err := rows.Scan(&t.Name, &t.Version, &at, &t.ChangedBy, &t.Reason)
		t.ChangedAt = timeOf(&at)
		return t, err
	}, tiersSQL)
}

// SaveTier stores a tier, and tells the audit.
func (s *Store) SaveTier(ctx context.Context, tier sluice.Tier, act sluice.Act) (sluice.Tier, error) {
	saved := tier
	err := s.write(ctx, "save tier", func(tx runner, _ bool) error {
		stored, err := tiers(tx)
		if err != nil {
			return err
		}
		version := int64(0)
		for _, t := range stored {
			if t.Name == tier.Name {
				version = t.Version
			}
		}
		if version != tier.Version {
			return sluice.ErrConflict
		}
		at := now()
		saved.Version, saved.ChangedAt, saved.ChangedBy, saved.Reason = version+1, timeOf(&at), act.By, act.Reason
		if _, err := tx.exec(tierSaveSQL, saved.Name, saved.Version, at, act.By, act.Reason); err != nil {
			return err
		}
		return tellChange(tx, sluice.ObjectTier, saved.Name, nil, map[string]string{}, act)
	})
	return saved, err
}

// Beat stores that a holder is alive.
func (s *Store) Beat(ctx context.Context, holder sluice.Holder) error {
	queues := holder.Queues
	if queues == nil {
		queues = []string{}
	}
	text, err := jsonOf(queues)
	if err != nil {
		return err
	}
	return s.write(ctx, "beat", func(tx runner, _ bool) error {
		_, err := tx.exec(beatSQL, holder.ID, holder.Role, text, holder.Slots, holder.Busy, holder.Version, now())
		return err
	})
}

// Leave forgets a holder that ends.
func (s *Store) Leave(ctx context.Context, holderID string) error {
	return s.write(ctx, "leave", func(tx runner, _ bool) error {
		_, err := tx.exec(leaveSQL, holderID)
		return err
	})
}

// Holders lists the processes that beat within the last hour.
func (s *Store) Holders(ctx context.Context) ([]sluice.Holder, error) {
	var out []sluice.Holder
	err := s.read(ctx, "list holders", func(tx runner) (err error) {
		out, err = list(tx, func(rows *sql.Rows) (sluice.Holder, error) {
			var h sluice.Holder
			var queues string
			var started, seen int64
			if err := rows.Scan(&h.ID, &h.Role, &queues, &h.Slots, &h.Busy, &h.Version, &started, &seen); err != nil {
				return h, err
			}
			h.Started, h.Seen = timeOf(&started), timeOf(&seen)
			return h, json.Unmarshal([]byte(queues), &h.Queues)
		}, holdersSQL, now()-time.Hour.Microseconds())
		return err
	})
	return out, err
}

// Lead always leads. A SQLite file serves one machine, and two that both think they lead do no
// harm: every move of theirs is guarded.
func (s *Store) Lead(context.Context, string) (sluice.Leadership, bool, error) {
	if s.closed.Load() {
		return nil, false, sluice.ErrUnavailable
	}
	return leadership{}, true, nil
}

type leadership struct{}

func (leadership) Held(context.Context) bool { return true }
func (leadership) Release()                  {}
