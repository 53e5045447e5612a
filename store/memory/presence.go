package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/lead"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/presence"
)

// holderMemory is how long the store remembers a holder after its last heartbeat.
const holderMemory = time.Hour

// Heartbeat stores a holder's heartbeat.
func (s *Store) Heartbeat(ctx context.Context, holder presence.Holder) (presence.Instruction, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return presence.Instruction{}, err
	}
	defer leave()
	holder.Seen, holder.Conditions, holder.Counts = s.now(), slices.Clone(holder.Conditions), s.tally != nil
	s.holders[holder.ID] = holder
	return presence.InstructionFor(s.instructed(), holder, s.now()), nil
}

// instructed lists the instructions, newest first.
func (s *Store) instructed() []presence.Instruction {
	return slices.SortedFunc(maps.Values(s.instructions), func(a, b presence.Instruction) int { return b.ChangedAt.Compare(a.ChangedAt) })
}

// SaveInstruction stores an instruction to processes.
func (s *Store) SaveInstruction(ctx context.Context, instruction presence.Instruction, act sluice.Act) (presence.Instruction, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return presence.Instruction{}, err
	}
	defer leave()
	var newest time.Time
	if all := s.instructed(); len(all) > 0 {
		newest = all[0].ChangedAt
	}
	return put(s, saving.Instructions(&newest), instruction, saving.Named(act), in(s.instructions, instruction.Target))
}

// Instructions lists the instructions, newest first.
func (s *Store) Instructions(ctx context.Context) ([]presence.Instruction, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.instructed(), nil
}

func (s *Store) forgetHolders() {
	ago := s.now().Add(-holderMemory)
	maps.DeleteFunc(s.holders, func(_ string, h presence.Holder) bool { return h.Seen.Before(ago) })
}

// forgetInstructions forgets the instructions that cannot count any more.
func (s *Store) forgetInstructions() {
	s.forgetHolders()
	ago := s.now().Add(-holderMemory)
	maps.DeleteFunc(s.instructions, func(t presence.Target, i presence.Instruction) bool {
		_, listed := s.holders[t.Holder]
		return !i.Until.IsZero() && i.Until.Before(ago) || t.Holder != "" && !listed && i.ChangedAt.Before(ago)
	})
	for all := s.instructed(); len(all) > 0; all = all[:len(all)-1] {
		oldest := all[len(all)-1]
		if oldest.Wanted != presence.WantedWork || !oldest.ChangedAt.Before(ago) {
			return
		}
		delete(s.instructions, oldest.Target) // an instruction to work lifts older ones, and there are none
	}
}

// HeldJobs lists the claimed jobs of holders.
func (s *Store) HeldJobs(ctx context.Context, holderIDs []string, limit int) ([]presence.HeldJob, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []presence.HeldJob
	for _, j := range s.jobs {
		if j.State == sluice.StateClaimed && slices.Contains(holderIDs, j.Holder) {
			out = append(out, presence.HeldJob{ID: j.ID, Queue: j.Queue, Holder: j.Holder, ClaimedAt: j.ClaimedAt, LeaseUntil: j.LeaseUntil})
		}
	}
	slices.SortFunc(out, func(a, b presence.HeldJob) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), a.ClaimedAt.Compare(b.ClaimedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	return out[:min(len(out), max(limit, 0))], nil
}

// Deregister removes a holder that ends, and releases its tasks.
func (s *Store) Deregister(ctx context.Context, holderID string) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	delete(s.holders, holderID)
	maps.DeleteFunc(s.leads, func(_ string, l presence.Leader) bool { return l.Holder == holderID })
	return nil
}

// Holders lists the processes with a heartbeat in the last hour.
func (s *Store) Holders(ctx context.Context) ([]presence.Holder, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	s.forgetHolders()
	return byName(s.holders, func(h presence.Holder) string { return h.ID }), nil
}

// Elect elects the holder for tasks that are free or already its own.
func (s *Store) Elect(ctx context.Context, holder string, tasks []string, lease time.Duration) ([]string, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []string
	for _, task := range tasks {
		next, leads, changed := lead.Take(task, s.leads[task], holder, s.now(), lease)
		if changed {
			s.leads[task] = next
		}
		if leads {
			out = append(out, task)
		}
	}
	return out, nil
}

// Leaders lists the leader of each task.
func (s *Store) Leaders(ctx context.Context) ([]presence.Leader, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := byName(s.leads, func(l presence.Leader) string { return l.Task })
	for i := range out {
		out[i].Held = out[i].Until.After(s.now())
	}
	return out, nil
}
