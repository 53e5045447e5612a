package presence

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of processes: SQLite, PostgreSQL and memory implement it beside their sluice.Store.
type Store interface {
	// Heartbeat stores that a process is alive, and returns the instruction that counts for it; see [InstructionFor]. The store
	// forgets a process without a heartbeat for 1 hour.
	Heartbeat(ctx context.Context, holder Holder) (Instruction, error)
	// Deregister forgets a process that ends, and what it leads.
	Deregister(ctx context.Context, holderID string) error
	// Holders lists the processes with a heartbeat within the last hour.
	Holders(ctx context.Context) ([]Holder, error)
	// Elect makes a process the leader of free tasks, such as TaskUpkeep, until the lease ends by the store's clock. It returns
	// at once, with all tasks that the process leads now. A leader calls Elect again well before the lease ends, and stops a
	// task that Elect does not return any more. Two processes that both believe to lead do no harm.
	Elect(ctx context.Context, holderID string, tasks []string, lease time.Duration) (leads []string, err error)
	// Leaders lists the present or last leader of each task, by task.
	Leaders(ctx context.Context) ([]Leader, error)
	// SaveInstruction stores the instruction to a target, by the rule of SaveQueue of [sluice.Store]. Its ChangedAt is later
	// than that of every other. If an act is sent again, SaveInstruction returns what the act stored.
	SaveInstruction(ctx context.Context, instruction Instruction, act sluice.Act) (Instruction, error)
	// Instructions lists the stored instructions, the newest first. Upkeep's Repair forgets those that cannot count any more.
	Instructions(ctx context.Context) ([]Instruction, error)
	// HeldJobs lists the claimed jobs of processes, by queue, and then the longest claimed first.
	HeldJobs(ctx context.Context, holderIDs []string, limit int) ([]HeldJob, error)
}

// Given returns the port of a store, or of the store that it decorates. If the store has none, every method of the
// returned Store returns the reason: a [sluice.ErrInvalid] for nil, a [sluice.ErrNotFound] otherwise.
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "does not know its processes")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store that has none.
type missing struct{ err error }

func (m missing) Heartbeat(context.Context, Holder) (Instruction, error) {
	return Instruction{}, m.err
}

func (m missing) Deregister(context.Context, string) error { return m.err }

func (m missing) Holders(context.Context) ([]Holder, error) { return nil, m.err }

func (m missing) Elect(context.Context, string, []string, time.Duration) ([]string, error) {
	return nil, m.err
}

func (m missing) Leaders(context.Context) ([]Leader, error) { return nil, m.err }

func (m missing) SaveInstruction(context.Context, Instruction, sluice.Act) (Instruction, error) {
	return Instruction{}, m.err
}

func (m missing) Instructions(context.Context) ([]Instruction, error) { return nil, m.err }

func (m missing) HeldJobs(context.Context, []string, int) ([]HeldJob, error) { return nil, m.err }
