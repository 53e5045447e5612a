package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/audit"
)

// QueuePolicy reads the rule for new queues.
func (s *Store) QueuePolicy(ctx context.Context) (admission.Policy, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return admission.Policy{}, err
	}
	defer leave()
	return s.queuePolicy(), nil
}

func (s *Store) queuePolicy() admission.Policy {
	policy := s.policy
	policy.Stored = 0
	for name := range s.queues {
		if !sluice.IsInternalQueue(name) {
			policy.Stored++
		}
	}
	return policy
}

// SaveQueuePolicy stores the rule for new queues.
func (s *Store) SaveQueuePolicy(ctx context.Context, policy admission.Policy, act sluice.Act) (admission.Policy, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return admission.Policy{}, err
	}
	defer leave()
	if policy.Version != s.policy.Version {
		return admission.Policy{}, sluice.ErrConflict
	}
	if err := s.tellChange(audit.ObjectPolicy, "queues", s.policy.ForAudit(), policy.ForAudit(), act); err != nil {
		return admission.Policy{}, err
	}
	policy.Version++
	policy.ChangedAt, policy.ChangedBy, policy.Reason = s.now(), act.By, act.Reason
	s.policy = policy
	return s.queuePolicy(), nil
}

// Admit creates the queues that are new.
func (s *Store) Admit(ctx context.Context, queues []string, act sluice.Act) ([]error, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	refused, fresh := s.queuePolicy().AdmitAll(queues, slices.Collect(maps.Keys(s.queues)))
	for _, name := range fresh {
		if _, err := s.saveQueue(sluice.Queue{Name: name, Settings: sluice.DefaultSettings()}, act); err != nil {
			return nil, err
		}
	}
	return refused, nil
}

// admit returns the error that refuses a new queue, or nil.
func (s *Store) admit(queue string) error {
	if _, stored := s.queues[queue]; stored {
		return nil
	}
	return s.queuePolicy().Admit(queue, false)
}
