package event_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
)

// journal keeps the lines of a log.
type journal struct {
	mu    *sync.Mutex
	lines *[]line
	attrs []slog.Attr
}

type line struct {
	message string
	level   slog.Level
	fields  map[string]slog.Value
}

func newJournal() *journal { return &journal{mu: new(sync.Mutex), lines: new([]line)} }

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &journal{j.mu, j.lines, append(attrs, j.attrs...)}
}

func (j *journal) WithGroup(string) slog.Handler { return j }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	l := line{r.Message, r.Level, make(map[string]slog.Value)}
	for _, a := range j.attrs {
		l.fields[a.Key] = a.Value
	}
	r.Attrs(func(a slog.Attr) bool {
		l.fields[a.Key] = a.Value
		return true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	*j.lines = append(*j.lines, l)
	return nil
}

func (j *journal) all() []line {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]line(nil), *j.lines...)
}

// count returns the number of lines of an event.
func (j *journal) count(e *event.Event) (n int) {
	for _, l := range j.all() {
		if l.message == e.Name {
			n++
		}
	}
	return n
}

// shaky is a store whose verbs can be made to fail.
type shaky struct {
	sluice.Store
	runs
	processes
	mu    sync.Mutex
	fails map[string]error
}

func newShaky(store sluice.Store) *shaky {
	return &shaky{Store: store, runs: engine.Given(store), processes: presence.Given(store), fails: make(map[string]error)}
}

// The embedded ports need names of their own, because all are named Store.
type (
	runs      = engine.Store
	processes = presence.Store
)

func (s *shaky) AddStats(ctx context.Context, holder string, stats []stat.Stat) error {
	return stat.Given(s.Store).AddStats(ctx, holder, stats)
}

// Unwrap returns the decorated store.
func (s *shaky) Unwrap() sluice.Store { return s.Store }

// fail makes verbs fail with err from now on; with nil they work again.
func (s *shaky) fail(err error, verbs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, verb := range verbs {
		s.fails[verb] = err
	}
}

func (s *shaky) fault(verb string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fails[verb]
}

func (s *shaky) Claim(ctx context.Context, r sluice.ClaimRequest) (sluice.Claimed, error) {
	if err := s.fault("claim"); err != nil {
		return sluice.Claimed{}, err
	}
	return s.Store.Claim(ctx, r)
}

func (s *shaky) Renew(ctx context.Context, renewals []sluice.Renewal) ([]sluice.ID, error) {
	if err := s.fault("renew"); err != nil {
		return nil, err
	}
	return s.Store.Renew(ctx, renewals)
}

// Settle fails as a whole for the verb `settle`, and for each claim for the verb `settled`.
func (s *shaky) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	if err := s.fault("settle"); err != nil {
		return nil, err
	}
	if err := s.fault("settled"); err != nil {
		errs := make([]error, len(settlements))
		for i := range errs {
			errs[i] = err
		}
		return errs, nil
	}
	return s.Store.Settle(ctx, settlements)
}

func (s *shaky) RecordIntent(ctx context.Context, intents []engine.Intent) ([]error, error) {
	errs, err := s.runs.RecordIntent(ctx, intents)
	if lost := s.fault("intend"); lost != nil {
		errs[0] = lost
	}
	return errs, err
}

func (s *shaky) Expire(ctx context.Context, limit int, by string) (int, error) {
	if err := s.fault("expire"); err != nil {
		return 0, err
	}
	return s.Store.Expire(ctx, limit, by)
}

func (s *shaky) AppendAudit(ctx context.Context, entries []sluice.AuditEntry) error {
	if err := s.fault("note"); err != nil {
		return err
	}
	return s.Store.AppendAudit(ctx, entries)
}

func (s *shaky) Heartbeat(ctx context.Context, h presence.Holder) (presence.Instruction, error) {
	if err := s.fault("beat"); err != nil {
		return presence.Instruction{}, err
	}
	return s.processes.Heartbeat(ctx, h)
}

func (s *shaky) Deregister(ctx context.Context, id string) error {
	if err := s.fault("leave"); err != nil {
		return err
	}
	return s.processes.Deregister(ctx, id)
}

func (s *shaky) Watch(ctx context.Context, signal func(sluice.Signal)) error {
	if err := s.fault("watch"); err != nil {
		return err
	}
	return s.Store.Watch(ctx, signal)
}

func (s *shaky) Now(ctx context.Context) (time.Time, error) {
	if err := s.fault("now"); err != nil {
		return time.Time{}, err
	}
	return s.Store.Now(ctx)
}

// Queues returns queues with wrong settings if the verb `settings` fails, as after a faulty change by plain SQL.
func (s *shaky) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	if err := s.fault("queues"); err != nil {
		return nil, err
	}
	queues, err := s.Store.Queues(ctx, filter)
	if wrong := s.fault("settings"); wrong != nil {
		for i := range queues {
			queues[i].Wrong = wrong.Error()
		}
	}
	return queues, err
}

func (s *shaky) Elect(ctx context.Context, holder string, tasks []string, lease time.Duration) ([]string, error) {
	if err := s.fault("lead"); err != nil {
		return nil, err
	}
	return s.processes.Elect(ctx, holder, tasks, lease)
}

// moody is an engine whose answers a test can change.
type moody struct {
	engine.Engine
	mu     sync.Mutex
	start  error
	absent bool
	report *engine.Report
	adopts bool
	other  sluice.ID
	work   map[string]string
}

func (m *moody) set(change func(*moody)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

func (m *moody) Start(ctx context.Context, target engine.Target, runs []engine.Run) []error {
	m.mu.Lock()
	err := m.start
	for _, run := range runs {
		m.work[run.Ref] = run.Work
	}
	m.mu.Unlock()
	if err == nil {
		return m.Engine.Start(ctx, target, runs)
	}
	errs := make([]error, len(runs))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func (m *moody) Outcomes(ctx context.Context, target engine.Target, refs []string) ([]engine.Outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.absent && !m.adopts {
		return m.Engine.Outcomes(ctx, target, refs)
	}
	out := make([]engine.Outcome, len(refs))
	for i, ref := range refs {
		out[i] = engine.Outcome{Ref: ref, State: engine.Absent}
		if m.adopts {
			out[i] = engine.Outcome{Ref: ref, State: engine.Running, Job: m.other, Work: m.work[ref], StartedAt: time.Now()}
		}
	}
	return out, nil
}

func (m *moody) Ended(ctx context.Context, target engine.Target, since time.Time, next []byte) (engine.Page, error) {
	return m.Engine.Ended(ctx, target, since, next)
}

func (m *moody) Check(ctx context.Context, target engine.Target) (engine.Report, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.report != nil {
		return *m.report, nil
	}
	return m.Engine.Check(ctx, target)
}

// must fails the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
