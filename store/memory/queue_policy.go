package memory

import (
	"context"

	"github.com/sluice-queue/sluice"
)

// QueuePolicy reads which new queues are made.
func (s *Store) QueuePolicy(ctx context.Context) (sluice.QueuePolicy, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.QueuePolicy{}, err
	}
	defer leave()
	return s.queuePolicy(), nil
}

func (s *Store) queuePolicy() sluice.QueuePolicy {
	policy := s.policy
	policy.Stored = len(s.queues)
	return policy
}

// SaveQueuePolicy stores which new queues are made.
func (s *Store) SaveQueuePolicy(ctx context.Context, policy sluice.QueuePolicy, act sluice.Act) (sluice.QueuePolicy, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.QueuePolicy{}, err
	}
	defer leave()
	if policy.Version != s.policy.Version {
		return sluice.QueuePolicy{}, sluice.ErrConflict
	}
	if err := s.tellChange(sluice.ObjectPolicy, "queues", s.policy.ForAudit(), policy.ForAudit(), act); err != nil {
		return sluice.QueuePolicy{}, err
	}
	policy.Version++
	policy.ChangedAt, policy.ChangedBy, policy.Reason = s.now(), act.By, act.Reason
	s.policy = policy
	return s.queuePolicy(), nil
}

// Admit says why a job may not name a queue.
func (s *Store) Admit(ctx context.Context, queue string) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return s.admit(queue, true)
}

func (s *Store) admit(queue string, undeclared bool) error {
	if _, stored := s.queues[queue]; stored {
		return nil
	}
	return s.queuePolicy().Admit(queue, undeclared)
}
