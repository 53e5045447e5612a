package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/internal/group"
	"github.com/sluice-queue/sluice/internal/saving"
)

//go:embed sql/queue_policy.sql
var queuePolicySQL string

//go:embed sql/queues_stored.sql
var queuesStoredSQL string

//go:embed sql/queues_made.sql
var queuesMadeSQL string

//go:embed sql/queue_policy_lock.sql
var queuePolicyLockSQL string

//go:embed sql/queue_policy_save.sql
var queuePolicySaveSQL string

// QueuePolicy reads the rule for new queues.
func (s *Store) QueuePolicy(ctx context.Context) (admission.Policy, error) {
	var policy admission.Policy
	err := s.call(ctx, "read policy of queues", func(ctx context.Context, _ bool) (err error) {
		policy, _, err = readPolicy(ctx, s.pool, "")
		return err
	})
	return policy, err
}

// readPolicy reads the rule for new queues, and reports whether queue is stored.
func readPolicy(ctx context.Context, db rowsQuerier, queue string) (policy admission.Policy, stored bool, err error) {
	rows, err := list(ctx, db, func(row pgx.CollectableRow) (p admission.Policy, err error) {
		var changedAt *time.Time
		err = row.Scan(&p.MaxQueues, &p.Declared, &p.Version, &changedAt, &p.ChangedBy, &p.Reason, &p.Stored, &stored)
		if changedAt != nil {
			p.ChangedAt = changedAt.UTC()
		}
		return p, err
	}, queuePolicySQL, queue)
	if err != nil {
		return admission.Policy{}, false, err
	}
	return rows[0], stored, nil
}

// SaveQueuePolicy stores the rule for new queues, and its audit entry.
func (s *Store) SaveQueuePolicy(ctx context.Context, policy admission.Policy, act sluice.Act) (admission.Policy, error) {
	return save(ctx, s, "save policy of queues", saving.Policies, policy, act, home[admission.Policy]{
		stored: func(ctx context.Context, db rowsQuerier) ([]admission.Policy, error) {
			stored, _, err := readPolicy(ctx, db, "")
			return []admission.Policy{stored}, err
		},
		store: func(ctx context.Context, tx pgx.Tx, _ *admission.Policy) (time.Time, error) {
			return savedRow(ctx, tx, queuePolicySaveSQL, policy.MaxQueues, policy.Declared, policy.Version, act.By, act.Reason)
		},
		always: true, // the saved policy has the number of stored queues, which is read with the stored policy
	})
}

// Admit creates the queues that are new. A first read finds queues that others have created, before the lock that
// stops others. So callers that name the same new queue do not wait for each other.
func (s *Store) Admit(ctx context.Context, queues []string, act sluice.Act) ([]error, error) {
	var refused []error
	err := s.call(ctx, "admit queues", func(ctx context.Context, _ bool) error {
		var fresh []string
		var err error
		if refused, fresh, err = admit(ctx, s.pool, queues); err != nil || len(fresh) == 0 {
			return err
		}
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			if err := exec(ctx, tx, queuePolicyLockSQL); err != nil {
				return err
			}
			if refused, fresh, err = admit(ctx, tx, queues); err != nil {
				return err
			}
			return makeQueues(ctx, tx, fresh, act)
		})
	})
	return refused, err
}

// admit returns an error for each queue that the rule refuses, and the queues to create.
func admit(ctx context.Context, db rowsQuerier, queues []string) (refused []error, fresh []string, err error) {
	policy, _, err := readPolicy(ctx, db, "")
	if err != nil {
		return nil, nil, err
	}
	stored, err := list(ctx, db, pgx.RowTo[string], queuesStoredSQL, queues)
	if err != nil {
		return nil, nil, err
	}
	refused, fresh = policy.AdmitAll(queues, stored)
	return refused, fresh, nil
}

// makeQueues stores new queues with the settings of their groups, and audits them. Queues that are already stored stay as
// they are.
func makeQueues(ctx context.Context, tx pgx.Tx, names []string, act sluice.Act) error {
	if len(names) == 0 {
		return nil
	}
	groups, err := list(ctx, tx, scanQueue, queuesNamedSQL, group.GroupsOf(names...))
	if err != nil {
		return err
	}
	alike := make(map[sluice.Settings][]string)
	for _, name := range names {
		settings := group.Begin(name, groups)
		alike[settings] = append(alike[settings], name)
	}
	for settings, names := range alike {
		if err := makeAlike(ctx, tx, names, settings, act); err != nil {
			return err
		}
	}
	return nil
}

func makeAlike(ctx context.Context, tx pgx.Tx, names []string, settings sluice.Settings, act sluice.Act) error {
	fresh := sluice.Queue{Settings: settings}
	told, _ := fresh.Stored(time.Time{}, act).Columns()
	after, err := json.Marshal(fresh.ForAudit())
	if err != nil {
		return err
	}
	made, _, err := insertQueues(ctx, tx, names, fresh.Settings, act)
	if err != nil || len(made) == 0 {
		return err
	}
	return exec(ctx, tx, queuesMadeSQL, made, told, act.By, act.Reason, after, nullUUID(act.ID))
}

// admitDeclared returns the error that refuses a declared queue, or nil. Until the transaction ends, no other
// transaction can create a queue. If another has just created it, the insert reports that.
func admitDeclared(ctx context.Context, tx pgx.Tx, queue string) error {
	if err := exec(ctx, tx, queuePolicyLockSQL); err != nil {
		return err
	}
	policy, stored, err := readPolicy(ctx, tx, queue)
	if err != nil || stored {
		return err
	}
	return policy.Admit(queue, false)
}
