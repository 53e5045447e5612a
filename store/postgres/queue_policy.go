package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/queue_policy.sql
var queuePolicySQL string

//go:embed sql/queue_policy_lock.sql
var queuePolicyLockSQL string

//go:embed sql/queue_policy_save.sql
var queuePolicySaveSQL string

// QueuePolicy reads which new queues are made.
func (s *Store) QueuePolicy(ctx context.Context) (sluice.QueuePolicy, error) {
	var policy sluice.QueuePolicy
	err := s.call(ctx, "read policy of queues", func(ctx context.Context, _ bool) (err error) {
		policy, _, err = readPolicy(ctx, s.pool, "")
		return err
	})
	return policy, err
}

// readPolicy also tells whether a queue is stored.
func readPolicy(ctx context.Context, db rowsQuerier, queue string) (policy sluice.QueuePolicy, stored bool, err error) {
	rows, err := list(ctx, db, func(row pgx.CollectableRow) (p sluice.QueuePolicy, err error) {
		var changedAt *time.Time
		err = row.Scan(&p.MaxQueues, &p.Declared, &p.Version, &changedAt, &p.ChangedBy, &p.Reason, &p.Stored, &stored)
		if changedAt != nil {
			p.ChangedAt = changedAt.UTC()
		}
		return p, err
	}, queuePolicySQL, queue)
	if err != nil {
		return sluice.QueuePolicy{}, false, err
	}
	return rows[0], stored, nil
}

// SaveQueuePolicy stores which new queues are made, and tells the audit.
func (s *Store) SaveQueuePolicy(ctx context.Context, policy sluice.QueuePolicy, act sluice.Act) (sluice.QueuePolicy, error) {
	saved := policy
	err := s.call(ctx, "save policy of queues", func(ctx context.Context, again bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			before, _, err := readPolicy(ctx, tx, "")
			if err != nil {
				return err
			}
			if again && isNextPolicy(before, policy, act) {
				saved = before // an earlier try stored it
				return nil
			}
			saved.Version, saved.ChangedAt, err = savedRow(ctx, tx, queuePolicySaveSQL, policy.MaxQueues, policy.Declared, policy.Version, act.By, act.Reason)
			if err != nil {
				return err
			}
			saved.ChangedBy, saved.Reason, saved.Stored = act.By, act.Reason, before.Stored
			return tellChange(ctx, tx, sluice.ObjectPolicy, "queues", before.ForAudit(), saved.ForAudit(), act)
		})
	})
	return saved, err
}

// isNextPolicy reports whether a stored policy is what became of another by an act.
func isNextPolicy(stored, policy sluice.QueuePolicy, act sluice.Act) bool {
	return stored.Version == policy.Version+1 && stored.MaxQueues == policy.MaxQueues && stored.Declared == policy.Declared &&
		stored.ChangedBy == act.By && stored.Reason == act.Reason
}

// Admit says why a job may not name a queue.
func (s *Store) Admit(ctx context.Context, queue string) error {
	return s.call(ctx, "admit queue", func(ctx context.Context, _ bool) error { return admit(ctx, s.pool, queue, true) })
}

func admit(ctx context.Context, db rowsQuerier, queue string, undeclared bool) error {
	policy, stored, err := readPolicy(ctx, db, queue)
	if err != nil || stored {
		return err
	}
	return policy.Admit(queue, undeclared)
}

// admitNew says why a new queue may not be made, and keeps others from making one until the transaction ends. If somebody
// else has made it, the insert finds that out.
func admitNew(ctx context.Context, tx pgx.Tx, queue sluice.Queue) error {
	if err := exec(ctx, tx, queuePolicyLockSQL); err != nil {
		return err
	}
	return admit(ctx, tx, queue.Name, queue.Undeclared)
}
