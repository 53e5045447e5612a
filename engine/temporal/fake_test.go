package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
)

// fake is a Temporal server whose answers a test decides.
type fake struct {
	workflowservice.UnimplementedWorkflowServiceServer
	start    func(ctx context.Context, r *workflowservice.StartWorkflowExecutionRequest) error
	describe func(r *workflowservice.DescribeWorkflowExecutionRequest) (*workflowpb.WorkflowExecutionInfo, error)
	list     func(r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
	history  func(r *workflowservice.GetWorkflowExecutionHistoryRequest) *historypb.HistoryEvent
}

// told turns an error into the status that goes over the wire.
func told(err error) error {
	var known serviceerror.ServiceError
	if errors.As(err, &known) {
		return known.Status().Err()
	}
	return err
}

func (f *fake) StartWorkflowExecution(ctx context.Context, r *workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse, error) {
	return &workflowservice.StartWorkflowExecutionResponse{}, told(f.start(ctx, r))
}

func (f *fake) DescribeWorkflowExecution(_ context.Context, r *workflowservice.DescribeWorkflowExecutionRequest) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	info, err := f.describe(r)
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, told(err)
}

func (f *fake) ListWorkflowExecutions(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	answer, err := f.list(r)
	return answer, told(err)
}

func (f *fake) GetWorkflowExecutionHistory(_ context.Context, r *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: []*historypb.HistoryEvent{f.history(r)}}}, nil
}

// serve starts the fake server, and returns an engine on it.
func (f *fake) serve(t *testing.T, options adapter.Options) (*adapter.Engine, *calls) {
	t.Helper()
	return serve(t, f, options)
}

func serve(t *testing.T, f workflowservice.WorkflowServiceServer, options adapter.Options) (*adapter.Engine, *calls) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	c, counted := dialled(t, listener.Addr().String(), "default", client.Options{})
	if options.Timeout == 0 {
		options.Timeout = 5 * time.Minute // the machine may be busy with other tests
	}
	return adapter.New(c, options), counted
}

var anywhere = engine.Target{Queue: "pay"}

func manyRuns(n int) []engine.Run {
	runs := make([]engine.Run, n)
	for i := range runs {
		runs[i] = newRun("{}")
	}
	return runs
}

func TestEveryAnswerToAStartIsOfOneKind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ says, want error }{
		"throttled":              {serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "namespace rate limit exceeded"), engine.ErrBusy},
		"store throttled":        {serviceerror.NewUnavailable("System Persistence Max QPS Reached."), engine.ErrBusy},
		"invalid":                {serviceerror.NewInvalidArgument("Blob data size exceeds limit."), engine.ErrRefused},
		"message too large":      {status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5242880 vs. 4194304)"), engine.ErrRefused},
		"too large for a proxy":  {status.Error(codes.Unknown, "unexpected HTTP status code received from server: 413 (Request Entity Too Large)"), engine.ErrRefused},
		"too many for a proxy":   {status.Error(codes.Unavailable, "unexpected HTTP status code received from server: 429 (Too Many Requests)"), engine.ErrBusy},
		"a proxy without server": {status.Error(codes.Unavailable, "unexpected HTTP status code received from server: 502 (Bad Gateway)"), engine.ErrUnavailable},
		"aborted":                {status.Error(codes.Aborted, "?"), engine.ErrUnavailable},
		"data loss":              {status.Error(codes.DataLoss, "?"), engine.ErrUnavailable},
		"failed precondition":    {status.Error(codes.FailedPrecondition, "?"), engine.ErrUnavailable},
		"out of range":           {status.Error(codes.OutOfRange, "?"), engine.ErrUnavailable},
		"id too long in SQL":     {serviceerror.NewUnavailable("ERROR: value too long for type character varying(255) (SQLSTATE 22001)"), engine.ErrRefused},
		"no such attribute":      {serviceerror.NewInvalidArgument("Namespace default has no mapping defined for search attribute X"), engine.ErrTarget},
		"bad task queue":         {serviceerror.NewInvalidArgument("taskQueue name cannot start with reserved prefix /_sys/"), engine.ErrTarget},
		"no namespace":           {serviceerror.NewNamespaceNotFound("nowhere"), engine.ErrTarget},
		"deleted namespace":      {serviceerror.NewNamespaceInvalidState("x", enumspb.NAMESPACE_STATE_DELETED, nil), engine.ErrTarget},
		"not permitted":          {serviceerror.NewPermissionDenied("no", ""), engine.ErrTarget},
		"not known":              {status.Error(codes.Unauthenticated, "who?"), engine.ErrTarget},
		"another server":         {status.Error(codes.Unimplemented, "unknown service"), engine.ErrTarget},
		"unavailable":            {serviceerror.NewUnavailable("shard is moving"), engine.ErrUnavailable},
		"deadline":               {serviceerror.NewDeadlineExceeded("late"), engine.ErrUnavailable},
		"cancelled":              {serviceerror.NewCanceled("gone"), engine.ErrUnavailable},
		"internal":               {serviceerror.NewInternal("oops"), engine.ErrUnavailable},
		"unknown":                {status.Error(codes.Unknown, "?"), engine.ErrUnavailable},
		"not found":              {serviceerror.NewNotFound("shard"), engine.ErrUnavailable},
		"standby":                {serviceerror.NewNamespaceNotActive("default", "a", "b"), engine.ErrUnavailable},
		"words nobody knows":     {status.Error(codes.Code(99), "?"), engine.ErrUnavailable},
		"exists, then absent":    {serviceerror.NewWorkflowExecutionAlreadyStarted("exists", "other", "run"), engine.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{
				start: func(context.Context, *workflowservice.StartWorkflowExecutionRequest) error { return c.says },
				describe: func(*workflowservice.DescribeWorkflowExecutionRequest) (*workflowpb.WorkflowExecutionInfo, error) {
					return nil, serviceerror.NewNotFound("no such workflow")
				},
			}
			e, _ := f.serve(t, adapter.Options{})
			run := newRun("{}")
			err := e.Start(t.Context(), anywhere, []engine.Run{run})[0]
			if !errors.Is(err, c.want) {
				t.Errorf("the error is %v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), run.Ref) || !strings.Contains(err.Error(), `queue "pay"`) {
				t.Errorf("the error does not say of what: %v", err)
			}
		})
	}
}

func TestWhatNoServerTakesIsRefusedWithoutAsking(t *testing.T) {
	t.Parallel()
	e, counted := (&fake{}).serve(t, adapter.Options{MaxPayload: 10})
	large, broken, nameless := newRun(`"12345678901"`), newRun("{"), newRun("{}")
	nameless.Ref = ""
	for i, err := range e.Start(t.Context(), anywhere, []engine.Run{large, broken, nameless}) {
		if !errors.Is(err, engine.ErrRefused) {
			t.Errorf("run %d: %v, want %v", i, err, engine.ErrRefused)
		}
	}
	for _, target := range []engine.Target{{}, {Queue: "ü"}, {Queue: strings.Repeat("q", 1001)}, {Queue: "pay", Namespace: "a\nb"}, {Queue: "pay", Type: "\xff"}} {
		if err := e.Start(t.Context(), target, manyRuns(1))[0]; !errors.Is(err, engine.ErrTarget) {
			t.Errorf("target %+v: %v, want %v", target, err, engine.ErrTarget)
		}
	}
	if by := counted.reset(); len(by) != 0 {
		t.Errorf("the server was asked: %v", by)
	}
}

func TestARequestThatIsMadeAgainHasTheSameID(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	f := &fake{start: func(_ context.Context, r *workflowservice.StartWorkflowExecutionRequest) error {
		mu.Lock()
		defer mu.Unlock()
		seen[r.GetRequestId()]++
		return serviceerror.NewUnavailable("the answer is lost")
	}}
	run, other := newRun("{}"), newRun("{}")
	other.Ref = run.Ref // both have one ref, but different jobs
	for range 2 {
		e, _ := f.serve(t, adapter.Options{})
		e.Start(t.Context(), anywhere, []engine.Run{run, other})
	}
	if len(seen) != 2 {
		t.Errorf("two runs were asked for twice with the ids %v", seen)
	}
}

func TestAServerThatLacksTheTargetIsNotAskedForEachRun(t *testing.T) {
	t.Parallel()
	f := &fake{start: func(context.Context, *workflowservice.StartWorkflowExecutionRequest) error {
		return serviceerror.NewNamespaceNotFound("default")
	}}
	e, counted := f.serve(t, adapter.Options{Parallel: 4})
	for _, err := range e.Start(t.Context(), anywhere, manyRuns(100)) {
		if !errors.Is(err, engine.ErrTarget) {
			t.Fatalf("the error is %v, want %v", err, engine.ErrTarget)
		}
	}
	if by := counted.reset(); by["StartWorkflowExecution"] > 4 {
		t.Errorf("the server was asked %v, want at most the 4 in flight", by)
	}
}

func TestAServerThatHangsCostsAFewDeadlines(t *testing.T) {
	t.Parallel()
	f := &fake{start: func(ctx context.Context, _ *workflowservice.StartWorkflowExecutionRequest) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	e, counted := f.serve(t, adapter.Options{Parallel: 4, Timeout: 20 * time.Millisecond})
	for _, err := range e.Start(t.Context(), anywhere, manyRuns(100)) {
		if !errors.Is(err, engine.ErrUnavailable) {
			t.Fatalf("the error is %v, want %v", err, engine.ErrUnavailable)
		}
	}
	if by := counted.reset(); by["StartWorkflowExecution"] > 8 {
		t.Errorf("the server was asked %v, want at most 8", by)
	}
}

func TestABusyServerIsAskedLess(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	room := 20
	f := &fake{start: func(context.Context, *workflowservice.StartWorkflowExecutionRequest) error {
		mu.Lock()
		defer mu.Unlock()
		if room == 0 {
			return serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "too many")
		}
		room--
		return nil
	}}
	e, counted := f.serve(t, adapter.Options{Parallel: 8})
	started := 0
	for _, err := range e.Start(t.Context(), anywhere, manyRuns(200)) {
		switch {
		case err == nil:
			started++
		case !errors.Is(err, engine.ErrBusy):
			t.Fatalf("the error is %v, want %v", err, engine.ErrBusy)
		}
	}
	if started != 20 {
		t.Errorf("%d were started, want 20", started)
	}
	if by := counted.reset(); by["StartWorkflowExecution"] > 20+8+4+2+1+1 {
		t.Errorf("the server was asked %v: it was not left alone", by)
	}
}

// row returns a run as lists of runs show it.
func row(id string, status enumspb.WorkflowExecutionStatus) *workflowpb.WorkflowExecutionInfo {
	job := &commonpb.Payload{Data: []byte(strconv.Quote(sluice.NewID().String()))}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run of " + id},
		Type:      &commonpb.WorkflowType{Name: "pay"}, TaskQueue: "pay", Status: status, CloseTime: timestamppb.Now(),
		Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{"sluice_job": job}},
	}
}

func TestTenThousandEndsAreLearntInFewCalls(t *testing.T) {
	t.Parallel()
	const all = 10_000
	f := &fake{list: func(r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
		from, _ := strconv.Atoi(string(r.GetNextPageToken()))
		answer := &workflowservice.ListWorkflowExecutionsResponse{}
		for i := from; i < min(from+int(r.GetPageSize()), all); i++ {
			answer.Executions = append(answer.Executions, row(fmt.Sprint("run-", i), enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED))
		}
		answer.NextPageToken = []byte(strconv.Itoa(from + len(answer.Executions)))
		if len(answer.Executions) == 0 {
			answer.NextPageToken = nil
		}
		return answer, nil
	}}
	e, counted := f.serve(t, adapter.Options{})
	seen := map[string]bool{}
	var next []byte
	for more := true; more; more = next != nil {
		page, err := e.Ended(t.Context(), anywhere, time.Now().Add(-time.Hour), next)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range page.Runs {
			seen[run.Ref] = true
		}
		next = page.Next
	}
	if by := counted.reset(); len(seen) != all || len(by) != 1 || by["ListWorkflowExecutions"] >= 50 {
		t.Errorf("%d ends took the calls %v, want fewer than 50", len(seen), by)
	}
}

func TestAListNeverSaysThatARunIsAbsentOrRunning(t *testing.T) {
	t.Parallel()
	down := errors.New("no list was asked for")
	for name, c := range map[string]struct {
		listed  []*workflowpb.WorkflowExecutionInfo
		listErr error
		found   *workflowpb.WorkflowExecutionInfo
		findErr error
		want    engine.State
		err     error
	}{
		"neither listed nor there":       {findErr: serviceerror.NewNotFound("no"), want: engine.Absent},
		"not listed, but there":          {found: row("run-0", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING), want: engine.Running},
		"listed as running, but over":    {listed: rows(enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING), found: row("run-0", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED), want: engine.Completed},
		"listed as completed":            {listed: rows(enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED), findErr: down, want: engine.Completed},
		"listed as terminated, but goes": {listed: rows(enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED), found: row("run-0", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING), want: engine.Running},
		"lists are down":                 {listErr: serviceerror.NewUnavailable("down"), found: row("run-0", enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED), want: engine.Running},
		"lists are forbidden":            {listErr: serviceerror.NewPermissionDenied("no lists", ""), findErr: serviceerror.NewNotFound("no"), want: engine.Absent},
		"no namespace for lists":         {listErr: serviceerror.NewNamespaceNotFound("default"), err: engine.ErrTarget},
		"no namespace":                   {findErr: serviceerror.NewNamespaceNotFound("default"), err: engine.ErrTarget},
		"a proxy has no such page":       {findErr: status.Error(codes.NotFound, "no such page"), err: engine.ErrUnavailable},
		"only a copy was asked":          {findErr: &serviceerror.NotFound{Message: "no", CurrentCluster: "b", ActiveCluster: "a"}, err: engine.ErrUnavailable},
		"down":                           {findErr: serviceerror.NewUnavailable("down"), err: engine.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{
				list: func(*workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
					return &workflowservice.ListWorkflowExecutionsResponse{Executions: c.listed}, c.listErr
				},
				describe: func(*workflowservice.DescribeWorkflowExecutionRequest) (*workflowpb.WorkflowExecutionInfo, error) {
					return c.found, c.findErr
				},
			}
			e, _ := f.serve(t, adapter.Options{})
			refs := make([]string, 20)
			for i := range refs {
				refs[i] = fmt.Sprint("run-", i)
			}
			outcomes, err := e.Outcomes(t.Context(), anywhere, refs)
			if !errors.Is(err, c.err) {
				t.Fatalf("the error is %v, want %v", err, c.err)
			}
			if err == nil && outcomes[0].State != c.want {
				t.Errorf("the outcome is %+v, want %s", outcomes[0], c.want)
			}
		})
	}
}

func rows(status enumspb.WorkflowExecutionStatus) []*workflowpb.WorkflowExecutionInfo {
	var all []*workflowpb.WorkflowExecutionInfo
	for i := range 20 {
		all = append(all, row(fmt.Sprint("run-", i), status))
	}
	return all
}
