package temporal

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// maxFairnessKey is Temporal's length limit of a fairness key, in bytes.
const maxFairnessKey = 64

// Start starts runs, one call each. See [engine.Engine].
func (e *Engine) Start(ctx context.Context, target engine.Target, runs []engine.Run) []error {
	p, err := e.placeOf(target)
	if err != nil {
		return same(err, len(runs))
	}
	return e.starts.each(ctx, len(runs), func(ctx context.Context, i int) error {
		return e.start(ctx, p, runs[i])
	})
}

// same returns n equal answers.
func same(err error, n int) []error {
	answers := make([]error, n)
	for i := range answers {
		answers[i] = err
	}
	return answers
}

func (e *Engine) start(ctx context.Context, p place, run engine.Run) error {
	doing := fmt.Sprintf("start run %.200q of queue %q in %s", run.Ref, p.Queue, p)
	request, err := e.request(ctx, p, run)
	switch {
	case errors.Is(err, engine.ErrCodec), errors.Is(err, errPanicked):
		return fmt.Errorf("%s: %w: %w: %w", doing, engine.ErrNotAsked, engine.ErrUnavailable, err)
	case err != nil:
		return fmt.Errorf("%s: %w: %w", doing, engine.ErrRefused, err)
	}
	call, cancel := e.limited(ctx)
	defer cancel()
	if err := run.Begins(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	_, err = e.service.StartWorkflowExecution(call, request)
	var taken *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return nil
	case errors.As(err, &taken):
		return e.adopt(ctx, doing, p, run, taken)
	}
	return fault(doing, err)
}

// adopt decides whether the existing run with the ref is the requested one. The server recognises a repeated
// request by its id. A run that was continued as new or reset has another request id, so adopt reads its memo.
func (e *Engine) adopt(ctx context.Context, doing string, p place, run engine.Run, taken *serviceerror.WorkflowExecutionAlreadyStarted) error {
	if taken.StartRequestId == requestID(run.Ref, run.Job) {
		return nil
	}
	f, err := e.describe(ctx, p, run.Ref)
	switch {
	case err != nil:
		return fmt.Errorf("%s: it exists, and whose it is could not be learnt: %w", doing, err)
	case f.state == engine.Absent:
		return fmt.Errorf("%s: %w: it existed, and was gone when looked at", doing, engine.ErrUnavailable)
	case f.job == run.Job:
		return nil
	}
	return fmt.Errorf("%s: %w: workflow %s was not started for job %s; rename one of them, or change run_ref", doing, engine.ErrRefTaken, taken.RunId, run.Job)
}

// request builds the start request of a run. Values that no server accepts are refused here, because some
// answers of servers would look like temporary faults.
func (e *Engine) request(ctx context.Context, p place, run engine.Run) (*workflowservice.StartWorkflowExecutionRequest, error) {
	if rule := misnamed(run.Ref); rule != "" {
		return nil, fmt.Errorf("the ref is no workflow id: %s", rule)
	}
	if len(run.Ref) > e.options.MaxRef {
		return nil, fmt.Errorf("the ref has %d bytes, more than the %d that are allowed", len(run.Ref), e.options.MaxRef)
	}
	input, err := e.input(ctx, p, run)
	if err != nil {
		return nil, err
	}
	request := &workflowservice.StartWorkflowExecutionRequest{
		Namespace:                p.Namespace,
		WorkflowId:               run.Ref,
		WorkflowType:             &commonpb.WorkflowType{Name: p.Type},
		TaskQueue:                &taskqueuepb.TaskQueue{Name: p.TaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Input:                    input,
		Identity:                 e.options.Identity,
		RequestId:                requestID(run.Ref, run.Job),
		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		Memo:                     memoOf(p, run),
		SearchAttributes:         e.attributes(p, run),
		Priority:                 priorityOf(run),
		Header:                   headerOf(run),
	}
	delay := max(run.Delay, 0)
	if delay > 0 {
		request.WorkflowStartDelay = durationpb.New(delay)
	}
	if timeout := cmp.Or(run.Timeout, p.Timeout); timeout > 0 { // the server counts the delay too
		request.WorkflowExecutionTimeout = durationpb.New(timeout + delay)
	}
	return unpanicked("function Adjust", func() (*workflowservice.StartWorkflowExecutionRequest, error) {
		e.adjust(p, run, request)
		return request, nil
	})
}

// adjust lets the program change a request, except for the fields that identify the run.
func (e *Engine) adjust(p place, run engine.Run, request *workflowservice.StartWorkflowExecutionRequest) {
	if e.options.Adjust == nil {
		return
	}
	e.options.Adjust(p.Target, run, request)
	request.Namespace, request.WorkflowId, request.RequestId = p.Namespace, run.Ref, requestID(run.Ref, run.Job)
	request.WorkflowType = &commonpb.WorkflowType{Name: p.Type}
	request.TaskQueue = &taskqueuepb.TaskQueue{Name: p.TaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL}
	request.WorkflowIdReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	request.WorkflowIdConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	request.CronSchedule = ""
	memo := memoOf(p, run)
	for key, value := range request.GetMemo().GetFields() {
		if _, ours := memo.Fields[key]; !ours {
			memo.Fields[key] = value
		}
	}
	request.Memo = memo
}

// headerKey is the header in which the tracing interceptors of Temporal's SDK expect the trace context.
const headerKey = "_tracer-data"

// headerOf passes a run's headers on, in the format of the SDK's contrib/opentelemetry interceptor. Like there,
// they are never encrypted.
func headerOf(run engine.Run) *commonpb.Header {
	if len(run.Headers) == 0 {
		return nil
	}
	return &commonpb.Header{Fields: map[string]*commonpb.Payload{headerKey: plainValue(run.Headers)}}
}

// requestID returns an id by which the server recognises a repeated start request. The id includes the job: the
// server accepts every request with the id of the run's first one, and another job may have the ref.
func requestID(ref string, job sluice.ID) string {
	sum := sha256.Sum256([]byte("sluice run " + job.String() + " " + ref))
	sum[6] = sum[6]&0x0f | 0x80 // a UUID of version 8, which leaves its content to the maker
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// input returns the payload as the only argument. The converter gets a finished payload, because its own JSON
// encoding would rewrite it: "<" would become six characters.
func (e *Engine) input(ctx context.Context, p place, run engine.Run) (*commonpb.Payloads, error) {
	payload := []byte(run.Payload)
	if len(bytes.TrimSpace(payload)) == 0 {
		payload = []byte("null")
	}
	if !json.Valid(payload) {
		return nil, errors.New("the payload is not JSON")
	}
	encoded, err := converted(ctx, e, func() (*commonpb.Payloads, error) {
		return e.convert(p, run.Ref).ToPayloads(converter.NewRawValue(plain(payload)))
	})
	switch {
	case errors.Is(err, engine.ErrCodec):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("the data converter refused the payload: %w", err)
	}
	size := 0
	for _, one := range encoded.GetPayloads() {
		size += len(one.GetData())
	}
	if size > e.options.MaxPayload {
		return nil, fmt.Errorf("the payload has %d bytes when encoded, more than the %d that are allowed", size, e.options.MaxPayload)
	}
	return encoded, nil
}

// convert returns the data converter for the arguments and results of a run. Some converters encrypt by the
// run's id.
func (e *Engine) convert(p place, ref string) converter.DataConverter {
	return converter.WithDataConverterSerializationContext(e.options.DataConverter,
		converter.WorkflowSerializationContext{Namespace: p.Namespace, WorkflowID: ref})
}

// plain wraps a JSON text as a payload.
func plain(text []byte) *commonpb.Payload {
	return &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)},
		Data:     text,
	}
}

// plainValue wraps a value of Sluice as a payload, never encrypted. The run's job must stay readable for as
// long as the run is kept, even if encryption keys change.
func plainValue(value any) *commonpb.Payload {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // only strings and numbers are given
	}
	return plain(text)
}

// The memo keys that each run gets.
const (
	memoJob        = "sluice_job"
	memoQueue      = "sluice_queue"
	memoTenant     = "sluice_tenant"
	memoGeneration = "sluice_generation"
	memoAttempt    = "sluice_attempt"
	memoWork       = "sluice_work"
)

// memoOf returns the memo that identifies a run. Values that most jobs share are left out, because each field
// costs the server. A memo of 5 fields took 7 % of its CPU for a start.
func memoOf(p place, run engine.Run) *commonpb.Memo {
	fields := map[string]*commonpb.Payload{memoJob: plainValue(run.Job.String()), memoQueue: plainValue(p.Queue)}
	if run.Tenant != "" {
		fields[memoTenant] = plainValue(run.Tenant)
	}
	if run.Generation > 1 {
		fields[memoGeneration] = plainValue(run.Generation)
	}
	if run.Attempt > 1 {
		fields[memoAttempt] = plainValue(run.Attempt)
	}
	if run.Work != "" {
		fields[memoWork] = plainValue(run.Work)
	}
	return &commonpb.Memo{Fields: fields}
}

func (e *Engine) attributes(p place, run engine.Run) *commonpb.SearchAttributes {
	fields := map[string]*commonpb.Payload{}
	names := e.options.SearchAttributes
	for _, field := range []struct{ name, value string }{
		{names.Job, run.Job.String()}, {names.Queue, p.Queue}, {names.Tenant, run.Tenant},
	} {
		if field.name != "" && field.value != "" {
			value := plainValue(field.value)
			value.Metadata["type"] = []byte("Keyword")
			fields[field.name] = value
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return &commonpb.SearchAttributes{IndexedFields: fields}
}

// priorityOf maps the job's priorities 1 to 10 to Temporal's 1 to 5. The tenant becomes the fairness key, which
// shares workers between tenants if the server supports fairness.
func priorityOf(run engine.Run) *commonpb.Priority {
	key := run.Tenant
	if len(key) > maxFairnessKey || !utf8.ValidString(key) {
		sum := sha256.Sum256([]byte(key))
		key = fmt.Sprintf("%x", sum[:16])
	}
	return &commonpb.Priority{PriorityKey: int32(min(max(run.Priority+1, 0)/2, 5)), FairnessKey: key}
}
