package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/internal/group"
	"github.com/sluice-queue/sluice/internal/saving"
)

//go:embed sql/queue_policy.sql
var queuePolicySQL string

//go:embed sql/queues_stored.sql
var queuesStoredSQL string

//go:embed sql/queue_policy_save.sql
var queuePolicySaveSQL string

// QueuePolicy reads the rule for new queues.
func (s *Store) QueuePolicy(ctx context.Context) (admission.Policy, error) {
	var policy admission.Policy
	err := s.read(ctx, "read policy of queues", func(tx runner) (err error) {
		policy, _, err = readPolicy(tx, "")
		return err
	})
	return policy, err
}

// readPolicy reads the rule for new queues, and reports whether queue is stored.
func readPolicy(tx runner, queue string) (policy admission.Policy, stored bool, err error) {
	rows, err := list(tx, func(rows *sql.Rows) (p admission.Policy, err error) {
		var changedAt *int64
		err = rows.Scan(&p.MaxQueues, &p.Declared, &p.Version, &changedAt, &p.ChangedBy, &p.Reason, &p.Stored, &stored)
		p.ChangedAt = timeOf(changedAt)
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
		stored: func(tx runner) ([]admission.Policy, error) {
			stored, _, err := readPolicy(tx, "")
			return []admission.Policy{stored}, err
		},
		store: func(tx runner, next admission.Policy) error {
			_, err := tx.exec(queuePolicySaveSQL, next.MaxQueues, next.Declared, next.Version, micros(next.ChangedAt), next.ChangedBy, next.Reason)
			return err
		},
	})
}

// Admit creates the queues that are new.
func (s *Store) Admit(ctx context.Context, queues []string, act sluice.Act) ([]error, error) {
	var refused []error
	err := s.write(ctx, "admit queues", func(tx runner, _ bool) (err error) {
		var fresh []string
		if refused, fresh, err = admit(tx, queues); err != nil {
			return err
		}
		return makeQueues(tx, fresh, act)
	})
	return refused, err
}

// admit returns an error for each queue that the rule refuses, and the queues to create.
func admit(tx runner, queues []string) (refused []error, fresh []string, err error) {
	policy, _, err := readPolicy(tx, "")
	if err != nil {
		return nil, nil, err
	}
	names, err := jsonOf(queues)
	if err != nil {
		return nil, nil, err
	}
	stored, err := list(tx, scanOne[string], queuesStoredSQL, names)
	if err != nil {
		return nil, nil, err
	}
	refused, fresh = policy.AdmitAll(queues, stored)
	return refused, fresh, nil
}

// makeQueues stores new queues with the settings of their groups.
func makeQueues(tx runner, names []string, act sluice.Act) error {
	if len(names) == 0 {
		return nil
	}
	groups, err := listQueues(tx, sluice.QueueFilter{Names: group.GroupsOf(names...)})
	if err != nil {
		return err
	}
	for _, name := range names {
		fresh := sluice.Queue{Name: name, Settings: group.Begin(name, groups)}
		if _, err := put(tx, saving.Queues, nil, fresh, act, queueHome(name)); err != nil {
			return fmt.Errorf("make queue %q: %w", name, err)
		}
	}
	return nil
}

// admitDeclared returns the error that refuses a declared queue, or nil.
func admitDeclared(tx runner, queue string) error {
	policy, stored, err := readPolicy(tx, queue)
	if err != nil || stored {
		return err
	}
	return policy.Admit(queue, false)
}
