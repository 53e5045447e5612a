package temporal

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-queue/sluice/engine"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
)

// Cancel asks runs to end. Cancel describes each run first and cancels only runs of jobs; any other workflow is
// a [engine.ErrRefTaken]. See [engine.Engine].
func (e *Engine) Cancel(ctx context.Context, target engine.Target, refs []string, reason string) []error {
	return e.end(ctx, target, refs, "cancel", func(ctx context.Context, p place, f found) error {
		_, err := e.service.RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
			Namespace:           p.Namespace,
			WorkflowExecution:   &commonpb.WorkflowExecution{WorkflowId: f.ref},
			FirstExecutionRunId: f.first,
			Identity:            e.options.Identity,
			RequestId:           requestID("cancel "+f.ref, f.job),
			Reason:              reason,
		})
		return err
	})
}

// Terminate ends runs by force, with the same check as Cancel. See [engine.Terminator].
func (e *Engine) Terminate(ctx context.Context, target engine.Target, refs []string, reason string) []error {
	return e.end(ctx, target, refs, "terminate", func(ctx context.Context, p place, f found) error {
		_, err := e.service.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
			Namespace:           p.Namespace,
			WorkflowExecution:   &commonpb.WorkflowExecution{WorkflowId: f.ref},
			FirstExecutionRunId: f.first,
			Identity:            e.options.Identity,
			Reason:              reason,
		})
		return err
	})
}

// end ends the runs that belong to jobs and have not ended, in the given way.
func (e *Engine) end(ctx context.Context, target engine.Target, refs []string, verb string, by func(ctx context.Context, p place, f found) error) []error {
	p, err := e.placeOf(target)
	if err != nil {
		return same(err, len(refs))
	}
	return e.looks.each(ctx, len(refs), func(ctx context.Context, i int) error {
		doing := fmt.Sprintf("%s run %.200q in namespace %q", verb, refs[i], p.Namespace)
		if misnamed(refs[i]) != "" { // Temporal can have no such run
			return nil
		}
		f, err := e.describe(ctx, p, refs[i])
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", doing, err)
		case f.state != engine.Running:
			return nil
		case f.job.IsZero():
			return fmt.Errorf("%s: %w: workflow %s was not started for a job", doing, engine.ErrRefTaken, f.runID)
		}
		call, cancel := e.limited(ctx)
		defer cancel()
		err = by(call, p, f)
		var before *serviceerror.CancellationAlreadyRequested
		if err == nil || lacksRun(err) || errors.As(err, &before) {
			return nil
		}
		return fault(doing, err)
	})
}
