package sqlite

import (
	"context"
	"database/sql"
	_ "embed"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/queue_policy.sql
var queuePolicySQL string

//go:embed sql/queue_policy_save.sql
var queuePolicySaveSQL string

// QueuePolicy reads which new queues are made.
func (s *Store) QueuePolicy(ctx context.Context) (sluice.QueuePolicy, error) {
	var policy sluice.QueuePolicy
	err := s.read(ctx, "read policy of queues", func(tx runner) (err error) {
		policy, _, err = readPolicy(tx, "")
		return err
	})
	return policy, err
}

// readPolicy also tells whether a queue is stored.
func readPolicy(tx runner, queue string) (policy sluice.QueuePolicy, stored bool, err error) {
	rows, err := list(tx, func(rows *sql.Rows) (p sluice.QueuePolicy, err error) {
		var changedAt *int64
		err = rows.Scan(&p.MaxQueues, &p.Declared, &p.Version, &changedAt, &p.ChangedBy, &p.Reason, &p.Stored, &stored)
		p.ChangedAt = timeOf(changedAt)
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
	err := s.write(ctx, "save policy of queues", func(tx runner, _ bool) error {
		before, _, err := readPolicy(tx, "")
		if err != nil {
			return err
		}
		if before.Version != policy.Version {
			return sluice.ErrConflict
		}
		at := now()
		saved.Version, saved.ChangedAt, saved.ChangedBy, saved.Reason = before.Version+1, timeOf(&at), act.By, act.Reason
		saved.Stored = before.Stored
		if _, err := tx.exec(queuePolicySaveSQL, saved.MaxQueues, saved.Declared, saved.Version, at, act.By, act.Reason); err != nil {
			return err
		}
		return tellChange(tx, sluice.ObjectPolicy, "queues", before.ForAudit(), saved.ForAudit(), act)
	})
	return saved, err
}

// Admit says why a job may not name a queue.
func (s *Store) Admit(ctx context.Context, queue string) error {
	return s.read(ctx, "admit queue", func(tx runner) error { return admit(tx, queue, true) })
}

func admit(tx runner, queue string, undeclared bool) error {
	policy, stored, err := readPolicy(tx, queue)
	if err != nil || stored {
		return err
	}
	return policy.Admit(queue, undeclared)
}
