package sluice

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Holders lists the processes that work, as they last told the store, and what they lead. One that has told nothing for
// longer than HolderSilence has the condition ConditionLost, which says when its last lease ends, or ConditionSilent. One whose
// program is too old for the schema says so there, or has ConditionTooOld. It reads a few rows, and of each queue of such
// processes at most 200 jobs.
func (c *Client) Holders(ctx context.Context) ([]Holder, error) {
	holders, err := c.store.Holders(ctx)
	if err != nil {
		return nil, err
	}
	leads, err := c.store.Leads(ctx)
	if err != nil {
		return nil, err
	}
	now, err := c.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	claimed := claimedJobs{client: c, of: make(map[string][]Job)}
	for i := range holders {
		h := &holders[i]
		for _, lead := range leads {
			if lead.Held && lead.Holder == h.ID {
				h.Leads = append(h.Leads, lead.Task)
			}
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

// claimedLooks is how many claimed jobs of a queue are looked at for those of silent processes.
const claimedLooks = 200

// claimedJobs are jobs that processes have claimed, by queue, each queue read once.
type claimedJobs struct {
	client *Client
	of     map[string][]Job
}

func (c claimedJobs) read(ctx context.Context, queue string) ([]Job, error) {
	if jobs, known := c.of[queue]; known {
		return jobs, nil
	}
	page, err := c.client.store.Jobs(ctx, JobFilter{Queue: queue, States: []State{StateClaimed}, Limit: claimedLooks})
	c.of[queue] = page.Jobs
	return page.Jobs, err
}

// silent says of a process that does no work why, and until when its leases keep its jobs from others.
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
		text += fmt.Sprintf("; its %d jobs are kept from others until the last lease ends at %s", held, instant(until))
	case held > 0:
		text += fmt.Sprintf("; the leases of its %d jobs have ended, the last at %s: upkeep takes them back", held, instant(until))
	default:
		text, kind = text+"; it holds no jobs", ConditionSilent
	}
	if _, old := h.tooOld(); old {
		mend = "deploy the newer program; " + mend
		if h.heard(now) {
			kind = ConditionTooOld
		}
	}
	return Condition{Kind: kind, Since: h.Seen, Text: text, Mend: mend}, nil
}

// startAgain is the command that starts another process of a role.
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
