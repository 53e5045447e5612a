package forward

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/sluice-queue/sluice"
)

// revive requeues a job at the centre that was cancelled there before this life of it was sent. Such a job was cancelled
// on its way, and then requeued here. The centre only says that it has the job. A nil refusal: the job was requeued, or
// was not cancelled.
func (f *Forwarder) revive(ctx context.Context, h *hold) (refusal, err error) {
	if h.claim.Generation <= 1 {
		return nil, nil
	}
	var there sluice.Job
	var errs []error
	err = f.call(ctx, func(ctx context.Context) (err error) {
		there, err = f.centre.Job(ctx, h.claim.ID)
		return err
	})
	switch {
	case unanswered(err):
		return nil, fmt.Errorf("ask the centre %s: %w", f.options.Centre, err)
	case err != nil, there.State != sluice.StateCancelled, !there.CreatedAt.Before(sentSince(h.claim.Ref)):
		return nil, nil //nolint:nilerr // who may not look cannot have cancelled it either
	}
	err = f.call(ctx, func(ctx context.Context) (err error) {
		act := sluice.Act{By: f.holder.ID, Reason: "requeued where it was enqueued", ID: revivalOf(h.claim)}
		errs, err = f.centre.Requeue(ctx, []sluice.ID{h.claim.ID}, act)
		return err
	})
	err = errors.Join(append(errs, err)...)
	switch {
	case unanswered(err):
		return nil, fmt.Errorf("requeue job %s at %s: %w", h.claim.ID, f.options.Centre, err)
	case errors.Is(err, sluice.ErrNotFound), errors.Is(err, sluice.ErrNotAllowed): // somebody else was faster
		return nil, nil
	}
	return err, nil
}

func unanswered(err error) bool {
	return errors.Is(err, sluice.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// revivalOf returns the id of the act that requeues a life of a job, so that the act is done once however often it is sent.
func revivalOf(claim *sluice.Claim) sluice.ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "forward %s %d", claim.ID, claim.Generation))
	return sluice.ID(sum[:16])
}
