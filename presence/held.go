package presence

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// HeldJob is a claimed job and the process that holds it.
type HeldJob struct {
	// ID is the job, Queue its queue, and Holder the process.
	ID     sluice.ID `json:"id"`
	Queue  string    `json:"queue"`
	Holder string    `json:"holder"`
	// ClaimedAt is when the process claimed the job. LeaseUntil is when the lease ends unless the process renews it.
	ClaimedAt  time.Time `json:"claimed_at"`
	LeaseUntil time.Time `json:"lease_until"`
}

// Remaining is what an instruction still waits for.
type Remaining struct {
	// Holders are the chosen processes that are alive. Claiming are the ids of those that may still claim jobs.
	Holders  []Holder `json:"holders"`
	Claiming []string `json:"claiming"`
	// Jobs are claimed jobs of all chosen processes, at most [MaxHeldJobs]. A process that died holds its jobs until upkeep
	// takes them back.
	Jobs []HeldJob `json:"jobs"`
}

// MaxHeldJobs is the most jobs in [Remaining].
const MaxHeldJobs = 1000

// Quiet reports whether the chosen processes claim nothing and hold no jobs.
func (r Remaining) Quiet() bool { return len(r.Claiming) == 0 && len(r.Jobs) == 0 }

// Remains reports how far the processes of a target are from being quiet. Silent processes count as gone.
func Remains(ctx context.Context, store sluice.Store, target Target) (Remaining, error) {
	if err := target.check(); err != nil {
		return Remaining{}, err
	}
	holders, err := Given(store).Holders(ctx)
	if err != nil {
		return Remaining{}, err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return Remaining{}, err
	}
	var left Remaining
	var ids []string
	for _, h := range holders {
		if !target.Chooses(h) {
			continue
		}
		ids = append(ids, h.ID)
		if !h.Alive(now) {
			continue
		}
		left.Holders = append(left.Holders, h)
		if h.Mode.Claims() {
			left.Claiming = append(left.Claiming, h.ID)
		}
	}
	slices.Sort(left.Claiming)
	// Read after the modes: a process that says it is quiet has claimed all that it will hold.
	left.Jobs, err = Given(store).HeldJobs(ctx, ids, MaxHeldJobs)
	return left, err
}
