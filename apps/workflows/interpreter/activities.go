package interpreter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/sluice-queue/sluice/apps/workflows/graph"
)

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// Records keeps the executions. Each method may be called again with the same arguments, and then changes nothing.
type Records interface {
	// Begin notes that a run has begun, and says what it has to do. It is a graph.ErrGone if the execution's workspace,
	// definition or version is not there any more; then it has noted that as the reason why it fails. An execution of another
	// workspace is a graph.ErrGone too; an empty workspace: of any.
	Begin(ctx context.Context, workspace, execution, run string) (graph.Work, error)
	// Step keeps what a node gave.
	Step(ctx context.Context, execution, run string, step graph.Step) error
	// End notes why a run failed; an empty failure: it ended well.
	End(ctx context.Context, execution, run, failure string) error
}

// Activities are what the workflow does outside itself.
type Activities struct {
	Records Records
	// Hosts are the only ones that HTTP nodes may call, each as host:port. Default: none.
	Hosts []string
}

// Begin begins a run. That something is gone fails it for good.
func (a *Activities) Begin(ctx context.Context, input Input) (graph.Work, error) {
	work, err := a.Records.Begin(ctx, input.Workspace, input.Execution, runOf(ctx))
	if errors.Is(err, graph.ErrGone) {
		return work, temporal.NewNonRetryableApplicationError(err.Error(), FailureGone, nil)
	}
	return work, err
}

// Step keeps what a node gave.
func (a *Activities) Step(ctx context.Context, execution string, step graph.Step) error {
	return a.Records.Step(ctx, execution, runOf(ctx), step)
}

// End ends a run.
func (a *Activities) End(ctx context.Context, execution, failure string) error {
	return a.Records.End(ctx, execution, runOf(ctx), failure)
}

func runOf(ctx context.Context) string { return activity.GetInfo(ctx).WorkflowExecution.RunID }

// Call is what an HTTP node asks for.
type Call struct {
	// Key is the same whenever the call is tried again. It is sent as the header Idempotency-Key, so that the other side
	// can tell.
	Key    string         `json:"key"`
	Method string         `json:"method"`
	URL    string         `json:"url"`
	Body   map[string]any `json:"body"`
}

// Answer is what an HTTP node was answered.
type Answer struct {
	Status int `json:"status"`
	// Body is the answer's, if it is JSON.
	Body any `json:"body,omitempty"`
}

// client follows no redirects: they would lead past Hosts.
var client = &http.Client{
	Timeout:       10 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Call makes a call. An answer of 500 or more, or none at all, is worth another try; others are answers.
func (a *Activities) Call(ctx context.Context, call Call) (Answer, error) {
	at, err := url.Parse(call.URL)
	if err != nil || !slices.Contains(a.Hosts, at.Host) {
		return Answer{}, failed("calls to the host of %q are not allowed", call.URL)
	}
	body, err := json.Marshal(call.Body)
	if err != nil {
		return Answer{}, failed("the variables are no JSON: %v", err)
	}
	method := call.Method
	if method == "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, call.URL, bytes.NewReader(body))
	if err != nil {
		return Answer{}, failed("%v", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", call.Key)
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return Answer{}, err
	}
	if response.StatusCode >= http.StatusInternalServerError {
		return Answer{}, fmt.Errorf("%s %s: %s", method, call.URL, response.Status)
	}
	answer := Answer{Status: response.StatusCode}
	_ = json.Unmarshal(text, &answer.Body) // an answer that is no JSON has no body for us
	return answer, nil
}
