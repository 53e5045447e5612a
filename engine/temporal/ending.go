package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-queue/sluice/engine"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
)

// ending adds the failure or the result of a run to its outcome, from the last event of its history.
func (e *Engine) ending(ctx context.Context, p place, f found, out *engine.Outcome) error {
	call, cancel := e.limited(ctx)
	defer cancel()
	answer, err := e.service.GetWorkflowExecutionHistory(call, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace:              p.Namespace,
		Execution:              &commonpb.WorkflowExecution{WorkflowId: f.ref, RunId: f.runID},
		HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
	})
	if lacksRun(err) { // deleted since it was found: its state is known all the same
		return nil
	}
	if err != nil {
		return fault(fmt.Sprintf("read how run %.200q in namespace %q ended", f.ref, p.Namespace), err)
	}
	events := answer.GetHistory().GetEvents()
	if len(events) == 0 {
		return nil
	}
	return e.readEnding(ctx, p, events[len(events)-1], out)
}

func (e *Engine) readEnding(ctx context.Context, p place, event *historypb.HistoryEvent, out *engine.Outcome) (err error) {
	switch out.State {
	case engine.Completed:
		out.Result, err = e.result(ctx, p, out.Ref, event.GetWorkflowExecutionCompletedEventAttributes().GetResult())
		if err != nil && e.waits(p, out.EndedAt) {
			return fmt.Errorf("read what run %.200q in namespace %q returned: %w: %w", out.Ref, p.Namespace, engine.ErrUnavailable, err)
		}
	case engine.Failed:
		out.Error = e.failure(p, out.Ref, event.GetWorkflowExecutionFailedEventAttributes().GetFailure())
	case engine.Terminated:
		ended := event.GetWorkflowExecutionTerminatedEventAttributes()
		out.Error = sentence("terminated", "by "+ended.GetIdentity(), ended.GetReason())
	case engine.TimedOut:
		out.Error = "timed out: the run took longer than its timeout"
	case engine.Cancelled:
		out.Error = "cancelled"
	}
	return nil
}

// sentence joins an event and its reason.
func sentence(what, by, reason string) string {
	if by != "by " {
		what += " " + by
	}
	return strings.TrimSuffix(what+": "+reason, ": ")
}

// failure returns the text of a run's failure, with all causes.
func (e *Engine) failure(p place, ref string, failure *failurepb.Failure) string {
	if failure == nil {
		return "failed, and the server does not say why"
	}
	read := converter.WithFailureConverterSerializationContext(e.options.FailureConverter,
		converter.WorkflowSerializationContext{Namespace: p.Namespace, WorkflowID: ref})
	text, err := unpanicked("failure converter", func() (string, error) { return read.FailureToError(failure).Error(), nil })
	if err != nil {
		return "failed: " + failure.GetMessage()
	}
	return text
}

// result returns the result of a run as JSON; nil if there is none, or if it is not JSON. The error is set only
// if a later call may succeed.
func (e *Engine) result(ctx context.Context, p place, ref string, payloads *commonpb.Payloads) (json.RawMessage, error) {
	if len(payloads.GetPayloads()) == 0 {
		return nil, nil
	}
	raw, err := converted(ctx, e, func() (raw converter.RawValue, err error) {
		err = e.convert(p, ref).FromPayload(payloads.GetPayloads()[0], &raw)
		return raw, err
	})
	switch {
	case errors.Is(err, engine.ErrCodec):
		return nil, err
	case err != nil:
		return nil, nil //nolint:nilerr // it is not for us to read
	}
	payload := raw.Payload()
	encoding := string(payload.GetMetadata()[converter.MetadataEncoding])
	if !strings.HasPrefix(encoding, "json/") || !json.Valid(payload.GetData()) {
		return nil, nil
	}
	return payload.GetData(), nil
}
