package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/internal/counter"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

var (
	act     = sluice.Act{By: "ada", Reason: "to see it logged"}
	errGone = fmt.Errorf("the network is down: %w", sluice.ErrUnavailable)
)

// elsewhere lists the events that this run cannot cause, and the cause of each.
var elsewhere = map[*event.Event]string{
	event.NotUnblocked:      "a PostgreSQL whose connection is cut after a commit",
	event.NotNotified:       "a PostgreSQL whose connection is cut",
	event.LinesNotForgotten: "a PostgreSQL whose connection is cut",
	event.JobsMissing:       "a PostgreSQL out of which somebody deleted jobs; see store/postgres/orphan_test.go",
	event.SchedulesFailed:   "a Temporal server that is gone",
	event.AuditPruned:       "an upkeep of a store whose audit is a month old",
	event.OddLine:           "a program that `sluice work --batch` runs; see cmd/cli/testdata/script/log.txt",
	event.ProgramSaid:       "the same",
	event.NotReported:       "a worker whose store takes no reports; see worker/progress_test.go", event.NotCheckpointed: "a program whose job is lost while it runs",
	event.NoTraces:           "a command; see cmd/cli/testdata/script/traces.txt",
	event.TracesNotSent:      "the same",
	event.TracesIncomplete:   "a machine that does not know itself",
	event.CentreUnreachable:  "`sluice forward` to a centre that cannot be reached",
	event.GaugesNotRead:      "a command with --metrics whose store is gone",
	event.ServerAnswers:      "`sluice serve`; see cmd/cli/serve_test.go",
	event.ServerOpen:         "the same",
	event.StoreAwaited:       "the same",
	event.ServerStarted:      "the same",
	event.ServerDraining:     "the same",
	event.ServerStopped:      "the same",
	event.ServerMute:         "a server that hangs",
	event.ManagerNotNotified: "a systemd that is gone",
	event.RequestFailed:      "a fault of ours; see api/api_test.go", event.RequestUnanswered: "a store that is gone; see cmd/httpapi", event.RequestRefused: "a caller; see cmd/httpapi", event.CertificateKept: "a broken file; see cmd/cli/serve_api_test.go", event.SignedIn: "a person; see cmd/signin", event.SignInFailed: "a person; see cmd/signin", event.SessionsEndEarly: "a server; see cmd/cli/serve_signin_test.go",
}

// TestEveryEventIsInTheLogOfARun runs all parts of Sluice with every fault that a test can cause. The log must have
// every event of the table with its level and its fields, and nothing else.
func TestEveryEventIsInTheLogOfARun(t *testing.T) {
	t.Parallel()
	log := newJournal()
	for _, part := range []struct {
		name string
		run  func(t *testing.T, s *shop)
	}{
		{"work", work},
		{"trouble", trouble},
		{"drain", drain},
		{"duplicates", duplicates},
		{"tenants", tenants},
		{"deleted tenants", deletedTenants},
		{"dispatch", dispatch},
		{"engine trouble", engineCondition},
		{"upkeep", tend},
		{"schedules", fireSchedules},
		{"alerts", alerts},
		{"forward", send},
		{"record", record},
		{"too old", tooOld},
	} {
		t.Run(part.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, slog.New(log))
				part.run(t, s)
				s.end()
			})
		})
	}
	for _, l := range log.all() {
		checkLine(t, l)
	}
	for _, e := range event.All() {
		switch seen, why := log.count(e) > 0, elsewhere[e]; {
		case !seen && why == "":
			t.Errorf("`%s` was not logged", e.Name)
		case seen && why != "":
			t.Errorf("`%s` was logged; is it not %s that does?", e.Name, why)
		}
	}
}

// checkLine compares a line with the table.
func checkLine(t *testing.T, l line) {
	i := slices.IndexFunc(event.All(), func(e *event.Event) bool { return e.Name == l.message })
	if i < 0 {
		t.Errorf("`%s` is not in the table", l.message)
		return
	}
	e := event.All()[i]
	if e != event.LinesLeftOut && l.level != e.Level {
		t.Errorf("`%s` has level %s, want %s", l.message, l.level, e.Level)
	}
	for _, field := range e.Must() {
		if v, there := l.fields[field]; !there || v.String() == "" {
			t.Errorf("`%s` lacks %s: %v", l.message, field, l.fields)
		}
	}
	for field := range l.fields {
		if !slices.Contains(append(e.May(), "holder"), field) {
			t.Errorf("`%s` has a field %s that the table lacks", l.message, field)
		}
	}
	if _, there := l.fields["holder"]; !there && !slices.Contains([]*event.Event{event.SettingsRefused, event.JobDuplicate, event.LinesLeftOut}, e) {
		t.Errorf("`%s` lacks its holder", l.message)
	}
}

// shop is a store and those who work on it, in a bubble of fake time.
type shop struct {
	*testing.T
	store  *shaky
	client *sluice.Client
	logger *slog.Logger
	ctx    context.Context
	end    func()
}

func newShop(t *testing.T, logger *slog.Logger) *shop {
	ctx, cancel := context.WithCancel(t.Context())
	store := newShaky(memory.New(memory.Options{}))
	return &shop{t, store, sluice.NewClient(store.Store, sluice.ClientOptions{}), logger, ctx, func() {
		cancel()
		synctest.Wait()
		time.Sleep(time.Hour) // longer than any drain takes
		synctest.Wait()
	}}
}

// queue stores a queue.
func (s *shop) queue(name string, change func(*sluice.Settings)) {
	s.Helper()
	settings := sluice.DefaultSettings()
	settings.Backoff = sluice.Backoff{Base: time.Second, Factor: 1, Max: time.Second}
	change(&settings)
	_, err := s.client.EnsureQueue(s.ctx, name, settings, act)
	must(s.T, err)
}

func (s *shop) add(queue, payload, tenant string) sluice.ID {
	s.Helper()
	receipt, err := s.client.Enqueue(s.ctx, sluice.NewJob{Queue: queue, Payload: []byte(payload), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant}})
	must(s.T, err)
	return receipt.ID
}

// after lets fake time pass.
func (s *shop) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// hire starts a worker. The payload of a job decides how its handler ends.
func (s *shop) hire(queues ...string) (dismiss func()) {
	ctx, dismiss := context.WithCancel(s.ctx)
	w := worker.New(s.store, worker.Options{Logger: s.logger, Drain: 5 * time.Second, OnFailure: func(context.Context, worker.Failure) { panic("the tracker is broken") }})
	for _, queue := range queues {
		worker.Handle(w, sluice.QueueOf[string](queue), func(ctx context.Context, job *worker.Job[string]) error {
			switch job.Payload {
			case "fails":
				return errors.New("no luck")
			case "never":
				return worker.Permanent(errors.New("no such account"))
			case "later":
				if job.Releases == 0 {
					return worker.Snooze(time.Second)
				}
			case "slow":
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Second):
				}
			}
			return nil
		}, worker.QueueOptions{})
	}
	go func() { _ = w.Run(ctx) }()
	return dismiss
}

func work(t *testing.T, s *shop) {
	s.queue("mail", func(q *sluice.Settings) { q.MaxAttempts = 2 })
	for _, payload := range []string{`"fine"`, `"fails"`, `"never"`, `"later"`} {
		s.add("mail", payload, "acme")
	}
	for range 30 {
		s.add("mail", `"fine"`, "")
	}
	s.hire("mail")
	s.after(15 * time.Second)
	must(t, s.client.Pause(s.ctx, "mail", act))
	s.after(3 * time.Second)
	must(t, s.client.Resume(s.ctx, "mail", act))
	slow := s.add("mail", `"slow"`, "")
	s.after(3 * time.Second)
	must(t, s.client.Cancel(s.ctx, []sluice.ID{slow}, act))
	s.after(3 * time.Second)
}

// trouble makes the store fail the verbs that a worker calls.
func trouble(_ *testing.T, s *shop) {
	s.queue("mail", func(*sluice.Settings) {})
	s.store.fail(errGone, "watch", "claim")
	s.hire("mail")
	s.after(time.Second)
	s.store.fail(errGone, "beat")
	s.after(11 * time.Second)
	s.store.fail(nil, "watch", "claim", "beat")
	s.add("mail", `"slow"`, "")
	s.after(3 * time.Second)
	s.store.fail(errGone, "renew")
	s.after(10 * time.Second)
	s.store.fail(nil, "renew")
	s.store.fail(errGone, "settle")
	s.after(20 * time.Second)
	s.store.fail(nil, "settle")
	s.after(5 * time.Second)
	s.store.fail(sluice.ErrLost, "settled")
	s.add("mail", `"fine"`, "")
	s.after(3 * time.Second)
	s.store.fail(nil, "settled")
	s.store.fail(errors.New("lease must be longer"), "settings")
	s.after(2 * time.Minute)
}

// tooOld makes the store answer as if a newer program had migrated it, and then as before, twice. The worker must log
// the change once each time.
func tooOld(t *testing.T, s *shop) {
	journal := s.logger.Handler().(*journal)
	s.queue("mail", func(*sluice.Settings) {})
	s.hire("mail")
	s.after(time.Second)
	before := journal.count(event.ClaimFailed)
	for range 2 {
		s.store.fail(sluice.ErrNewerSchema, "claim", "beat", "renew", "settle", "watch")
		s.after(10 * time.Minute)
		s.store.fail(nil, "claim", "beat", "renew", "settle", "watch")
		s.after(2 * time.Minute)
	}
	if told, failed := journal.count(event.ProgramTooOld), journal.count(event.ClaimFailed)-before; told != 2 || failed != 0 {
		t.Errorf("it was told %d times, want 2, beside %d failed claims", told, failed)
	}
}

// drain ends a worker that cannot settle its jobs.
func drain(_ *testing.T, s *shop) {
	s.queue("mail", func(*sluice.Settings) {})
	s.add("mail", `"slow"`, "")
	dismiss := s.hire("mail")
	s.after(2 * time.Second)
	s.store.fail(errGone, "settle", "leave")
	dismiss()
	s.after(time.Minute)
}

// engine starts an engine on a store of its own. The payload of a run decides how the run ends.
func (s *shop) engine() *moody {
	e := local.New(memory.New(memory.Options{}), local.Options{Worker: worker.Options{Logger: s.logger}})
	local.Handle(e, "pay", func(_ context.Context, run *local.Run[string]) (any, error) {
		if run.Input == "fails" {
			return nil, errors.New("no luck")
		}
		return nil, nil
	}, worker.QueueOptions{})
	go func() { _ = e.Run(s.ctx) }()
	return &moody{Engine: e, work: make(map[string]string), other: sluice.NewID()}
}

// serve starts a dispatcher and an upkeep.
func (s *shop) serve(runner engine.Engine) {
	engines := map[string]engine.Engine{"local": runner}
	go func() { _ = dispatcher.New(s.store, dispatcher.Options{Engines: engines, Logger: s.logger}).Run(s.ctx) }()
	go func() { _ = upkeep.New(s.store, upkeep.Options{Engines: engines, Logger: s.logger}).Run(s.ctx) }()
}

func onEngine(q *sluice.Settings) {
	q.Engine, q.RunType, q.MaxAttempts, q.RetryRuns = "local", "pay", 2, true
}

func dispatch(t *testing.T, s *shop) {
	s.queue("pay", func(q *sluice.Settings) {
		onEngine(q)
		q.RunTaskQueue = "payers"
	})
	engine := s.engine()
	labelled, err := s.client.Enqueue(s.ctx, sluice.NewJob{Queue: "pay", Payload: []byte(`"fine"`), EnqueueOptions: sluice.EnqueueOptions{
		Labels: map[string]string{"definition": "onboarding", "country": "DE"},
	}})
	must(t, err)
	s.add("pay", `"fine"`, "acme")
	s.add("pay", `"fails"`, "")
	s.serve(engine)
	s.after(40 * time.Second)
	var said []string
	for _, l := range s.logger.Handler().(*journal).all() {
		if l.message == event.JobDispatching.Name && l.fields["job"].String() == labelled.ID.String() {
			said = append(said, l.fields["type"].String(), l.fields["task_queue"].String(), l.fields["labels"].String())
		}
	}
	if want := []string{"pay", "payers", "country=DE,definition=onboarding"}; !slices.Equal(said, want) {
		t.Errorf("the line says %q of what is started, want %q", said, want)
	}
	must(t, s.client.Pause(s.ctx, "pay", act))
	s.after(3 * time.Second)
	must(t, s.client.Resume(s.ctx, "pay", act))
	s.store.fail(sluice.ErrLost, "intend")
	s.add("pay", `"fine"`, "")
	s.after(2 * time.Second)
	s.store.fail(nil, "intend")
	s.store.fail(errGone, "note", "beat", "watch", "claim")
	s.after(10 * time.Second)
	s.store.fail(nil, "note", "beat", "watch", "claim")
	s.store.fail(errGone, "note")
	s.add("pay", `"fine"`, "")
	s.after(5 * time.Second)
}

// engineCondition makes an engine refuse, delay or lose what a dispatcher asks for.
func engineCondition(t *testing.T, s *shop) {
	s.queue("pay", func(q *sluice.Settings) {
		onEngine(q)
		q.RunRef = "pay-{key}"
	})
	runner := s.engine()
	s.serve(runner)
	for _, mood := range []error{engine.ErrRefused, engine.ErrBusy, engine.ErrUnavailable} {
		runner.set(func(m *moody) { m.start = fmt.Errorf("start: %w", mood) })
		_, err := s.client.Enqueue(s.ctx, sluice.NewJob{Queue: "pay", Payload: []byte(`"fine"`), EnqueueOptions: sluice.EnqueueOptions{Key: mood.Error()}})
		must(t, err)
		s.after(8 * time.Second)
	}
	runner.set(func(m *moody) { m.start = nil })
	s.after(20 * time.Second)
	runner.set(func(m *moody) { m.start, m.adopts = fmt.Errorf("start: %w", engine.ErrRefTaken), true })
	_, err := s.client.Enqueue(s.ctx, sluice.NewJob{Queue: "pay", Payload: []byte(`"fine"`), EnqueueOptions: sluice.EnqueueOptions{Key: "twin"}})
	must(t, err)
	s.after(5 * time.Second)
	runner.set(func(m *moody) { m.adopts, m.absent = false, true })
	s.after(time.Minute)
	runner.set(func(m *moody) { m.report = &engine.Report{Retention: time.Minute} })
	s.after(11 * time.Minute)
}

func tend(t *testing.T, s *shop) {
	s.queue("mail", func(q *sluice.Settings) { q.Lease = time.Second })
	s.add("mail", `"fine"`, "")
	_, err := s.store.Claim(s.ctx, sluice.ClaimRequest{Queue: "mail", Limit: 1, Holder: "dead:1:x", Lease: time.Second, Token: sluice.NewToken()})
	must(t, err)
	queue, err := s.client.Queue(s.ctx, "mail")
	must(t, err)
	queue.Scheduled = json.RawMessage(`[{"id": 7, "window": {"from": "00:00", "to": "24:00", "zone": "Mars/Olympus"}, "set": {"max_attempts": "9"}, "made_by": "ada"}]`)
	_, err = s.store.SaveQueue(s.ctx, queue, act)
	must(t, err)
	s.queue("old", func(*sluice.Settings) {})
	s.add("old", `"fine"`, "")
	_, err = operation.Start(s.ctx, s.store, operation.Operation{Kind: operation.KindCancel, Query: search.Query{Queue: "old"}}, act)
	must(t, err)
	s.store.fail(errGone, "expire", "leave")
	go func() { _ = upkeep.New(s.store, upkeep.Options{Logger: s.logger}).Run(s.ctx) }()
	s.after(30 * time.Second)
	s.store.fail(errGone, "lead")
	s.after(3 * time.Second)
}

// deaf is an alert receiver that is always unreachable.
type deaf struct{}

func (deaf) Name() string { return "deaf" }

func (deaf) Notify(context.Context, alert.Message) error { return errGone }

// alerts makes one alert fire whose receiver is unreachable, end it, and silence another alert.
func alerts(t *testing.T, s *shop) {
	s.queue("mail", func(q *sluice.Settings) { q.MaxAttempts = 1 })
	s.queue("chat", func(q *sluice.Settings) { q.MaxAttempts = 1 })
	_, err := alert.StartSilence(s.ctx, s.store, alert.Silence{Queue: "chat", During: 24 * time.Hour}, act)
	must(t, err)
	var dead []sluice.ID
	for _, queue := range []string{"mail", "chat"} {
		_, _, err = alert.SetRule(s.ctx, s.store, "dead-letters", queue, act, func(r *alert.Rule) error { r.Threshold = 0; return nil })
		must(t, err)
		id := s.add(queue, `"fine"`, "")
		token := sluice.NewToken()
		_, err = s.store.Claim(s.ctx, sluice.ClaimRequest{Queue: queue, Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: token})
		must(t, err)
		_, err = s.store.Settle(s.ctx, []sluice.Settlement{{ID: id, Token: token, Holder: "h:1:x", Event: sluice.EventBury, Error: "no"}})
		must(t, err)
		dead = append(dead, id)
	}
	tend := func(d time.Duration) {
		ctx, stop := context.WithTimeout(s.ctx, d)
		defer stop()
		_ = upkeep.New(s.store, upkeep.Options{Logger: s.logger, Interval: 20 * time.Minute, Receivers: []alert.Receiver{deaf{}}}).Run(ctx)
	}
	tend(time.Hour)
	must(t, s.client.Delete(s.ctx, dead[:1], act))
	tend(time.Hour)
	s.after(alert.NotificationKept)
	tend(2 * time.Hour)
}

func record(t *testing.T, s *shop) {
	s.store.fail(errGone, "now")
	tally := counter.New(s.store, counter.Options{Logger: s.logger})
	defer tally.Close()
	tally.Moved("mail", "", sluice.EventEnqueue, 1)
	s.after(time.Minute)
	s.store.fail(nil, "now")
}

func send(t *testing.T, s *shop) {
	s.queue("events", func(q *sluice.Settings) { q.PayloadLimit = 1 << 20 })
	centre := newShaky(memory.New(memory.Options{}))
	there := sluice.NewClient(centre.Store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.PayloadLimit, settings.KeepCompleted, settings.KeepCancelled, settings.KeepDead = 1024, time.Minute, time.Minute, time.Minute
	_, err := there.EnsureQueue(s.ctx, "events", settings, act)
	must(t, err)
	long, err := json.Marshal(string(make([]byte, 2048)))
	must(t, err)
	s.add("events", `"fine"`, "")
	s.add("events", string(long), "")
	to := func(name string) {
		f := forward.New(s.store, centre, forward.Options{Queues: []string{"events"}, Centre: name, Logger: s.logger})
		go func() { _ = f.Run(s.ctx) }()
	}
	s.store.fail(errGone, "beat", "watch", "leave")
	to("hq")
	s.after(10 * time.Second)
	centre.fail(errGone, "queues")
	s.after(time.Minute)
	centre.fail(nil, "queues")
	s.after(2 * time.Minute)
	// One job was sent so long ago that the centre has forgotten it. The other job was sent to another centre.
	for _, name := range []string{"hq", "elsewhere"} {
		s.add("other", `"fine"`, "")
		claimed, err := s.store.Claim(s.ctx, sluice.ClaimRequest{Queue: "other", Limit: 1, Holder: "dead:1:x", Lease: time.Second, Token: sluice.NewToken()})
		must(t, err)
		_, err = engine.Given(s.store).RecordIntent(s.ctx, []engine.Intent{{ID: claimed.Jobs[0].ID, Token: claimed.Jobs[0].Token, Ref: "since 2000-01-01T00:00:00Z", Engine: "forward/" + name, Lease: time.Second}})
		must(t, err)
	}
	f := forward.New(s.store, centre, forward.Options{Queues: []string{"other"}, Centre: "hq", Logger: s.logger})
	_, err = there.EnsureQueue(s.ctx, "other", settings, act)
	must(t, err)
	go func() { _ = f.Run(s.ctx) }()
	s.after(10 * time.Second)
}
