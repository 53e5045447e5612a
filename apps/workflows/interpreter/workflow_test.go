package interpreter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/sluice-queue/sluice/apps/workflows/graph"
	"github.com/sluice-queue/sluice/apps/workflows/interpreter"
)

// book implements Records in memory.
type book struct {
	mu     sync.Mutex
	work   graph.Work
	gone   error
	begins int
	// workspace is the workspace of the execution that began last.
	workspace string
	steps     []graph.Step
	ends      []string
}

func (b *book) Begin(_ context.Context, workspace, _, _ string) (graph.Work, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begins, b.workspace = b.begins+1, workspace
	return b.work, b.gone
}

func (b *book) Step(_ context.Context, _, _ string, s graph.Step) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps = append(b.steps, s)
	return nil
}

func (b *book) End(_ context.Context, _, _, failure string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends = append(b.ends, failure)
	return nil
}

// told lists the nodes that the execution went through, with their results.
func (b *book) told() string {
	var parts []string
	for _, s := range b.steps {
		parts = append(parts, fmt.Sprintf("%d %s %s", s.Number, s.Node, s.Result))
	}
	return strings.Join(parts, ", ")
}

// execute runs the workflow in the SDK's test environment, in which waits take no time.
func execute(t *testing.T, b *book, hosts []string, prepare func(*testsuite.TestWorkflowEnvironment)) (interpreter.Result, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	// The machine may be busy.
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}).SetTestTimeout(time.Minute)
	interpreter.Register(env, &interpreter.Activities{Records: b, Hosts: hosts})
	if prepare != nil {
		prepare(env)
	}
	env.ExecuteWorkflow(interpreter.Type, json.RawMessage(`{"execution": "e-1", "workspace": "acme"}`))
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow has not ended")
	}
	var result interpreter.Result
	if err := env.GetWorkflowError(); err != nil {
		return result, err
	}
	return result, env.GetWorkflowResult(&result)
}

func parse(t *testing.T, text string) graph.Graph {
	t.Helper()
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestEachKindOfNodeIsWalked(t *testing.T) {
	t.Parallel()
	var keys []string
	var body string
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if len(keys) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable) // the interpreter tries again
			return
		}
		text, _ := json.Marshal(r.Header.Get("Content-Type"))
		body = string(text)
		_, _ = w.Write([]byte(`{"stock": 3}`))
	}))
	t.Cleanup(server.Close)
	b := &book{work: graph.Work{
		Variables: map[string]any{"number": 7.0},
		Graph: parse(t, `{"start": "a", "nodes": [
			{"id": "a", "kind": "set", "variable": "region", "value": "eu", "next": "b"},
			{"id": "b", "kind": "delay", "for": "24h", "next": "c"},
			{"id": "c", "kind": "http", "url": "`+server.URL+`", "next": "d"},
			{"id": "d", "kind": "condition", "variable": "number", "op": "greater", "value": 5, "next": "e", "else": "a"},
			{"id": "e", "kind": "condition", "variable": "region", "op": "equal", "value": "us", "next": "a"}]}`),
	}}
	result, err := execute(t, b, []string{strings.TrimPrefix(server.URL, "http://")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `1 a "eu", 2 b "24h", 3 c {"status":200,"body":{"stock":3}}, 4 d true, 5 e false`
	if b.told() != want {
		t.Errorf("got  %s\nwant %s", b.told(), want)
	}
	if result.Steps != 5 || result.Variables["region"] != "eu" || result.Variables["c.status"] != 200.0 {
		t.Errorf("got the result %+v", result)
	}
	if len(b.ends) != 1 || b.ends[0] != "" {
		t.Errorf("got the ends %q, want one, which is well", b.ends)
	}
	if len(keys) != 2 || keys[0] != "e-1/3" || keys[1] != keys[0] {
		t.Errorf("got the idempotency keys %q, want e-1/3 at both tries", keys)
	}
	if body != `"application/json"` {
		t.Errorf("got the content type %s", body)
	}
}

func TestNothingIsRunWhenTheDefinitionIsGone(t *testing.T) {
	t.Parallel()
	b := &book{gone: fmt.Errorf("definition d of workspace w %w", graph.ErrGone)}
	_, err := execute(t, b, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "definition d of workspace w is gone") {
		t.Errorf("got %v", err)
	}
	if b.begins != 1 || len(b.steps) != 0 || len(b.ends) != 0 {
		t.Errorf("got %d begins, %d steps and %d ends, want one begin alone", b.begins, len(b.steps), len(b.ends))
	}
}

func TestBeginIsTriedUntilTheDatabaseAnswers(t *testing.T) {
	t.Parallel()
	b := &book{gone: errors.New("database is away")}
	calls := 0
	_, err := execute(t, b, nil, func(env *testsuite.TestWorkflowEnvironment) {
		env.SetOnLocalActivityStartedListener(func(*activity.Info, context.Context, []any) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if calls++; calls == 3 {
				b.gone, b.work.Graph = nil, parse(t, `{"start":"a","nodes":[{"id":"a","kind":"set","variable":"x"}]}`)
			}
		})
	})
	if err != nil || b.begins != 3 || b.workspace != "acme" || b.told() != "1 a null" {
		t.Errorf("got %v after %d begins, with the steps %s", err, b.begins, b.told())
	}
}

func TestFailuresAreToldToTheRecord(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(refusing.Close)
	for name, c := range map[string]struct{ text, want string }{
		"a host that is not allowed": {
			`{"start":"a","nodes":[{"id":"a","kind":"http","url":"http://192.0.2.1/"}]}`,
			`node a: calls to the host of "http://192.0.2.1/" are not allowed`,
		},
		"a server that never works": {
			`{"start":"a","nodes":[{"id":"a","kind":"http","url":"` + refusing.URL + `"}]}`,
			`node a: POST ` + refusing.URL + `: 502 Bad Gateway`,
		},
		"a graph without an end": {
			`{"start":"a","nodes":[{"id":"a","kind":"set","variable":"x","next":"a"}]}`,
			`1000 steps were taken, and there is no end`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &book{work: graph.Work{Graph: parse(t, c.text)}}
			_, err := execute(t, b, []string{strings.TrimPrefix(refusing.URL, "http://")}, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if len(b.ends) != 1 || b.ends[0] != c.want {
				t.Errorf("the record was told %q, want %s", b.ends, c.want)
			}
		})
	}
}

func TestACancelledRunIsToldToTheRecord(t *testing.T) {
	t.Parallel()
	b := &book{work: graph.Work{Graph: parse(t, `{"start":"a","nodes":[{"id":"a","kind":"delay","for":"1h"}]}`)}}
	_, err := execute(t, b, nil, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	})
	if err == nil || len(b.ends) != 1 || b.ends[0] != "canceled" || len(b.steps) != 0 {
		t.Errorf("got %v, the ends %q and %d steps", err, b.ends, len(b.steps))
	}
}
