package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/store/memory"
)

// codecServer is a codec server as people run it, in front of a key service that may be away.
type codecServer struct {
	away  atomic.Bool
	asked atomic.Int64
	*httptest.Server
}

func newCodecServer(t *testing.T) *codecServer {
	t.Helper()
	s := &codecServer{}
	codec := converter.NewPayloadCodecHTTPHandler(&backwards{})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if s.away.Load() {
			http.Error(w, "the KMS is away", http.StatusServiceUnavailable)
			return
		}
		codec.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *codecServer) converter() converter.DataConverter {
	return converter.NewRemoteDataConverter(converter.GetDefaultDataConverter(), converter.RemoteDataConverterOptions{Endpoint: s.URL})
}

// bank is a queue in memory whose jobs an engine runs.
type bank struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
}

func newBank(t *testing.T) *bank {
	t.Helper()
	store := memory.New(memory.Options{})
	b := &bank{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{})}
	settings := sluice.DefaultSettings()
	settings.Engine = "temporal"
	if _, err := b.client.EnsureQueue(t.Context(), "pay", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bank) enqueue(n int) []sluice.ID {
	b.Helper()
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: "pay", Payload: fmt.Appendf(nil, `{"cents":%d}`, i)}
	}
	receipts, err := b.client.EnqueueMany(b.Context(), jobs)
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]sluice.ID, n)
	for i, r := range receipts {
		ids[i] = r.ID
	}
	return ids
}

// dispatch runs a dispatcher until the test ends.
func (b *bank) dispatch(e engine.Engine) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	d := dispatcher.New(b.store, dispatcher.Options{
		Engines: map[string]engine.Engine{"temporal": e}, Logger: slog.New(slog.DiscardHandler), Poll: 20 * time.Millisecond, Probe: 50 * time.Millisecond,
	})
	go func() { ended <- d.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}

func (b *bank) count(state sluice.State) int {
	b.Helper()
	depth, err := b.client.Jobs(b.Context(), sluice.JobFilter{Queue: "pay", States: []sluice.State{state}, Limit: 1})
	if err != nil {
		b.Fatal(err)
	}
	if len(depth.Jobs) == 0 {
		return 0
	}
	all, err := engine.Given(b.store).Dispatches(b.Context(), engine.DispatchFilter{Queue: "pay", Limit: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for _, c := range all {
		if c.State == state {
			n++
		}
	}
	return max(n, 1)
}

// until waits until is returns true.
func (b *bank) until(what string, is func() bool) {
	b.Helper()
	for end := time.Now().Add(10 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("%s: not within ten minutes", what)
		}
	}
}

func TestCodecThatIsAwayBuriesNoJob(t *testing.T) {
	t.Parallel()
	codec := newCodecServer(t)
	f := &fake{start: func(_ context.Context, r *workflowservice.StartWorkflowExecutionRequest) error {
		if strings.Contains(r.GetInput().String(), "cents") {
			t.Errorf("the input of %s was sent as it was", r.GetWorkflowId())
		}
		return nil
	}}
	e, counted := f.serve(t, adapter.Options{DataConverter: codec.converter()})
	b := newBank(t)
	codec.away.Store(true)
	ids := b.enqueue(2000)
	b.dispatch(e)
	b.until("the codec is tried again", func() bool { return codec.asked.Load() > 20 })
	if by := counted.reset(); by["StartWorkflowExecution"] > 0 {
		t.Errorf("%v: runs were asked for without a codec", by)
	}
	if dead := b.count(sluice.StateDead); dead > 0 {
		t.Errorf("%d jobs died", dead)
	}
	codec.away.Store(false)
	b.until("all are dispatched", func() bool { return b.count(sluice.StateDispatched) == len(ids) })
	for _, id := range ids {
		if job, err := b.client.Job(t.Context(), id); err != nil || job.Attempts != 0 || job.Recoveries != 0 {
			t.Fatalf("job %s: %d attempts, %d recoveries, %v", id, job.Attempts, job.Recoveries, err)
		}
	}
}

// failing is a converter that always returns err.
type failing struct {
	converter.DataConverter
	err error
}

func (f failing) ToPayloads(...any) (*commonpb.Payloads, error) { return nil, f.err }

func TestErrorsOfADataConverterAreForNowUnlessTheySayOtherwise(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ says, want error }{
		"anything":                  {errors.New("KMS throttled"), engine.ErrUnavailable},
		"an error that may be gone": {temporal.NewApplicationError("no key yet", "kms"), engine.ErrUnavailable},
		"marked by us":              {fmt.Errorf("too secret: %w", engine.ErrRefused), engine.ErrRefused},
		"marked as Temporal does":   {temporal.NewNonRetryableApplicationError("too secret", "kms", nil), engine.ErrRefused},
		"of the SDK's converters":   {fmt.Errorf("%w: odd", converter.ErrUnableToEncode), engine.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, counted := (&fake{}).serve(t, adapter.Options{DataConverter: failing{converter.GetDefaultDataConverter(), c.says}})
			err := e.Start(t.Context(), anywhere, manyRuns(1))[0]
			if !errors.Is(err, c.want) || errors.Is(c.want, engine.ErrUnavailable) != errors.Is(err, engine.ErrNotAsked) {
				t.Errorf("the error is %v, want %v", err, c.want)
			}
			if by := counted.reset(); len(by) != 0 {
				t.Errorf("the server was asked: %v", by)
			}
		})
	}
}

// panicking is a converter with a bug that some payloads bring out.
type panicking struct{ converter.DataConverter }

func (p panicking) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	payloads, err := p.DataConverter.ToPayloads(values...)
	if strings.Contains(payloads.String(), "bug") {
		panic("no such key")
	}
	return payloads, err
}

func TestPanicInTheProgramsCodeHoldsUpOneRunAlone(t *testing.T) {
	t.Parallel()
	adjust := func(_ engine.Target, run engine.Run, _ *workflowservice.StartWorkflowExecutionRequest) {
		if run.Labels["currency"] == "" {
			panic("no currency")
		}
	}
	f := &fake{start: func(context.Context, *workflowservice.StartWorkflowExecutionRequest) error { return nil }}
	e, counted := f.serve(t, adapter.Options{DataConverter: panicking{converter.GetDefaultDataConverter()}, Adjust: adjust})
	runs := manyRuns(3)
	runs[0].Labels, runs[1].Labels = map[string]string{"currency": "EUR"}, map[string]string{"currency": "EUR"}
	runs[0].Payload = []byte(`"bug"`)
	errs := e.Start(t.Context(), anywhere, runs)
	for i, want := range map[int]string{0: "no such key", 2: "no currency"} {
		if !errors.Is(errs[i], engine.ErrUnavailable) || !errors.Is(errs[i], engine.ErrNotAsked) || !strings.Contains(errs[i].Error(), want) {
			t.Errorf("run %d: %v", i, errs[i])
		}
	}
	if by := counted.reset(); errs[1] != nil || by["StartWorkflowExecution"] != 1 {
		t.Errorf("the other run: %v, %v", errs[1], by)
	}
}

// hanging is a converter that never returns.
type hanging struct{ converter.DataConverter }

func (hanging) ToPayloads(...any) (*commonpb.Payloads, error) { select {} }

func TestCodecThatHangsHasADeadlineAndDoesNotPileUp(t *testing.T) {
	t.Parallel()
	e, _ := (&fake{}).serve(t, adapter.Options{Parallel: 2, Timeout: 5 * time.Millisecond, DataConverter: hanging{converter.GetDefaultDataConverter()}})
	for range 10 {
		for _, err := range e.Start(t.Context(), anywhere, manyRuns(20)) {
			if !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, engine.ErrNotAsked) {
				t.Fatalf("the error is %v", err)
			}
		}
	}
}

func TestResultThatNoCodecReadsNowIsReadLater(t *testing.T) {
	t.Parallel()
	codec := newCodecServer(t)
	result, err := codec.converter().ToPayloads("paid")
	if err != nil {
		t.Fatal(err)
	}
	ended := row("run-0", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	f := &fake{
		describe: func(*workflowservice.DescribeWorkflowExecutionRequest) (*workflowpb.WorkflowExecutionInfo, error) {
			return ended, nil
		},
		history: func(*workflowservice.GetWorkflowExecutionHistoryRequest) *historypb.HistoryEvent {
			return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
				WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{Result: result},
			}}
		},
	}
	e, _ := f.serve(t, adapter.Options{DataConverter: codec.converter()})
	target := engine.Target{Queue: "pay", Results: true}
	codec.away.Store(true)
	outcomes, err := e.Outcomes(t.Context(), target, []string{"run-0"})
	if !errors.Is(err, engine.ErrUnavailable) || len(outcomes) != 1 || outcomes[0].State != "" {
		t.Errorf("while the codec is away: %+v, %v", outcomes, err)
	}
	codec.away.Store(false)
	outcomes, err = e.Outcomes(t.Context(), target, []string{"run-0"})
	if err != nil || outcomes[0].State != engine.Completed || string(outcomes[0].Result) != `"paid"` {
		t.Errorf("when it is back: %+v, %v", outcomes, err)
	}
	codec.away.Store(true)
	ended.CloseTime.Seconds -= 3600
	outcomes, err = e.Outcomes(t.Context(), target, []string{"run-0"})
	if err != nil || outcomes[0].State != engine.Completed || outcomes[0].Result != nil {
		t.Errorf("when it was away for too long: %+v, %v", outcomes, err)
	}
}

// TestOneStartThatIsNeverAnsweredHoldsUpNoOther has a server that never answers for some workflows, as if it had lost a
// part of its history. All other workflows go on.
func TestOneStartThatIsNeverAnsweredHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	lost := make(chan string, 1)
	var asked atomic.Int64
	id := ""
	f := &fake{start: func(ctx context.Context, r *workflowservice.StartWorkflowExecutionRequest) error {
		select {
		case id = <-lost:
		default:
		}
		if r.GetWorkflowId() == id {
			asked.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}
	e, _ := f.serve(t, adapter.Options{Parallel: 1, Timeout: 500 * time.Millisecond})
	b := newBank(t)
	first := b.enqueue(1)
	lost <- "pay-" + first[0].String()
	b.dispatch(e)
	b.until("the first was asked for", func() bool { return asked.Load() > 0 })
	for range 5 {
		ids := b.enqueue(20)
		b.until("the others are dispatched", func() bool {
			for _, id := range ids {
				if job, err := b.client.Job(t.Context(), id); err != nil || job.State != sluice.StateDispatched {
					return false
				}
			}
			return true
		})
	}
	if job, err := b.client.Job(t.Context(), first[0]); err != nil || job.State != sluice.StateClaimed {
		t.Errorf("the one that is never answered is %s, %v", job.State, err)
	}
}
