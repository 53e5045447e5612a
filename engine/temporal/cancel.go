package temporal

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/sluice-queue/sluice"
)

// Cancel asks runs to end. Each is described before, so that no run of somebody else's is cancelled: such a one is
// sluice.ErrRefTaken. See sluice.Engine.
func (e *Engine) Cancel(ctx context.Context, target sluice.RunTarget, refs []string, reason string) []error {
	p, err := e.placeOf(target)
	if err != nil {
		return same(err, len(refs))
	}
	return e.looks.each(ctx, len(refs), func(ctx context.Context, i int) error {
		return e.cancel(ctx, p, refs[i], reason)
	})
}

func (e *Engine) cancel(ctx context.Context, p place, ref, reason string) error {
	doing := fmt.Sprintf("cancel run %.200q in namespace %q", ref, p.Namespace)
	if misnamed(ref) != "" { // Temporal can have no such run
		return nil
	}
	f, err := e.describe(ctx, p, ref)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", doing, err)
	case f.state != sluice.RunRunning:
		return nil
	case f.job.IsZero():
		return fmt.Errorf("%s: %w: workflow %s was not started for a job", doing, sluice.ErrRefTaken, f.runID)
	}
	call, cancel := e.limited(ctx)
	defer cancel()
	_, err = e.service.RequestCancelWorkflowExecution(call, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace:           p.Namespace,
		WorkflowExecution:   &commonpb.WorkflowExecution{WorkflowId: ref},
		FirstExecutionRunId: f.first,
		Identity:            e.options.Identity,
		RequestId:           requestID("cancel "+ref, f.job),
		Reason:              reason,
	})
	var before *serviceerror.CancellationAlreadyRequested
	if err == nil || lacksRun(err) || errors.As(err, &before) {
		return nil
	}
	return fault(doing, err)
}
