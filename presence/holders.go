package presence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Holders lists the processes that work, by their last heartbeats, and what they lead. A process without a heartbeat for longer
// than [Silence] has ConditionLost, which says when its last lease ends, or ConditionSilent. A process whose program is too old
// for the schema says so there, or has ConditionTooOld. A process whose protocol differs from that of the others has
// ConditionProtocol. Holders reads a few rows, and at most 200 jobs of each queue of silent processes.
func Holders(ctx context.Context, store sluice.Store) ([]Holder, error) {
	holders, err := Given(store).Holders(ctx)
	if err != nil {
		return nil, err
	}
	leads, err := Given(store).Leaders(ctx)
	if err != nil {
		return nil, err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return nil, err
	}
	instructions, err := Given(store).Instructions(ctx)
	if err != nil {
		return nil, err
	}
	compareProtocols(holders, now)
	claimed := claimedJobs{store: store, of: make(map[string][]sluice.Job)}
	for i := range holders {
		h := &holders[i]
		for _, lead := range leads {
			if lead.Held && lead.Holder == h.ID {
				h.Leads = append(h.Leads, lead.Task)
			}
		}
		if i := InstructionFor(instructions, *h, now); i.Wanted != "" {
			h.Instruction = &i
		}
		if h.Alive(now) {
			continue
		}
		silent, err := claimed.silent(ctx, *h, now)
		if err != nil {
			return nil, err
		}
		rest := slices.DeleteFunc(slices.Clone(h.Conditions), func(c Condition) bool { return c.Kind == ConditionTooOld })
		h.Conditions = append([]Condition{silent}, rest...)
	}
	return holders, nil
}

// claimedLooks is how many claimed jobs of a queue Holders reads to find those of silent processes.
const claimedLooks = 200

// claimedJobs holds claimed jobs by queue, and reads each queue once.
type claimedJobs struct {
	store sluice.Store
	of    map[string][]sluice.Job
}

func (c claimedJobs) read(ctx context.Context, queue string) ([]sluice.Job, error) {
	if jobs, known := c.of[queue]; known {
		return jobs, nil
	}
	page, err := c.store.Jobs(ctx, sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateClaimed}, Limit: claimedLooks})
	c.of[queue] = page.Jobs
	return page.Jobs, err
}

// silent returns the condition of a process that does no work: why, and until when its leases keep its jobs from others.
func (c claimedJobs) silent(ctx context.Context, h Holder, now time.Time) (Condition, error) {
	held, until := 0, time.Time{}
	for _, queue := range h.Queues {
		jobs, err := c.read(ctx, queue)
		if err != nil {
			return Condition{}, err
		}
		for _, j := range jobs {
			if j.Holder != h.ID {
				continue
			}
			held++
			if j.LeaseUntil.After(until) {
				until = j.LeaseUntil
			}
		}
	}
	text, kind, mend := h.Silence(now), ConditionLost, startAgain(h)
	switch {
	case held > 0 && until.After(now):
		text += fmt.Sprintf("; its %d jobs are kept from others until the last lease ends at %s", held, feature.InstantText(until))
	case held > 0:
		text += fmt.Sprintf("; the leases of its %d jobs have ended, the last at %s: upkeep takes them back", held, feature.InstantText(until))
	default:
		text, kind = text+"; it holds no jobs", ConditionSilent
	}
	if _, old := h.tooOld(); old {
		mend = "deploy the newer program; " + mend
		if h.heard(now) {
			kind = ConditionTooOld
		}
	}
	return Condition{Kind: kind, Since: h.Seen, Text: text, Repair: mend}, nil
}

// startAgain returns the command that starts another such process.
func startAgain(h Holder) string {
	switch {
	case h.Role == RoleUpkeep:
		return "sluice upkeep"
	case h.Role == RoleWorker && len(h.Queues) > 0:
		return "start the worker again: sluice work " + h.Queues[0] + " -- COMMAND"
	case h.Role == RoleDispatcher && len(h.Queues) > 0:
		return "start the dispatcher again: sluice dispatch " + h.Queues[0] + " --temporal HOST:PORT"
	}
	return "start the " + h.Role + " again"
}
