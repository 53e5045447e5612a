package temporal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/enginetest"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
)

func newRun(payload string) engine.Run {
	id := sluice.NewID()
	return engine.Run{
		Ref: "run-" + id.String(), Job: id, Generation: 2, Attempt: 3, Tenant: "acme", Priority: 10, Payload: json.RawMessage(payload),
	}
}

func (b *bench) started(t *testing.T, runs ...engine.Run) {
	t.Helper()
	until(t, "the server takes the runs", func() bool {
		var again []engine.Run
		for i, err := range b.engine.Start(t.Context(), b.target, runs) {
			if errors.Is(err, engine.ErrUnavailable) {
				again = append(again, runs[i])
			} else if err != nil {
				t.Fatalf("start %q: %v", runs[i].Ref, err)
			}
		}
		runs = again
		return len(again) == 0
	})
}

// answered asks again and again until the server answers. Other tests may keep it busy.
func answered[T any](t *testing.T, ask func() (T, error)) (answer T) {
	t.Helper()
	until(t, "the server answers", func() bool {
		var err error
		if answer, err = ask(); err != nil && !errors.Is(err, engine.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	return answer
}

// outcomes asks for the outcomes of several refs in one call.
func (b *bench) outcomes(t *testing.T, refs ...string) []engine.Outcome {
	t.Helper()
	return answered(t, func() ([]engine.Outcome, error) { return b.engine.Outcomes(t.Context(), b.target, refs) })
}

func (b *bench) outcome(t *testing.T, ref string) engine.Outcome {
	t.Helper()
	return b.outcomes(t, ref)[0]
}

// until waits until so returns true.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Minute) // the server may be busy with other tests
	defer deadline.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for !so() {
		select {
		case <-look.C:
		case <-deadline.C:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// becomes waits until a run is in a state.
func (b *bench) becomes(t *testing.T, ref string, want engine.State) (out engine.Outcome) {
	t.Helper()
	until(t, ref+" is "+string(want), func() bool {
		out = b.outcome(t, ref)
		return out.State == want
	})
	return out
}

// ended waits until Ended lists a ref, and returns its outcome.
func (b *bench) ended(t *testing.T, ref string) (found engine.Outcome) {
	t.Helper()
	until(t, "Ended lists "+ref, func() bool {
		page, err := b.engine.Ended(t.Context(), b.target, time.Now().Add(-time.Hour), nil)
		if err != nil && !errors.Is(err, engine.ErrUnavailable) {
			t.Fatal(err)
		}
		for _, run := range page.Runs {
			if run.Ref == ref {
				found = run
			}
		}
		return found.Ref == ref
	})
	return found
}

// steps is a workflow. It continues as new for each "again" in its input, and waits for a cancel at any other word.
func steps(ctx workflow.Context, left []string) (string, error) {
	if len(left) == 0 {
		return "done", nil
	}
	if left[0] == "again" {
		return "", workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, left[1:])
	}
	ctx.Done().Receive(ctx, nil)
	return "", ctx.Err()
}

func TestARunThatContinuesAsNewIsFollowedToItsLastRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	b.work(t, steps)
	waits, ends := newRun(`["again","again","wait"]`), newRun(`["again","again"]`)
	b.started(t, waits, ends)
	out := b.becomes(t, ends.Ref, engine.Completed)
	if out.Job != ends.Job {
		t.Errorf("its job is %s, want %s", out.Job, ends.Job)
	}
	if listed := b.ended(t, ends.Ref); listed.State != engine.Completed || !listed.EndedAt.Equal(out.EndedAt) {
		t.Errorf("listed as %+v, want it completed at %s", listed, out.EndedAt)
	}
	b.started(t, waits, ends) // the last run has another request id, but still counts as ours
	if out := b.outcome(t, waits.Ref); out.State != engine.Running {
		t.Errorf("a run whose chain goes on is %s", out.State)
	}
	if err := errors.Join(b.engine.Cancel(t.Context(), b.target, []string{waits.Ref}, "no longer wanted")...); err != nil {
		t.Fatal(err)
	}
	b.becomes(t, waits.Ref, engine.Cancelled)
}

func TestARunThatIsResetGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	diary := &enginetest.Diary{}
	b.work(t, obey(diary))
	run, other := newRun(`{"do":"wait"}`), newRun(`{"do":"wait"}`)
	b.started(t, run, other)
	until(t, "it has begun", func() bool { return len(diary.Of(run.Ref)) > 0 && len(diary.Of(other.Ref)) > 0 })
	until(t, "it can be reset", func() bool {
		_, err := b.client.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: namespaceOf(t), WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.Ref},
			Reason: "again", WorkflowTaskFinishEventId: 4, RequestId: "reset-" + run.Ref,
		})
		return err == nil
	})
	if err := b.client.TerminateWorkflow(t.Context(), other.Ref, "", "no longer wanted"); err != nil {
		t.Fatal(err)
	}
	// Temporal lists both as terminated, but one of them was reset and goes on.
	if out := b.ended(t, other.Ref); out.State != engine.Terminated || !strings.Contains(out.Error, "no longer wanted") {
		t.Errorf("the terminated run is listed as %+v", out)
	}
	page, err := b.engine.Ended(t.Context(), b.target, time.Now().Add(-time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range page.Runs {
		if out.Ref == run.Ref {
			t.Errorf("a run that was reset and goes on is listed as %+v", out)
		}
	}
	if out := b.outcome(t, run.Ref); out.State != engine.Running || out.Job != run.Job {
		t.Errorf("a run that was reset and goes on is %+v", out)
	}
	b.started(t, run)
}

func namespaceOf(t *testing.T) string {
	t.Helper()
	name, err := namespace(address(t))
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestARunOfSomebodyElseIsForeignAndLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	b.work(t, obey(&enginetest.Diary{}))
	run := newRun(`{"do":"complete"}`)
	_, err := b.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: run.Ref, TaskQueue: b.target.Queue}, b.target.Type, enginetest.Script{Do: enginetest.Wait})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.engine.Start(t.Context(), b.target, []engine.Run{run})[0]; !errors.Is(err, engine.ErrRefTaken) {
		t.Errorf("start: %v, want %v", err, engine.ErrRefTaken)
	}
	if err := b.engine.Cancel(t.Context(), b.target, []string{run.Ref}, "")[0]; !errors.Is(err, engine.ErrRefTaken) {
		t.Errorf("cancel: %v, want %v", err, engine.ErrRefTaken)
	}
	if out := b.outcome(t, run.Ref); out.State != engine.Foreign {
		t.Errorf("it is %s, want %s", out.State, engine.Foreign)
	}
	if err := b.client.TerminateWorkflow(t.Context(), run.Ref, "", ""); err != nil {
		t.Fatal(err)
	}
	if out := b.outcome(t, run.Ref); out.State != engine.Foreign {
		t.Errorf("it ended and is %s, want %s", out.State, engine.Foreign)
	}
}

func TestARunThatIsTerminatedBeforeItsDelayNeverBegins(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	diary := &enginetest.Diary{}
	b.work(t, obey(diary))
	run, other := newRun(`{"do":"complete"}`), newRun(`{"do":"complete"}`)
	run.Delay = time.Hour
	b.started(t, run)
	if err := b.engine.Terminate(t.Context(), b.target, []string{run.Ref}, "only a check")[0]; err != nil {
		t.Fatal(err)
	}
	if out := b.becomes(t, run.Ref, engine.Terminated); !strings.Contains(out.Error, "only a check") {
		t.Errorf("the run is %+v", out)
	}
	b.started(t, other)
	b.becomes(t, other.Ref, engine.Completed)
	if n := len(diary.Of(run.Ref)); n > 0 {
		t.Errorf("it was begun %d times", n)
	}
	for _, ref := range []string{run.Ref, "never-was"} {
		if err := b.engine.Terminate(t.Context(), b.target, []string{ref}, "again")[0]; err != nil {
			t.Errorf("terminate %s: %v", ref, err)
		}
	}
}

func TestADeletedRunBecomesAbsent(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	b.work(t, obey(&enginetest.Diary{}))
	run := newRun(`{"do":"complete"}`)
	b.started(t, run)
	b.becomes(t, run.Ref, engine.Completed)
	_, err := b.client.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: namespaceOf(t), WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.Ref},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.becomes(t, run.Ref, engine.Absent)
}

func TestStrangeNamesAreFollowed(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	b.target.Type = `pay's "\type" ü`
	b.target.Queue = `the 'queue' \ of ` + b.target.Queue
	b.work(t, obey(&enginetest.Diary{}))
	var refs []string
	for _, odd := range []string{`'`, `''`, `\`, `\'`, `\\'`, `"`, "`", `%_*`, "a,b", "a') OR ('1'='1", "-- x"} {
		run := newRun(`{"do":"complete"}`)
		run.Ref += odd
		b.started(t, run)
		if out := b.ended(t, run.Ref); out.State != engine.Completed || out.Job != run.Job {
			t.Errorf("%q is listed as %+v", run.Ref, out)
		}
		refs = append(refs, run.Ref)
	}
	for i, o := range b.outcomes(t, refs...) {
		if o.Ref != refs[i] || o.State != engine.Completed {
			t.Errorf("%q is %+v", refs[i], o)
		}
	}
	for _, odd := range []string{"ü", "tab\t", "line\n", "zero\x00", "\x7f", "\xff"} {
		run := newRun("1")
		run.Ref += odd
		if err := b.engine.Start(t.Context(), b.target, []engine.Run{run})[0]; !errors.Is(err, engine.ErrRefused) {
			t.Errorf("start %q: %v, want %v", run.Ref, err, engine.ErrRefused)
		}
		if out := b.outcome(t, run.Ref); out.State != engine.Absent {
			t.Errorf("%q is %s", run.Ref, out.State)
		}
	}
}

func TestManyRunsAreFollowedInFewCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	b.work(t, obey(&enginetest.Diary{}))
	runs, refs := make([]engine.Run, 200), make([]string, 200)
	for i := range runs {
		runs[i] = newRun(`{"do":"complete"}`)
		refs[i] = runs[i].Ref
	}
	b.calls.reset()
	b.started(t, runs...)
	until(t, "all are listed", func() bool {
		page, err := b.engine.Ended(t.Context(), b.target, time.Now().Add(-time.Hour), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Runs) == len(runs) && page.Next == nil
	})
	outcomes, err := b.engine.Outcomes(t.Context(), b.target, refs)
	if err != nil {
		t.Fatal(err)
	}
	for i, out := range outcomes {
		if out.Ref != refs[i] || out.State != engine.Completed || out.Job != runs[i].Job {
			t.Fatalf("outcome %d is %+v", i, out)
		}
	}
	by := b.calls.reset()
	delete(by, "ListWorkflowExecutions") // other tests decide how often a list is needed
	if len(by) != 1 || by["StartWorkflowExecution"] != len(runs) {
		t.Errorf("beside lists, %d starts are needed; the calls are %v", len(runs), by)
	}
}

func TestWhatARunIsStartedWith(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{SearchAttributes: adapter.SearchAttributes{Job: "SluiceJob", Tenant: "SluiceTenant"}}, client.Options{})
	run := newRun(`{ "a" : "<&>" , "n" : 12345678901234567890 }`)
	run.Tenant = strings.Repeat("t", 100)
	b.target.Timeout, run.Delay = time.Hour, time.Minute

	if err := b.engine.Start(t.Context(), b.target, []engine.Run{run})[0]; !errors.Is(err, engine.ErrTarget) {
		t.Errorf("with search attributes that the namespace lacks: %v, want %v", err, engine.ErrTarget)
	}
	_, err := b.client.OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
		Namespace:        namespaceOf(t),
		SearchAttributes: map[string]enumspb.IndexedValueType{"SluiceJob": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "SluiceTenant": enumspb.INDEXED_VALUE_TYPE_KEYWORD},
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the search attributes are known", func() bool {
		return b.engine.Start(t.Context(), b.target, []engine.Run{run})[0] == nil
	})
	history := b.client.GetWorkflowHistory(t.Context(), run.Ref, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	event, err := history.Next()
	if err != nil {
		t.Fatal(err)
	}
	started := event.GetWorkflowExecutionStartedEventAttributes()
	if got := started.GetInput().GetPayloads()[0]; string(got.GetData()) != string(run.Payload) || string(got.GetMetadata()["encoding"]) != "json/plain" {
		t.Errorf("the argument is %s", got)
	}
	if got := started.GetWorkflowExecutionTimeout().AsDuration(); got != time.Hour+time.Minute {
		t.Errorf("the timeout is %s, want the delay added", got)
	}
	if got := started.GetFirstWorkflowTaskBackoff().AsDuration(); got != time.Minute {
		t.Errorf("the delay is %s", got)
	}
	if got := started.GetPriority(); got.GetPriorityKey() != 5 || len(got.GetFairnessKey()) != 32 {
		t.Errorf("the priority is %v", got)
	}
	for key, want := range map[string]string{
		"sluice_job": run.Job.String(), "sluice_queue": b.target.Queue, "sluice_tenant": run.Tenant, "sluice_generation": "2", "sluice_attempt": "3",
	} {
		if got := strings.Trim(string(started.GetMemo().GetFields()[key].GetData()), `"`); got != want {
			t.Errorf("memo %s is %q, want %q", key, got, want)
		}
	}
	until(t, "the search attribute finds it", func() bool {
		found, err := b.client.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("SluiceJob = '%s'", run.Job)})
		return err == nil && len(found.GetExecutions()) == 1
	})
}

// backwards is a codec in place of a real encryption.
type backwards struct{}

func (backwards) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	var coded []*commonpb.Payload
	for _, p := range payloads {
		text, err := p.Marshal()
		if err != nil {
			return nil, err
		}
		coded = append(coded, &commonpb.Payload{
			Metadata: map[string][]byte{"encoding": []byte("binary/coded")}, Data: []byte(base64.StdEncoding.EncodeToString(text)),
		})
	}
	return coded, nil
}

func (backwards) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	var plain []*commonpb.Payload
	for _, p := range payloads {
		text, err := base64.StdEncoding.DecodeString(string(p.GetData()))
		if err != nil {
			return nil, err
		}
		decoded := &commonpb.Payload{}
		if err := decoded.Unmarshal(text); err != nil {
			return nil, err
		}
		plain = append(plain, decoded)
	}
	return plain, nil
}

func TestPayloadsAndResultsGoThroughTheDataConverter(t *testing.T) {
	t.Parallel()
	coded := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), backwards{})
	b := newBench(t, adapter.Options{}, client.Options{DataConverter: coded})
	b.target.Results = true
	b.work(t, obey(&enginetest.Diary{}))
	run := newRun(`{"do":"complete","result":{"text":"secret"}}`)
	b.started(t, run)
	if out := b.becomes(t, run.Ref, engine.Completed); !bytes.Contains(out.Result, []byte(`"secret"`)) || out.Job != run.Job {
		t.Errorf("the outcome is %+v, its result %s", out, out.Result)
	}
	if out := b.ended(t, run.Ref); !bytes.Contains(out.Result, []byte(`"secret"`)) {
		t.Errorf("the result listed is %s", out.Result)
	}
	history := b.client.GetWorkflowHistory(t.Context(), run.Ref, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(event.String(), "secret") {
			t.Errorf("the server can read %s", event)
		}
	}
}
