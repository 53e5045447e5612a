package temporal_test

import (
	"encoding/json"
	"maps"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice/engine"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
)

// headers reads the header of a workflow, as the SDK's tracing interceptor does.
type headers struct{ interceptor.InterceptorBase }

func (*headers) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
}

// ExecuteWorkflow returns the workflow's header as its result.
func (*inbound) ExecuteWorkflow(ctx workflow.Context, _ *interceptor.ExecuteWorkflowInput) (any, error) {
	payload := interceptor.WorkflowHeader(ctx)["_tracer-data"]
	if payload == nil {
		return nil, nil
	}
	var data map[string]string
	err := converter.GetDefaultDataConverter().FromPayload(payload, &data)
	return data, err
}

func TestHeadersArriveWhereTheSDKsTracingLooksForThem(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{Interceptors: []interceptor.ClientInterceptor{&headers{}}})
	b.target.Results = true
	b.work(t, func(workflow.Context, json.RawMessage) (any, error) { return "the interceptor was not asked", nil })
	want := map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "vendor=<x>"}
	traced, plain := newRun(`{}`), newRun(`{}`)
	traced.Headers = want
	b.started(t, traced, plain)
	b.started(t, traced) // asks for the same run again

	var got map[string]string
	if err := json.Unmarshal(b.becomes(t, traced.Ref, engine.Completed).Result, &got); err != nil || !maps.Equal(got, want) {
		t.Errorf("the workflow got %v, %v, want %v", got, err, want)
	}
	if result := b.becomes(t, plain.Ref, engine.Completed).Result; len(result) > 0 && string(result) != "null" {
		t.Errorf("a workflow without headers got %s", result)
	}
}
