// Package interpreter is the Temporal workflow that executes workflow definitions: it walks the graph of nodes and keeps
// what each gave. It knows nothing of Sluice. Its single argument is the payload of the job, as any Temporal client
// could send it.
package interpreter

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice/apps/workflows/graph"
)

// Type is the workflow's name in Temporal.
const Type = "interpret"

// The types of the failures that end a run for good.
const (
	// FailureGone: the workspace, the definition or the version is gone.
	FailureGone = "Gone"
	// FailureNode: a node failed.
	FailureNode = "Node"
)

// Input is what the workflow is started with.
type Input struct {
	// Execution is the id of the execution's record, which exists before the run.
	Execution string `json:"execution"`
	// Workspace is whose execution it is: the run acts for that workspace alone. Runs that were started by programs
	// before this field have none, and act for whose the execution is.
	Workspace string `json:"workspace,omitempty"`
}

// Result is what the workflow returns.
type Result struct {
	Steps int `json:"steps"`
	// Variables are what they were at the end.
	Variables map[string]any `json:"variables"`
}

// Register lets a worker execute the workflow.
func Register(w worker.Registry, activities *Activities) {
	w.RegisterWorkflowWithOptions(Interpret, workflow.RegisterOptions{Name: Type})
	w.RegisterActivity(activities)
}

// Interpret executes a workflow definition. Its first step looks whether the workspace, the definition and the version
// are still there, and none of its nodes is run if they are not: nowhere else could that be decided without a gap, because
// any of them may go after an earlier look.
func Interpret(ctx workflow.Context, input Input) (Result, error) {
	w := walk{records: recording(ctx), calls: calling(ctx), input: input}
	var work graph.Work
	if err := workflow.ExecuteLocalActivity(w.records, activities.Begin, input).Get(ctx, &work); err != nil {
		return Result{}, err // there is nothing to end: the activity has told the record
	}
	w.work = work
	w.variables = maps.Clone(work.Variables)
	if w.variables == nil {
		w.variables = make(map[string]any)
	}
	err := w.run(ctx)
	if endErr := w.end(ctx, err); endErr != nil {
		return Result{}, endErr
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Steps: w.steps, Variables: w.variables}, nil
}

// activities only names the activities; the worker has the real one.
var activities *Activities

// recording is for activities that write a line into the database: they run in the worker's own process, without a task
// of their own, and are tried until the database takes it.
func recording(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 5 * time.Second},
	})
}

// calling is for calls to others, which may fail for a while.
func calling(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 15 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumAttempts: 5},
	})
}

// walk is one way through a graph.
type walk struct {
	records, calls workflow.Context
	input          Input
	work           graph.Work
	variables      map[string]any
	steps          int
}

// run goes from node to node until none follows.
func (w *walk) run(ctx workflow.Context) error {
	for at := w.work.Graph.Start; at != ""; {
		node, found := w.work.Graph.Node(at)
		if !found {
			return failed("the graph has no node %q", at)
		}
		if w.steps == graph.MaxSteps {
			return failed("%d steps were taken, and there is no end", w.steps)
		}
		result, next, err := w.step(ctx, node)
		if err != nil {
			return err
		}
		w.steps++
		if err := w.keep(ctx, node, result); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// step runs one node, and says what it gave and which follows.
func (w *walk) step(ctx workflow.Context, n graph.Node) (result any, next string, err error) {
	switch n.Kind {
	case graph.Delay:
		wait, err := time.ParseDuration(n.For)
		if err != nil {
			return nil, "", failed("node %s: %v", n.ID, err)
		}
		return n.For, n.Next, workflow.Sleep(ctx, wait)
	case graph.HTTP:
		call := Call{Key: fmt.Sprintf("%s/%d", w.input.Execution, w.steps+1), Method: n.Method, URL: n.URL, Body: w.variables}
		var answer Answer
		if err := workflow.ExecuteActivity(w.calls, activities.Call, call).Get(ctx, &answer); err != nil {
			return nil, "", failedBy(n, err)
		}
		w.variables[n.ID] = answer.Body
		w.variables[n.ID+".status"] = float64(answer.Status)
		return answer, n.Next, nil
	case graph.Condition:
		if n.Holds(w.variables) {
			return true, n.Next, nil
		}
		return false, n.Else, nil
	case graph.Set:
		w.variables[n.Variable] = n.Value
		return n.Value, n.Next, nil
	}
	return nil, "", failed("node %s: there is no kind %q", n.ID, n.Kind)
}

// keep writes what a node gave into the execution's record.
func (w *walk) keep(ctx workflow.Context, n graph.Node, result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return failed("node %s: what it gave is no JSON: %v", n.ID, err)
	}
	step := graph.Step{Number: w.steps, Node: n.ID, Kind: n.Kind, Result: text, EndedAt: workflow.Now(ctx)}
	return workflow.ExecuteLocalActivity(w.records, activities.Step, w.input.Execution, step).Get(ctx, nil)
}

// end writes down how the execution ended, also if it was cancelled.
func (w *walk) end(ctx workflow.Context, failure error) error {
	text := ""
	if failure != nil {
		text = messageOf(failure)
	}
	after, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	return workflow.ExecuteLocalActivity(recording(after), activities.End, w.input.Execution, text).Get(after, nil)
}

// failed is for what no further try would mend.
func failed(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), FailureNode, nil)
}

func failedBy(n graph.Node, err error) error {
	if temporal.IsCanceledError(err) {
		return err
	}
	return failed("node %s: %s", n.ID, messageOf(err))
}

// messageOf is what a failure says itself, without Temporal's frame around it.
func messageOf(err error) string {
	var application *temporal.ApplicationError
	if errors.As(err, &application) {
		return application.Message()
	}
	return err.Error()
}
