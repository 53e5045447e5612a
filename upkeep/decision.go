package upkeep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
)

// decision is the settlement of a job, derived from the engine's answer about its run.
type decision struct {
	sluice.Settlement
	claim *sluice.Claim
	run   engine.Outcome
}

// settle writes settlements. If another process has settled a job meanwhile, the store refuses this settlement.
func (f *follower) settle(ctx context.Context, q sluice.Queue, decisions []decision, done *Followed) error {
	decisions = slices.DeleteFunc(decisions, func(d decision) bool { return d.Event == "" })
	if len(decisions) == 0 {
		return nil
	}
	settlements := make([]sluice.Settlement, len(decisions))
	for i, d := range decisions {
		settlements[i] = d.Settlement
		if settlements[i].Holder == "" {
			settlements[i].Holder = f.by
		}
	}
	errs, err := f.store().Settle(ctx, settlements)
	if err != nil {
		return fmt.Errorf("settle %d jobs: %w", len(settlements), err)
	}
	for i, err := range errs {
		if err == nil {
			done.Settled[settlements[i].Event]++
		}
		f.logSettled(q, decisions[i], err)
	}
	return nil
}

// logSettled logs the outcome of a job.
func (f *follower) logSettled(q sluice.Queue, d decision, err error) {
	log := f.upkeep.log
	if err != nil {
		log.Emit(event.SettlementRefused, q.Name, "job", d.ID, "event", d.Event, "error", err)
		return
	}
	if d.run.State == engine.Absent {
		log.EmitJob(event.RunAbsent, d.claim, "ref", d.claim.Ref, "reason", d.Reason)
	}
	switch d.Event {
	case sluice.EventRecover: // the line for the absent run was logged above
	case sluice.EventDispatch, sluice.EventDoubt:
		log.EmitJob(event.Of(d.Event), d.claim, "ref", d.claim.Ref, "error", d.Error, "reason", d.Reason)
	default:
		log.EmitJob(event.Of(d.Event), d.claim, "duration", ranFor(d, q.Now), "ref", d.claim.Ref, "error", d.Error, "reason", d.Reason, "retry_in", event.Wait(d.Delay))
	}
}

// ranFor returns the duration of a run by its engine's clock, or by the store's clock since the claim.
func ranFor(d decision, now time.Time) time.Duration {
	if !d.run.StartedAt.IsZero() && !d.run.EndedAt.IsZero() {
		return d.run.EndedAt.Sub(d.run.StartedAt)
	}
	return now.Sub(d.claim.ClaimedAt)
}
