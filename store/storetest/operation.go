package storetest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

func operationRules() []Rule {
	return []Rule{
		{"R-360", "An operation reads back as it was stored, with its course, by whoever asks; one that is not there is not found.", "I-20", func(w *world) {
			_, err := operation.Given(w.Store).Operation(w.ctx, sluice.NewID())
			w.is(err, sluice.ErrNotFound)
			began := w.begin(operation.Operation{
				Kind: operation.KindRequeue, Limit: 7, Rate: sluice.RatePerSecond(20), Canary: 3, StopIfFailed: 0.25, Expected: 4312, ExpectedMore: true,
				Query: search.Query{
					Queue: queue, Tenant: "acme", Key: "k", Labels: map[string]string{"batch": "7"}, Fingerprint: "9ac1f00d", Error: "no `route`",
					DueFrom: time.UnixMicro(1).UTC(), CreatedBefore: time.UnixMicro(1e15).UTC(),
				},
			})
			equal(w, "version", began.Version, 1)
			equal(w, "state", began.State, operation.StateRunning)
			equal(w, "ended", began.EndedAt.IsZero(), true)
			w.near("created at", began.CreatedAt, w.Now())
			w.near("clock", began.Now, w.Now())
			body, err := began.Body()
			w.ok(err)
			for _, store := range []sluice.Store{w.Store, w.Other} {
				got, err := operation.Given(store).Operation(w.ctx, began.ID)
				w.ok(err)
				again, err := got.Body()
				w.ok(err)
				equal(w, "operation", again, body)
				equal(w, "version", got.Version, 1)
				w.near("clock", got.Now, w.Now())
			}
		}},
		{"R-361", "A change of an operation must name the version it was made from; of many at once, one is stored; the same act sent again gives what it stored.", "I-15", func(w *world) {
			began := w.begin(operation.Operation{Kind: operation.KindCancel, Query: search.Query{Queue: queue}})
			for _, version := range []int64{0, began.Version + 1} {
				wrong := began
				wrong.Version = version
				_, err := operation.Given(w.Store).SaveOperation(w.ctx, wrong, person("test"))
				w.is(err, sluice.ErrConflict)
			}
			unknown := began
			unknown.ID = sluice.NewID()
			_, err := operation.Given(w.Store).SaveOperation(w.ctx, unknown, person("test"))
			w.is(err, sluice.ErrConflict)
			var wait sync.WaitGroup
			var stored atomic.Int32
			for n := range 8 {
				mine := began
				mine.Done = n + 10
				store := w.Store
				if n%2 == 1 {
					store = w.Other
				}
				wait.Go(func() {
					if _, err := operation.Given(store).SaveOperation(w.ctx, mine, person("test")); err == nil {
						stored.Add(1)
					}
				})
			}
			wait.Wait()
			equal(w, "stored", int(stored.Load()), 1)
			last, err := operation.Given(w.Store).Operation(w.ctx, began.ID)
			w.ok(err)
			act := person("test")
			last.Done = 99
			for range 2 {
				saved, err := operation.Given(w.Store).SaveOperation(w.ctx, last, act)
				w.ok(err)
				equal(w, "version", saved.Version, last.Version+1)
				equal(w, "done", saved.Done, 99)
			}
		}},
		{"R-362", "The audit tells of an operation when it begins and when its state or terms change, with who and why, and not of its steps.", "I-4", func(w *world) {
			began := w.begin(operation.Operation{Kind: operation.KindRequeue, Query: search.Query{Queue: queue}})
			stepped := began
			stepped.Done = 5
			stepped, err := operation.Given(w.Store).SaveOperation(w.ctx, stepped, person("step"))
			w.ok(err)
			equal(w, "changed by", stepped.ChangedBy, "ada")
			equal(w, "told of steps", len(w.operations(began.ID)), 1)
			stepped.State, stepped.Why = operation.StateStopped, "enough"
			ended, err := operation.Given(w.Other).SaveOperation(w.ctx, stepped, sluice.Act{By: "bob", Reason: "bank is down", ID: sluice.NewID()})
			w.ok(err)
			equal(w, "changed by", ended.ChangedBy, "bob")
			equal(w, "ended", ended.EndedAt.IsZero(), false)
			told := w.operations(began.ID)
			equal(w, "told", len(told), 2)
			equal(w, "actor", told[0].Actor, "bob")
			equal(w, "reason", told[0].Reason, "bank is down")
			for text, part := range map[string]string{
				squeezed(told[0].Before): `"state":"running"`, squeezed(told[0].After): `"state":"stopped"`, squeezed(told[1].After): began.ID.String(),
			} {
				if !strings.Contains(text, part) {
					w.Errorf("%s is not in %s", part, text)
				}
			}
		}},
		{"R-363", "Operations are listed the newest first, in pages; those that have something left to do alone, if asked.", "", func(w *world) {
			var ids []sluice.ID
			for n := range 5 {
				op := w.begin(operation.Operation{Kind: operation.KindCancel, Query: search.Query{Queue: queue}})
				if n%2 == 0 {
					op.State = operation.StateDone
					_, err := operation.Given(w.Store).SaveOperation(w.ctx, op, person("test"))
					w.ok(err)
				}
				ids = append(ids, op.ID)
			}
			page, err := operation.Given(w.Other).Operations(w.ctx, operation.Filter{Limit: 3})
			w.ok(err)
			equal(w, "page", len(page), 3)
			equal(w, "newest", page[0].ID, ids[4])
			rest, err := operation.Given(w.Store).Operations(w.ctx, operation.Filter{Before: page[2].ID, Limit: 3})
			w.ok(err)
			equal(w, "rest", len(rest), 2)
			equal(w, "oldest", rest[1].ID, ids[0])
			open, err := operation.Given(w.Other).Operations(w.ctx, operation.Filter{Open: true, Limit: 10})
			w.ok(err)
			equal(w, "open", len(open), 2)
			equal(w, "open one", open[0].ID, ids[3])
		}},
		{"R-364", "A list goes on by its mark where it was, although jobs of the page before are gone; a mark that no store makes is refused.", "I-20", func(w *world) {
			ids := w.addMany(9)
			for range ids {
				w.done(by(sluice.EventBury, w.claimOne()))
			}
			filter := sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateDead}, Limit: 3}
			left := len(ids)
			for {
				page, err := w.Store.Jobs(w.ctx, filter)
				w.ok(err)
				for _, job := range page.Jobs {
					left--
					equal(w, "job", job.ID, ids[left])
					w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{job.ID}, person("test"))))
				}
				if filter.Cursor = page.Cursor; filter.Cursor == "" {
					break
				}
			}
			equal(w, "left out", left, 0)
			filter.Cursor = "nonsense"
			_, err := w.Store.Jobs(w.ctx, filter)
			w.is(err, sluice.ErrInvalid)
		}},
		{"R-975", "A preview counts the jobs in the states on which an operation of its kind acts if its query names none, without those that are held if it would hold them, and refuses other states.", "[guide](guide/operations.md)", func(w *world) {
			ids := w.addMany(6)
			w.done(by(sluice.EventComplete, w.claimOne()))
			w.done(by(sluice.EventBury, w.claimOne()))
			w.claimOne()
			w.ok(w.only(w.Store.Cancel(w.ctx, ids[5:], person("test"))))
			w.ok(hold.Hold(w.ctx, w.Store, ids[4:5], person("a look")))
			for kind, want := range map[operation.Kind]int{
				operation.KindRequeue: 1, operation.KindCancel: 3, operation.KindReschedule: 2, operation.KindDelete: 1, operation.KindHold: 1, operation.KindRelease: 1, operation.KindEdit: 2,
			} {
				found, err := operation.Preview(w.ctx, w.Other, operation.Operation{Kind: kind, Query: search.Query{Queue: queue}}, 1)
				w.ok(err)
				equal(w, string(kind), found.Matched, want)
				equal(w, "samples of "+string(kind), len(found.Jobs), 1)
			}
			done := search.Query{Queue: queue, States: []sluice.State{sluice.StateCompleted}}
			_, err := operation.Preview(w.ctx, w.Store, operation.Operation{Kind: operation.KindCancel, Query: done}, 1)
			w.is(err, sluice.ErrInvalid)
		}},
		{"R-1041", "An operation edits each waiting job that matches once: a batch that is repeated after its counts were lost puts no job off twice, and counts those that ended since.", "I-4, I-6", func(w *world) {
			var ids []sluice.ID
			for range 20 {
				ids = append(ids, w.add(sluice.EnqueueOptions{Delay: time.Hour}))
			}
			due := w.job(ids[0]).DueAt
			moved := "acme"
			change := operation.Edit{Priority: 2, Postpone: time.Hour, Tenant: &moved}
			began := w.begin(operation.Operation{Kind: operation.KindEdit, Query: search.Query{Queue: queue}, Edit: &change})
			_, _, err := operation.CarryOut(w.ctx, lostSave{w.Store, operation.Given(w.Store)}, began, "upkeep", nil)
			w.is(err, sluice.ErrUnavailable)
			w.cancel(person("enough"), ids[1])
			w.ok(w.only(w.Store.Reschedule(w.ctx, ids[2:3], due, person("sooner"))))
			under, err := operation.Given(w.Other).Operation(w.ctx, began.ID)
			w.ok(err)
			op, _, err := operation.CarryOut(w.ctx, w.Other, under, "upkeep", nil)
			w.ok(err)
			equal(w, "done", op.Done, 20)
			equal(w, "skipped", op.Skipped, 0)
			for i, id := range ids {
				job := w.job(id)
				equal(w, "priority", job.Priority, 2)
				equal(w, "tenant", job.Tenant, moved)
				if later := job.DueAt.Sub(due); i > 2 && (later < time.Hour || later > time.Hour+time.Minute) {
					w.Fatalf("a job is due %s later, want an hour", later)
				}
			}
			equal(w, "due again", w.job(ids[2]).DueAt, due)
		}},
		{"R-365", "An operation acts on each job that matched when it began exactly once, whoever takes its steps, and tells the audit of each under the operation's name.", "I-4, I-6", func(w *world) {
			began := w.redrive(30)
			for n := 0; ; n++ {
				store := []sluice.Store{w.Store, w.Other}[n%2]
				op, err := operation.Given(store).Operation(w.ctx, began.ID)
				w.ok(err)
				if op.State.Ended() {
					equal(w, "state", op.State, operation.StateDone)
					equal(w, "done", op.Done, 30)
					break
				}
				_, _, err = operation.CarryOut(w.ctx, store, op, "upkeep", nil)
				w.ok(err)
				for _, c := range w.claim(100) { // they fail again at once, and are left alone
					w.done(by(sluice.EventBury, c))
				}
			}
			page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Queue: queue, Limit: 100})
			w.ok(err)
			for _, job := range page.Jobs {
				equal(w, "generation", job.Generation, 2)
				equal(w, "state", job.State, sluice.StateDead)
				times := 0
				for _, e := range w.audit(job.ID) {
					if e.Event == sluice.EventRequeue && strings.Contains(e.Reason, began.ID.String()) {
						times++
					}
				}
				equal(w, "told", times, 1)
			}
		}},
		{"R-366", "A batch of an operation on which somebody acted, and whose counts were not stored, is not repeated, and is counted exactly, also if several come across it.", "I-4, I-6", func(w *world) {
			began := w.redrive(20)
			behind := began // as somebody read it who is slow
			_, _, err := operation.CarryOut(w.ctx, lostSave{w.Store, operation.Given(w.Store)}, began, "upkeep", nil)
			w.is(err, sluice.ErrUnavailable)
			_, _, err = operation.CarryOut(w.ctx, w.Other, behind, "upkeep", nil)
			w.is(err, sluice.ErrConflict)
			under, err := operation.Given(w.Store).Operation(w.ctx, began.ID)
			w.ok(err)
			equal(w, "counted", under.Done, 0)
			for _, store := range []sluice.Store{w.Store, w.Other} {
				op, _, err := operation.CarryOut(w.ctx, store, under, "upkeep", nil)
				w.ok(err)
				equal(w, "counted", op.Done, 20)
				equal(w, "skipped", op.Skipped, 0)
			}
		}},
	}
}

// lostSave is a store of a process that ends before it has stored the counts of a batch.
type lostSave struct {
	sluice.Store
	operations
}

// Unwrap returns the store, which has the other ports.
func (s lostSave) Unwrap() sluice.Store { return s.Store }

// operations keeps the embedded ports apart.
type operations = operation.Store

// SaveOperation stores that a batch is decided on, and not what became of it.
func (s lostSave) SaveOperation(ctx context.Context, op operation.Operation, act sluice.Act) (operation.Operation, error) {
	if op.Done > 0 {
		return op, sluice.ErrUnavailable
	}
	return s.operations.SaveOperation(ctx, op, act)
}

// redrive buries jobs, and begins an operation that requeues them.
func (w *world) redrive(n int) operation.Operation {
	w.Helper()
	w.addMany(n)
	for _, c := range w.claim(n) {
		w.done(by(sluice.EventBury, c))
	}
	return w.begin(operation.Operation{Kind: operation.KindRequeue, Query: search.Query{Queue: queue}})
}

// begin stores an operation as the client does.
func (w *world) begin(op operation.Operation) operation.Operation {
	w.Helper()
	began, err := operation.Start(w.ctx, w.Store, op, person("test"))
	w.ok(err)
	return began
}

// operations lists what the audit tells of an operation.
func (w *world) operations(id sluice.ID) []sluice.AuditEntry {
	w.Helper()
	told, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectOperation, Name: id.String(), Limit: 100})
	w.ok(err)
	return told
}
