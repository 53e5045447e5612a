package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/hold"
)

// waitReasons says which other jobs a queued job waits for. These are the job with the same key, the earlier jobs of
// its order key, and its After. It reads at most MaxAfterRead + 1 jobs. If the reader must not know
// who blocks the job, it is the job itself.
func (s sight) waitReasons(ctx context.Context, of *sluice.Job) ([]Reason, error) {
	j := *of
	if j.BlockedBy == j.ID { // somebody holds the job, or it waits for a run of its own: see heldReasons and openRunReasons
		j.BlockedBy = sluice.ID{}
	}
	if j.OrderKey == "" && len(j.After) == 0 && (s.ofAll() || j.BlockedBy.IsZero()) {
		return []Reason{blockedReason(j, false)}, nil
	}
	blocker, err := blockerOf(ctx, s.store, j)
	if err != nil {
		return nil, err
	}
	foreign := !j.BlockedBy.IsZero() && !s.of(blocker)
	if foreign && !slices.Contains(j.After, j.BlockedBy) {
		of.BlockedBy = j.ID
	}
	twin := j.Key != "" && blocker.Queue == j.Queue && blocker.Key == j.Key
	inOrder := j.OrderKey != "" && blocker.Queue == j.Queue && blocker.OrderKey == j.OrderKey
	var reasons []Reason
	if twin || j.BlockedBy.IsZero() || j.OrderKey == "" && len(j.After) == 0 {
		reasons = append(reasons, blockedReason(j, foreign))
	}
	if j.OrderKey != "" {
		reasons = append(reasons, orderKeyReason(j, blocker, inOrder && !twin, foreign))
	}
	if len(j.After) > 0 {
		reason, err := s.afterReason(ctx, j)
		if err != nil {
			return nil, err
		}
		reasons = append(reasons, reason)
	}
	return reasons, nil
}

// blockerOf returns the job that another job waits for, if it is known.
func blockerOf(ctx context.Context, store sluice.Store, j sluice.Job) (sluice.Job, error) {
	if j.BlockedBy.IsZero() {
		return sluice.Job{}, nil
	}
	blocker, err := store.Job(ctx, j.BlockedBy)
	if errors.Is(err, sluice.ErrNotFound) {
		return sluice.Job{}, nil
	}
	return blocker, err
}

func orderKeyReason(j, blocker sluice.Job, inOrder, foreign bool) Reason {
	switch {
	case !inOrder:
		return Reason{Name: "order_key", Open: true, Summary: fmt.Sprintf("it waits for no job before it with the order key %q", j.OrderKey)}
	case foreign:
		return Reason{Name: "order_key", Summary: fmt.Sprintf("it waits for %s, which comes before it with the order key %q", outside, j.OrderKey)}
	}
	return Reason{Name: "order_key", Summary: fmt.Sprintf("it waits for job %s, which is %s and comes before it with the order key %q", blocker.ID, blocker.State, j.OrderKey), Repair: "sluice why " + blocker.ID.String()}
}

// MaxAfterRead is how many of the jobs that one runs after [Job] reads: the first, and the one that it waits for.
const MaxAfterRead = 100

// afterRead returns the jobs of After to read.
func afterRead(j sluice.Job) []sluice.ID {
	if len(j.After) <= MaxAfterRead {
		return j.After
	}
	read := slices.Clone(j.After[:MaxAfterRead])
	if slices.Contains(j.After[MaxAfterRead:], j.BlockedBy) {
		read[MaxAfterRead-1] = j.BlockedBy
	}
	return read
}

// afterReason says how far the jobs are that a job runs after.
func (s sight) afterReason(ctx context.Context, j sluice.Job) (Reason, error) {
	open := true
	says, mend := "", ""
	completed, foreign := 0, 0
	read := afterRead(j)
	for _, id := range read {
		other, err := s.store.Job(ctx, id)
		switch {
		case !s.ofAll() && (err == nil && !s.of(other) || errors.Is(err, sluice.ErrNotFound)): // they are told alike
			foreign++
			open = open && (other.State == sluice.StateCompleted || j.BlockedBy.IsZero() && (err != nil || other.State.Finished()))
		case errors.Is(err, sluice.ErrNotFound):
			says += fmt.Sprintf("; job %s is gone from the history", id)
			open = open && j.BlockedBy.IsZero()
		case err != nil:
			return Reason{}, err
		case other.State == sluice.StateCompleted:
			completed++
		default:
			says += fmt.Sprintf("; job %s is %s", id, other.State)
			open = open && (other.State.Finished() && j.BlockedBy.IsZero())
			if mend == "" || other.State.Finished() {
				mend = mendBefore(j, other)
			}
		}
	}
	says = completedOf(completed, len(read), len(j.After)) + says
	if foreign > 0 {
		says += fmt.Sprintf("; %d of them are outside of your bounds, or gone from the history", foreign)
	}
	if open {
		mend = ""
	} else {
		says += map[sluice.AfterFailure]string{
			sluice.FailureCancels: "; if one fails, it is cancelled",
			sluice.FailureRuns:    "; one that has failed counts as done",
			sluice.FailureWaits:   "; if one fails, it waits until that was requeued and has completed",
		}[j.AfterFailure]
	}
	return Reason{Name: "after", Open: open, Summary: says, Repair: mend}, nil
}

// completedOf says how many of the jobs that a job runs after have completed.
func completedOf(completed, read, all int) string {
	switch {
	case read < all:
		return fmt.Sprintf("of the %d jobs that it runs after, %d of the %d that were looked at have completed", all, completed, read)
	case all == 1 && completed == 1:
		return "the job that it runs after has completed"
	case all == 1:
		return "the job that it runs after has not completed"
	}
	return fmt.Sprintf("%d of the %d jobs that it runs after have completed", completed, all)
}

// mendBefore returns the act that lets a job go on that runs after another job.
func mendBefore(j, other sluice.Job) string {
	if !other.State.Finished() {
		return "sluice why " + other.ID.String()
	}
	return fmt.Sprintf("mend the cause, which `sluice why %s` names; then: sluice requeue %s; or give this one up: sluice cancel %s", other.ID, other.ID, j.ID)
}

// heldReasons says who holds a job, and why. An unheld job has no such reason.
func heldReasons(ctx context.Context, store sluice.Store, j sluice.Job) ([]Reason, error) {
	held, is, err := hold.Of(ctx, store, j)
	if err != nil || !is {
		return nil, err
	}
	return []Reason{{Name: "held", Summary: held.String(), Repair: "sluice release " + j.ID.String()}}, nil
}

// openRunReasons says which orphan runs of a job may be open. The job waits for them, except for runs that a person
// let it run beside.
func openRunReasons(j sluice.Job, o Position) []Reason {
	reasons := make([]Reason, 0, len(o.OrphanRuns))
	for _, run := range o.OrphanRuns {
		says := fmt.Sprintf("its run %q at the engine %q may still be open; its life %d ended at %s", run.Ref, run.Engine, run.Generation, moment(run.CancelledAt))
		switch {
		case run.Terminate:
			says += "; upkeep ends it by force, and lets go of it when the engine says that it has ended"
		default:
			says += fmt.Sprintf("; upkeep asks it to end, and `sluice runs terminate %s` ends it by force", run.JobID)
		}
		g := Reason{Name: "open_run", Open: j.State != sluice.StateQueued || run.Beside, Summary: says}
		if !g.Open {
			g.Summary = "it waits for an earlier run to end: " + says
			g.Repair = "sluice runs terminate " + run.JobID.String() + " --reason WHY"
		}
		reasons = append(reasons, g)
	}
	return reasons
}
