package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/internal/group"
	"github.com/sluice-queue/sluice/internal/saving"
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
	return save(ctx, s, saving.Policies, policy, act, home[admission.Policy]{
		stored: func() (*admission.Policy, error) {
			stored := s.queuePolicy()
			return &stored, nil
		},
		store: func(next admission.Policy) error {
			s.policy = next
			return nil
		},
	})
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
		if err := s.makeQueue(name, act); err != nil {
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

// groupsOf returns the stored groups of a queue.
func (s *Store) groupsOf(queue string) (groups []sluice.Queue) {
	for _, name := range sluice.GroupsOf(queue) {
		if group, stored := s.queues[name]; stored {
			groups = append(groups, group)
		}
	}
	return groups
}

// makeQueue stores a new queue with the settings of its group.
func (s *Store) makeQueue(name string, act sluice.Act) error {
	_, err := put(s, saving.Queues, sluice.Queue{Name: name, Settings: group.Begin(name, s.groupsOf(name))}, act, s.queueHome(name))
	return err
}
