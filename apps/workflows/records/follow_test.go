package records_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/store/postgres"
)

// No record may contradict its job, whoever moves the jobs, and whenever a process is killed.
func TestRecordsNeverDisagreeWithTheirJobs(t *testing.T) {
	onEach(t, func(t *testing.T, d *records.Database) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		_, err := d.Client.ChangeSettings(t.Context(), records.Queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error {
			s.Audit = sluice.AuditFull
			return nil
		})
		check(t, err)
		m, err := newMover(t.Context(), d, seed)
		check(t, err)
		if m.plain != nil {
			t.Cleanup(func() { _ = m.plain.Close() })
		}
		for round, missing := 0, events; round < 6 || len(missing)+len(m.functions) > 0; round++ {
			for range 25 {
				check(t, m.move())
			}
			if round < 6 {
				apptest.KillMover(t, d.Address())
			}
			agree(t, d)
			missing, err = apptest.Unseen(t.Context(), d.Client, records.Queue, events...)
			check(t, err)
			t.Logf("after round %d none of %v, %q moved a job", round, missing, m.functions)
		}
		states := make(map[records.State]int)
		all, err := d.Executions(t.Context(), "acme", 10_000)
		check(t, err)
		for _, e := range all {
			states[e.State]++
		}
		if states[records.Completed] == 0 || states[records.Failed] == 0 || states[records.Waiting] == 0 {
			t.Errorf("the records are %v; the test needs some of each", states)
		}
		t.Logf("%d moves, records %v", m.moves, states)
	})
}

// events lists the moves that the test must see.
var events = []sluice.Event{
	sluice.EventDispatch, sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventBury, sluice.EventCancel,
	sluice.EventRequeue, sluice.EventUndo, audit.EventBeside, audit.EventTerminate, audit.EventDelete,
}

func agree(t *testing.T, d *records.Database) {
	t.Helper()
	astray, err := d.Astray(t.Context())
	check(t, err)
	if len(astray) > 0 {
		t.Fatalf("%d records disagree with their jobs:\n%s", len(astray), strings.Join(astray, "\n"))
	}
}

// openMover opens the records in another process, which moves jobs until it is killed.
func openMover(address string) (move func() error, err error) {
	d, err := records.Open(context.Background(), address)
	if err != nil {
		return nil, err
	}
	m, err := newMover(context.Background(), d, uint64(time.Now().UnixNano()))
	if err != nil {
		return nil, err
	}
	return m.move, nil
}

// mover makes moves of every kind, as dispatchers, upkeep, runs, people and programs in other languages do.
type mover struct {
	d      *records.Database
	random *rand.Rand
	ctx    context.Context
	moves  int
	// plain is a connection without Sluice, and functions are the calls that have moved no job yet. SQLite has neither.
	plain     *sql.DB
	functions []string
}

// calls are statements that move jobs by Sluice's SQL functions.
var calls = []string{
	"select sluice.complete(id => c.id, token => c.token) from sluice.claim(queues => '{executions}', holder => 'psql', batch => 2) c",
	"select sluice.fail(id => c.id, token => c.token, error => 'no route') from sluice.claim(queues => '{executions}', holder => 'psql', batch => 2) c",
	"select sluice.fail(id => c.id, token => c.token, error => 'nonsense', retryable => false) from sluice.claim(queues => '{executions}', holder => 'psql') c",
	"select sluice.release(id => c.id, token => c.token) from sluice.claim(queues => '{executions}', holder => 'psql', batch => 2) c",
	"select state from sluice.requeue_dead(queue => 'executions', reason => 'mended', batch => 2) where state = 'queued'",
}

func newMover(ctx context.Context, d *records.Database, seed uint64) (*mover, error) {
	m := &mover{d: d, random: rand.New(rand.NewPCG(seed, 0)), ctx: ctx}
	if !strings.HasPrefix(d.Address(), "postgres") {
		return m, nil
	}
	if _, err := postgres.Migrate(ctx, d.Address()); err != nil { // adds the SQL functions
		return nil, err
	}
	var err error
	m.functions = slices.Clone(calls)
	m.plain, err = sql.Open("pgx", d.Address())
	return m, err
}

func (m *mover) move() error {
	m.moves++
	client := m.d.Client
	switch m.random.IntN(16) {
	case 0, 1, 2:
		e := records.NewExecution{Definition: "order"}
		_, _, err := m.d.EnqueueMany(m.ctx, "acme", []records.NewExecution{e, e, e})
		return err
	case 3:
		return m.some(sluice.StateQueued, client.Cancel)
	case 4:
		return m.some(sluice.StateDispatched, client.Cancel)
	case 5:
		return m.some(sluice.StateCancelled, client.Terminate)
	case 6:
		return m.some(sluice.StateDead, client.Requeue)
	case 7:
		return m.some(sluice.StateCancelled, func(ctx context.Context, ids []sluice.ID, act sluice.Act) error {
			act.BesideOpenRun = true
			return client.Requeue(ctx, ids, act)
		})
	case 8:
		return m.some(sluice.StateDead, func(ctx context.Context, ids []sluice.ID, act sluice.Act) error {
			if err := client.Requeue(ctx, ids, act); err != nil {
				return err
			}
			return client.UndoRequeue(ctx, ids, act)
		})
	case 9:
		return m.some(sluice.StateDead, client.Delete)
	case 10:
		_, err := m.d.Store.Recover(m.ctx, records.Queue, 100, "test")
		return err
	case 11, 12:
		return m.call()
	}
	return m.work()
}

func (m *mover) some(state sluice.State, do func(ctx context.Context, ids []sluice.ID, act sluice.Act) error) error {
	return apptest.Some(m.ctx, m.d.Client, records.Queue, state, func(ids []sluice.ID) error {
		return do(m.ctx, ids, sluice.Act{By: "test", Reason: "test"})
	})
}

// call calls one of the SQL functions.
func (m *mover) call() error {
	if m.plain == nil {
		return nil
	}
	statement := calls[m.random.IntN(len(calls))]
	result, err := m.plain.ExecContext(m.ctx, statement)
	if err != nil {
		return err
	}
	moved, err := result.RowsAffected()
	if moved > 0 {
		m.functions = slices.DeleteFunc(m.functions, func(one string) bool { return one == statement })
	}
	return err
}

// work claims jobs and starts their runs. Chance decides how far each run gets.
func (m *mover) work() error {
	claimed, err := m.d.Store.Claim(m.ctx, claimOf(4))
	if err != nil {
		return err
	}
	for _, c := range claimed.Jobs {
		if err := m.run(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *mover) run(c *sluice.Claim) error {
	by := func(event sluice.Event) sluice.Settlement {
		return sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: event, Error: "the run failed"}
	}
	ref := "execution-" + c.ID.String()
	far := m.random.IntN(6)
	if far == 0 {
		return nil // the lease expires
	}
	if far == 1 {
		return m.settle(by([]sluice.Event{sluice.EventRetry, sluice.EventRelease}[m.random.IntN(2)]))
	}
	if errs, err := engine.Given(m.d.Store).RecordIntent(m.ctx, []engine.Intent{{ID: c.ID, Token: c.Token, Engine: "temporal", Ref: ref, Lease: time.Minute}}); err != nil || errs[0] != nil {
		return err // another process has moved the job
	}
	run := sluice.NewID().String()
	if _, err := m.d.Begin(m.ctx, "acme", c.ID.String(), run); err != nil {
		return err
	}
	dispatched := by(sluice.EventDispatch)
	dispatched.Ref, dispatched.Error = ref, ""
	if err := m.settle(dispatched); err != nil || far == 2 {
		return err
	}
	failure := ""
	end := by(sluice.EventComplete)
	if far > 3 {
		failure, end = "the node failed", by(sluice.EventBury)
	}
	if err := m.d.End(m.ctx, c.ID.String(), run, failure); err != nil || far == 3 && m.random.IntN(4) == 0 {
		return err
	}
	return m.settle(end)
}

// settle settles a claim. The claim may be lost, so only an error of the whole call counts.
func (m *mover) settle(s sluice.Settlement) error {
	_, err := m.d.Store.Settle(m.ctx, []sluice.Settlement{s})
	return err
}
