package trace_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/trace"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/step"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

func TestAWorkersJobIsInTheTraceOfWhoEnqueuedIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	producer, consumer := newProcess(), newProcess()
	client := clientOf(t, observe.Store(opened(t, path), producer.observer), "mail", nil)
	ctx := producer.caller(t.Context())
	id := enqueue(t, ctx, client, sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}})

	there := observe.Store(opened(t, path), consumer.observer)
	works := worker.New(there, worker.Options{Poll: time.Millisecond, Logger: quiet})
	worker.Handle(works, sluice.QueueOf[any]("mail"), func(ctx context.Context, _ *worker.Job[any]) error {
		_, span := consumer.provider.Tracer("test").Start(ctx, "send")
		span.End()
		return nil
	}, worker.QueueOptions{})
	stop := working(t, works.Run)
	await(t, client, id, sluice.StateCompleted)
	stop()

	request, sent := producer.one(t, "request"), producer.one(t, "enqueue mail")
	wantParent(t, sent, request)
	handled := consumer.one(t, "handle mail")
	wantParent(t, handled, sent)
	if !handled.Parent.IsRemote() {
		t.Error("the producer's span is not known to be of another process")
	}
	wantParent(t, consumer.one(t, "send"), handled)
	for _, name := range []string{"claim mail", "settle mail"} { // on a busy machine the worker may hand the job back and claim it again
		spans := consumer.named(name)
		if len(spans) == 0 {
			t.Fatalf("there is no span %q", name)
		}
		wantLink(t, spans[0], sent)
	}
	if sent.SpanKind != api.SpanKindProducer || handled.SpanKind != api.SpanKindConsumer {
		t.Errorf("the kinds are %s and %s", sent.SpanKind, handled.SpanKind)
	}
	wantAttrs(t, sent, map[string]string{
		"messaging.system": "sluice", "messaging.operation.type": "send", "messaging.operation.name": "enqueue",
		"messaging.destination.name": "mail", "messaging.message.id": id.String(), "sluice.tenant": "acme",
		"db.system.name": "sqlite", "db.operation.name": "enqueue",
	})
	wantAttrs(t, handled, map[string]string{
		"messaging.operation.type": "process", "messaging.destination.name": "mail", "messaging.message.id": id.String(),
		"sluice.attempt": "1", "sluice.tenant": "acme",
	})
	wantAttrs(t, consumer.named("claim mail")[0], map[string]string{"messaging.operation.type": "receive", "messaging.batch.message_count": "1"})
	for _, name := range consumer.names() {
		if !slices.Contains([]string{"claim mail", "handle mail", "send", "settle mail"}, name) {
			t.Errorf("the worker made a span %q", name)
		}
	}
}

// yard is a dispatcher with the local engine and an upkeep on one store. Each of them has its own trace provider.
type yard struct {
	producer, dispatches, tends, runs *process
	store                             sluice.Store
	client                            *sluice.Client
	dispatcher                        *dispatcher.Dispatcher
	upkeep                            *upkeep.Upkeep
	stop                              func()
}

func newYard(t *testing.T, do func(ctx context.Context) error) *yard {
	t.Helper()
	y := &yard{producer: newProcess(), dispatches: newProcess(), tends: newProcess(), runs: newProcess()}
	store := memory.New(memory.Options{})
	y.store = store
	y.client = clientOf(t, observe.Store(store, y.producer.observer), "pay", func(s *sluice.Settings) {
		s.Engine, s.RunType = "local", "charge"
	})
	runStore := memory.New(memory.Options{})
	executes := local.New(observe.Store(runStore, y.runs.observer), local.Options{Worker: worker.Options{Poll: time.Millisecond, Logger: quiet}})
	local.Handle(executes, "charge", func(ctx context.Context, _ *local.Run[any]) (any, error) { return nil, do(ctx) }, worker.QueueOptions{})
	y.stop = working(t, executes.Run)
	engineFor := func(p *process) map[string]engine.Engine {
		inner := local.New(runStore, local.Options{Worker: worker.Options{Logger: quiet}})
		return map[string]engine.Engine{"local": observe.Engine(inner, "local", p.observer)}
	}
	y.dispatcher = dispatcher.New(observe.Store(store, y.dispatches.observer), dispatcher.Options{Engines: engineFor(y.dispatches), Logger: quiet, Batch: 1000})
	y.upkeep = upkeep.New(observe.Store(store, y.tends.observer), upkeep.Options{Engines: engineFor(y.tends), Logger: quiet})
	return y
}

func (y *yard) cycle(t *testing.T) {
	t.Helper()
	if _, err := y.dispatcher.Once(t.Context(), "pay"); err != nil {
		t.Fatal(err)
	}
}

func (y *yard) tend(t *testing.T) {
	t.Helper()
	if _, err := y.upkeep.Once(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}

func TestADispatchedJobsRunContinuesItsTrace(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	y := newYard(t, func(context.Context) error {
		defer close(done)
		return errors.New("no funds; card 4111 1111 1111 1111")
	})
	id := enqueue(t, y.producer.caller(t.Context()), y.client, sluice.NewJob{Queue: "pay"})
	y.cycle(t)
	<-done
	y.stop()
	y.tend(t)
	await(t, y.client, id, sluice.StateDead)

	sent := y.producer.one(t, "enqueue pay")
	cycle, dispatched := y.dispatches.one(t, "cycle pay"), y.dispatches.one(t, "dispatch pay")
	for _, name := range []string{"claim pay", "record_intent", "start pay", "settle pay"} {
		wantParent(t, y.dispatches.one(t, name), cycle)
	}
	if cycle.Parent.IsValid() {
		t.Error("the cycle is in somebody's trace")
	}
	wantLink(t, cycle, sent)
	wantParent(t, dispatched, sent)
	wantLink(t, dispatched, y.dispatches.one(t, "start pay"))
	wantAttrs(t, dispatched, map[string]string{"sluice.engine": "local", "sluice.ref": "pay-" + id.String(), "messaging.message.id": id.String()})
	wantAttrs(t, cycle, map[string]string{"sluice.jobs": "1", "sluice.step": "cycle"})

	handled := y.runs.one(t, "handle local:charge")
	wantParent(t, handled, dispatched)
	for _, span := range []tracetest.SpanStub{handled, y.tends.one(t, "run pay")} {
		if span.Status.Code != codes.Error || strings.Contains(fmt.Sprint(span.Status, span.Events, span.Attributes), "1111 1111") {
			t.Errorf("span %q tells of the failure as %+v, %+v, %+v", span.Name, span.Status, span.Events, span.Attributes)
		}
	}
	ended := y.tends.one(t, "run pay")
	wantParent(t, ended, sent)
	wantLink(t, ended, y.tends.one(t, "follow pay"))
	wantAttrs(t, ended, map[string]string{"sluice.event": "bury", "messaging.message.id": id.String()})
	if !ended.StartTime.Before(ended.EndTime) {
		t.Error("the run took no time")
	}
}

func TestAJobWithoutATraceBeginsOne(t *testing.T) {
	t.Parallel()
	y := newYard(t, func(context.Context) error { return nil })
	enqueue(t, t.Context(), sluice.NewClient(y.store, sluice.ClientOptions{}), sluice.NewJob{Queue: "pay"})
	y.cycle(t)
	dispatched := y.dispatches.one(t, "dispatch pay")
	if dispatched.Parent.IsValid() {
		t.Error("the job is in somebody else's trace")
	}
	wantLink(t, dispatched, y.dispatches.one(t, "start pay"))
	if cycle := y.dispatches.one(t, "cycle pay"); len(cycle.Links) > 0 {
		t.Errorf("the cycle has %d links", len(cycle.Links))
	}
}

func TestABatchIsNoTreeThatNobodyCanRead(t *testing.T) {
	t.Parallel()
	y := newYard(t, func(context.Context) error { return nil })
	jobs := make([]sluice.NewJob, 500)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: "pay", Payload: []byte(`{}`)}
	}
	if _, err := y.client.EnqueueMany(y.producer.caller(t.Context()), jobs[:250]); err != nil {
		t.Fatal(err)
	}
	if _, err := y.client.EnqueueMany(t.Context(), jobs[250:]); err != nil {
		t.Fatal(err)
	}
	y.cycle(t)
	cycle := y.dispatches.one(t, "cycle pay")
	inCycle := 0
	for _, span := range y.dispatches.spans.GetSpans() {
		if span.SpanContext.TraceID() == cycle.SpanContext.TraceID() {
			inCycle++
		}
	}
	if inCycle != 5 {
		t.Errorf("%d spans are in the cycle's trace, want 5: cycle, claim, record_intent, start, settle", inCycle)
	}
	if len(cycle.Links) != trace.DefaultLinks {
		t.Errorf("the cycle has %d links, want %d", len(cycle.Links), trace.DefaultLinks)
	}
	if got := len(y.dispatches.named("dispatch pay")); got != 500 {
		t.Errorf("%d jobs have spans, want 500", got)
	}
}

func TestWhoFindsNothingToDoMakesNoSpans(t *testing.T) {
	t.Parallel()
	y := newYard(t, func(context.Context) error { return nil })
	for range 3 {
		y.cycle(t)
		y.tend(t)
	}
	y.stop()
	idle := newProcess()
	store := observe.Store(memory.New(memory.Options{}), idle.observer)
	client := clientOf(t, store, "mail", nil)
	looked := make(chan struct{}, 100)
	works := worker.New(observe.Store(store, counter(func(c *observe.Call) {
		if c.Name == "claim" || c.Name == "next_due" {
			looked <- struct{}{}
		}
	})), worker.Options{Poll: time.Millisecond, Logger: quiet})
	worker.Handle(works, sluice.QueueOf[any]("mail"), func(context.Context, *worker.Job[any]) error { return nil }, worker.QueueOptions{})
	stop := working(t, works.Run)
	for range 3 {
		<-looked
	}
	stop()
	if _, err := client.Queue(t.Context(), "mail"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*process{y.dispatches, y.tends, idle} {
		if len(p.names()) > 0 {
			t.Errorf("spans were made: %q", p.names())
		}
	}
}

// counter is an observer that gets each call when it ends.
type counter func(c *observe.Call)

func (count counter) Begin(ctx context.Context, _ *observe.Call) context.Context { return ctx }
func (count counter) End(_ context.Context, c *observe.Call)                     { count(c) }

func TestAStepThatFailsIsTold(t *testing.T) {
	t.Parallel()
	p := newProcess()
	ctx := p.observer.Begin(t.Context(), &observe.Call{Kind: observe.KindStep, Name: step.Cycle, Queue: "pay", Began: time.Now()})
	claim := &observe.Call{Kind: observe.KindStore, Name: "claim", Queue: "pay", Began: time.Now()}
	claim.Err = fmt.Errorf("claim: %w: password=hunter2hunter2", sluice.ErrUnavailable)
	p.observer.End(p.observer.Begin(ctx, claim), claim)
	p.observer.End(ctx, &observe.Call{Kind: observe.KindStep, Name: step.Cycle, Queue: "pay", Began: time.Now(), Err: claim.Err})
	cycle := p.one(t, "cycle pay")
	failed := p.one(t, "claim pay")
	wantParent(t, failed, cycle)
	wantAttrs(t, failed, map[string]string{"error.type": "unavailable"})
	if cycle.Status.Code != codes.Error || len(cycle.Events) != 1 {
		t.Errorf("the cycle ended as %+v with %d events", cycle.Status, len(cycle.Events))
	}
	if told := fmt.Sprint(cycle.Status, cycle.Events, failed.Status, failed.Events); strings.Contains(told, "hunter2") {
		t.Errorf("a secret is in the spans: %s", told)
	}
}

func TestWhatIsNotSampledAtTheBeginningIsNotSampledLater(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	producer := newProcess(sdk.WithSampler(sdk.NeverSample()))
	consumer := newProcess()
	client := clientOf(t, observe.Store(store, producer.observer), "mail", nil)
	id := enqueue(t, t.Context(), client, sluice.NewJob{Queue: "mail"})
	works := worker.New(observe.Store(store, consumer.observer), worker.Options{Poll: time.Millisecond, Logger: quiet})
	worker.Handle(works, sluice.QueueOf[any]("mail"), func(context.Context, *worker.Job[any]) error { return nil }, worker.QueueOptions{})
	stop := working(t, works.Run)
	await(t, client, id, sluice.StateCompleted)
	stop()
	if len(consumer.named("handle mail")) > 0 || len(producer.names()) > 0 {
		t.Errorf("spans were made of the job: %q and %q", producer.names(), consumer.names())
	}
}

func TestAnAttemptThatWasHandedBackHasNotFailed(t *testing.T) {
	t.Parallel()
	p := newProcess()
	store := observe.Store(memory.New(memory.Options{}), p.observer)
	client := clientOf(t, store, "mail", nil)
	id := enqueue(t, t.Context(), client, sluice.NewJob{Queue: "mail"})
	works := worker.New(store, worker.Options{Poll: time.Millisecond, Logger: quiet})
	first := true
	worker.Handle(works, sluice.QueueOf[any]("mail"), func(context.Context, *worker.Job[any]) error {
		if first {
			first = false
			return worker.Snooze(time.Millisecond)
		}
		return nil
	}, worker.QueueOptions{Slots: 1})
	stop := working(t, works.Run)
	await(t, client, id, sluice.StateCompleted)
	stop()
	handled := p.named("handle mail")
	if len(handled) != 2 {
		t.Fatalf("the job was handled %d times, want 2", len(handled))
	}
	for _, span := range handled {
		if span.Status.Code != codes.Unset {
			t.Errorf("the span ended as %+v", span.Status)
		}
	}
}

func TestCallsOfAProgramAreInItsSpan(t *testing.T) {
	t.Parallel()
	p := newProcess()
	client := clientOf(t, observe.Store(memory.New(memory.Options{}), p.observer), "mail", nil)
	ctx, span := p.provider.Tracer("test").Start(t.Context(), "request")
	if _, err := client.Job(ctx, sluice.NewID()); !errors.Is(err, sluice.ErrNotFound) {
		t.Fatal(err)
	}
	span.End()
	job := p.one(t, "job")
	wantParent(t, job, p.one(t, "request"))
	wantAttrs(t, job, map[string]string{"db.system.name": "sqlite", "db.operation.name": "job", "error.type": "not_found"})
	for _, a := range job.Attributes {
		if a.Key == attribute.Key("db.query.text") {
			t.Error("the statement is told")
		}
	}
}

func TestAStepThatIsToldToEndIsNotTold(t *testing.T) {
	t.Parallel()
	p := newProcess()
	ctx, stop := context.WithCancel(t.Context())
	ctx = p.observer.Begin(ctx, &observe.Call{Kind: observe.KindStep, Name: step.Upkeep, Began: time.Now()})
	stop()
	prune := &observe.Call{Kind: observe.KindStore, Name: "prune", Began: time.Now(), Err: ctx.Err()}
	p.observer.End(p.observer.Begin(ctx, prune), prune)
	p.observer.End(ctx, &observe.Call{Kind: observe.KindStep, Name: step.Upkeep, Began: time.Now(), Err: ctx.Err()})
	if len(p.names()) > 0 {
		t.Errorf("spans were made: %q", p.names())
	}
}

func TestWhoRunsInASpanIsNotInItsTraceForEver(t *testing.T) {
	t.Parallel()
	p := newProcess()
	store := observe.Store(memory.New(memory.Options{}), p.observer)
	client := clientOf(t, store, "mail", nil)
	id := enqueue(t, t.Context(), client, sluice.NewJob{Queue: "mail"})
	works := worker.New(store, worker.Options{Poll: time.Millisecond, Logger: quiet})
	worker.Handle(works, sluice.QueueOf[any]("mail"), func(context.Context, *worker.Job[any]) error { return nil }, worker.QueueOptions{})
	program, span := p.provider.Tracer("test").Start(context.Background(), "program")
	stop := working(t, func(ctx context.Context) error { return works.Run(api.ContextWithSpan(ctx, span)) })
	await(t, client, id, sluice.StateCompleted)
	stop()
	round := &observe.Call{Kind: observe.KindStep, Name: step.Upkeep, Began: time.Now(), Jobs: 1}
	p.observer.End(p.observer.Begin(program, round), round)
	span.End()
	for _, made := range p.spans.GetSpans() {
		if made.Name != "program" && made.SpanContext.TraceID() == span.SpanContext().TraceID() {
			t.Errorf("span %q is in the program's trace", made.Name)
		}
	}
	wantLink(t, p.one(t, "upkeep"), p.one(t, "program"))
}

func TestACallKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	p := newProcess()
	within := p.observer.Begin(t.Context(), &observe.Call{Kind: observe.KindStep, Name: step.Cycle, Queue: "pay", Began: time.Now()})
	limited, stop := context.WithTimeout(within, time.Hour)
	defer stop()
	for _, call := range []*observe.Call{
		{Kind: observe.KindStore, Name: "enqueue", Inserts: make([]sluice.Insert, 1), Began: time.Now()},
		{Kind: observe.KindEngine, Name: "start", Runs: make([]engine.Run, 1), Began: time.Now()},
		{Kind: observe.KindStore, Name: "claim", Began: time.Now()},
	} {
		if _, has := p.observer.Begin(limited, call).Deadline(); !has {
			t.Errorf("%s lost its deadline", call.Name)
		}
	}
}
