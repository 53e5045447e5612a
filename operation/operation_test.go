package operation_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/store/memory"
)

// redrive is a store in memory with dead letters, in a bubble of fake time. The test itself works the jobs.
type redrive struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
	jobs   []sluice.ID
}

func inRedrive(t *testing.T, dead int, test func(r *redrive)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		r := &redrive{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{})}
		r.add(dead)
		r.work(dead, func(int) bool { return false })
		time.Sleep(time.Second)
		test(r)
	})
}

func (r *redrive) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *redrive) add(n int) {
	r.Helper()
	for range n {
		receipt, err := r.client.Enqueue(r.Context(), sluice.NewJob{Queue: "payments", Payload: []byte(`{}`)})
		r.ok(err)
		r.jobs = append(r.jobs, receipt.ID)
	}
}

// work claims up to n jobs, and completes or buries each.
func (r *redrive) work(n int, well func(i int) bool) (worked int) {
	r.Helper()
	for worked < n {
		claimed, err := r.store.Claim(r.Context(), sluice.ClaimRequest{Queue: "payments", Limit: n - worked, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
		r.ok(err)
		if len(claimed.Jobs) == 0 {
			return worked
		}
		for _, c := range claimed.Jobs {
			s := sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventBury, Error: "account closed"}
			if well(worked) {
				s.Event, s.Error = sluice.EventComplete, ""
			}
			errs, err := r.store.Settle(r.Context(), []sluice.Settlement{s})
			r.ok(errors.Join(append(errs, err)...))
			worked++
		}
	}
	return worked
}

func (r *redrive) start(op operation.Operation) operation.Operation {
	r.Helper()
	op.Kind, op.Query.Queue = operation.KindRequeue, "payments"
	begun, err := operation.Start(r.Context(), r.store, op, sluice.Act{By: "ada", Reason: "bank is back"})
	r.ok(err)
	return begun
}

// carry carries the operation out until it must wait or has ended. It reads the operation before each step, as another
// process would.
func (r *redrive) carry(id sluice.ID) operation.Operation {
	r.Helper()
	for range 1000 {
		op, err := operation.Read(r.Context(), r.store, id)
		r.ok(err)
		next, wait, err := operation.CarryOut(r.Context(), r.store, op, "upkeep", nil)
		r.ok(err)
		if wait > 0 || !next.EndedAt.IsZero() {
			return next
		}
	}
	r.Fatal("it goes on for ever")
	return operation.Operation{}
}

func TestRedriveKeepsItsPaceAndHasNoBurstAfterARest(t *testing.T) {
	inRedrive(t, 200, func(r *redrive) {
		begun := r.start(operation.Operation{Rate: sluice.RatePerSecond(20)})
		for n := 1; n <= 4; n++ {
			time.Sleep(500 * time.Millisecond)
			if op := r.carry(begun.ID); op.Done < 10*n || op.Done > 10*n+1 {
				t.Errorf("%d done after %s at 20/s", op.Done, time.Duration(n)*500*time.Millisecond)
			}
		}
		time.Sleep(time.Hour) // no upkeep runs meanwhile
		if op := r.carry(begun.ID); op.Done > 61 {
			t.Errorf("a rest was followed by a burst of %d", op.Done-41)
		}
		_, err := operation.SetRate(r.Context(), r.store, begun.ID, sluice.Rate{}, sluice.Act{By: "ada"})
		r.ok(err)
		if op := r.carry(begun.ID); op.State != operation.StateDone || op.Done != 200 {
			t.Errorf("%s with %d done without a pace", op.State, op.Done)
		}
	})
}

func TestCanaryThatFailsStopsTheRedriveAndSaysWhy(t *testing.T) {
	inRedrive(t, 100, func(r *redrive) {
		begun := r.start(operation.Operation{Canary: 10})
		if op := r.carry(begun.ID); op.Done != 10 || op.Watching != 10 || !op.OnProbation() {
			t.Fatalf("the operation is %+v, want 10 done and watched, on probation", op)
		}
		r.work(5, func(i int) bool { return i != 0 }) // 1 of 10 may fail
		time.Sleep(time.Second)
		if op := r.carry(begun.ID); op.State != operation.StateRunning || op.Done != 10 || op.WatchedEnded != 5 {
			t.Fatalf("the operation is %+v, want it running, 10 done, 5 watched ended", op)
		}
		r.work(1, func(int) bool { return false })
		op := r.carry(begun.ID)
		if op.State != operation.StateStopped || op.Done != 10 || op.Why != "2 of the 10 of the canary failed again, more than 10 %" || op.ChangedBy != "upkeep" {
			t.Errorf("the operation is %+v, want it stopped by upkeep after 2 of 10 failed", op)
		}
		if _, err := operation.Resume(r.Context(), r.store, begun.ID, sluice.Act{By: "ada"}); !errors.Is(err, sluice.ErrNotAllowed) {
			t.Errorf("one that was stopped goes on: %v", err)
		}
	})
}

func TestCanaryThatIsWellLetsTheOthersGo(t *testing.T) {
	inRedrive(t, 100, func(r *redrive) {
		begun := r.start(operation.Operation{Canary: 10, StopIfFailed: 0.2, Limit: 90})
		r.carry(begun.ID)
		r.work(10, func(i int) bool { return i > 1 })
		if op := r.carry(begun.ID); op.State != operation.StateDone || op.Done != 90 || op.WatchedEnded != 10 || op.WatchedFailed != 2 {
			t.Errorf("the operation is %+v, want 90 done, 10 watched ended, 2 failed", op)
		}
	})
}

func TestRedriveStopsWhenTooManyFailAgainLater(t *testing.T) {
	inRedrive(t, 300, func(r *redrive) {
		begun := r.start(operation.Operation{Rate: sluice.RatePerSecond(20), StopIfFailed: 0.3})
		var op operation.Operation
		for n := 0; n < 40 && !op.State.Ended(); n++ {
			time.Sleep(500 * time.Millisecond)
			op = r.carry(begun.ID)
			r.work(100, func(int) bool { return n < 6 }) // after 6 rounds, every job fails
		}
		if op.State != operation.StateStopped || op.Done < 80 || op.Done > 160 || !strings.Contains(op.Why, "that were watched failed again, more than 30 %") {
			t.Errorf("the operation is %+v, want it stopped after 80 to 160 jobs", op)
		}
	})
}

func TestOperationRestsWhilePausedAndKeepsExactCounts(t *testing.T) {
	for name, c := range map[string]struct {
		acts bool
		done int // jobs that count as done while the operation is paused
	}{"killed before it acted": {false, 0}, "killed before it stored the counts": {true, 10}} {
		t.Run(name, func(t *testing.T) {
			inRedrive(t, 30, func(r *redrive) { r.pauseKilled(c.acts, c.done) })
		})
	}
}

// pauseKilled kills the carrier of a batch, pauses the operation without knowing of the kill, and resumes it.
func (r *redrive) pauseKilled(acts bool, done int) {
	r.Helper()
	begun := r.start(operation.Operation{Rate: sluice.RatePerSecond(10), Limit: 30})
	time.Sleep(time.Second)
	op, err := operation.Read(r.Context(), r.store, begun.ID)
	r.ok(err)
	if _, _, err := operation.CarryOut(r.Context(), &killed{Store: r.store, operations: operation.Given(r.store), acts: acts}, op, "upkeep", nil); !errors.Is(err, sluice.ErrUnavailable) {
		r.Fatal(err)
	}
	act := sluice.Act{By: "bob", Reason: "bank is slow"}
	paused, err := operation.Pause(r.Context(), r.store, begun.ID, act)
	r.ok(err)
	if paused.Why != "bob: bank is slow" {
		r.Errorf("why is %q", paused.Why)
	}
	if rests := r.carry(begun.ID); rests.Done != 0 {
		r.Errorf("%d done at once", rests.Done)
	}
	time.Sleep(time.Minute)
	if rests := r.carry(begun.ID); rests.State != operation.StatePaused || rests.Done != done {
		r.Errorf("%s with %d done", rests.State, rests.Done)
	}
	_, err = operation.Resume(r.Context(), r.store, begun.ID, act)
	r.ok(err)
	for range 5 {
		time.Sleep(time.Second)
		op = r.carry(begun.ID)
	}
	if op.State != operation.StateDone || op.Done != 30 || op.Skipped != 0 || op.AtLeast {
		r.Errorf("%s: %d done, %d skipped", op.State, op.Done, op.Skipped)
	}
	if n := r.work(100, func(int) bool { return true }); n != 30 {
		r.Errorf("%d jobs live again", n)
	}
}

// operations keeps the embedded ports apart.
type operations = operation.Store

// killed is the store of a process that dies when it acts on a batch, before or after the act.
type killed struct {
	sluice.Store
	operations
	acts bool
	gone bool
}

func (s *killed) Requeue(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	if s.gone = true; !s.acts {
		return nil, sluice.ErrUnavailable
	}
	return s.Store.Requeue(ctx, ids, act)
}

func (s *killed) SaveOperation(ctx context.Context, op operation.Operation, act sluice.Act) (operation.Operation, error) {
	if s.gone {
		return op, sluice.ErrUnavailable
	}
	return s.operations.SaveOperation(ctx, op, act)
}

func TestOperationLeavesWhatCameAfterItsBeginning(t *testing.T) {
	inRedrive(t, 5, func(r *redrive) {
		begun := r.start(operation.Operation{})
		r.add(3)
		time.Sleep(time.Second)
		r.work(3, func(int) bool { return false })
		_, err := r.client.Job(r.Context(), r.jobs[0])
		r.ok(err)
		r.ok(r.client.Requeue(r.Context(), r.jobs[:1], sluice.Act{By: "bob", Reason: "by hand"}))
		r.work(1, func(int) bool { return false })
		if op := r.carry(begun.ID); op.State != operation.StateDone || op.Done != 4 {
			t.Errorf("the operation is %+v, want it done with 4 jobs", op)
		}
	})
}

func TestOperationsOfEachKindCountWhatTheyDidAndDidNot(t *testing.T) {
	inRedrive(t, 10, func(r *redrive) {
		act := sluice.Act{By: "ada", Reason: "clean up"}
		run := func(op operation.Operation) operation.Operation {
			t.Helper()
			begun, err := operation.Start(t.Context(), r.store, op, act)
			r.ok(err)
			return r.carry(begun.ID)
		}
		r.ok(r.client.Requeue(t.Context(), r.jobs[:4], act))
		due := time.Now().Add(time.Hour)
		if op := run(operation.Operation{Kind: operation.KindReschedule, DueAt: due}); op.Done != 4 || op.State != operation.StateDone {
			t.Errorf("rescheduled: %+v", op)
		}
		if job, err := r.client.Job(t.Context(), r.jobs[0]); err != nil || !job.DueAt.Equal(due) {
			t.Errorf("due at %s, %v", job.DueAt, err)
		}
		if op := run(operation.Operation{Kind: operation.KindCancel, Query: search.Query{DueFrom: due, CreatedBefore: time.Now(), Queue: "payments"}}); op.Done != 4 {
			t.Errorf("cancelled: %+v", op)
		}
		if op := run(operation.Operation{Kind: operation.KindDelete, Query: search.Query{Error: "closed", Fingerprint: deadletter.Fingerprint("payments", "account closed")}}); op.Done != 6 {
			t.Errorf("pruned: %+v", op)
		}
		// Both cancelled jobs have one key, so the requeue of the second job finds the key taken.
		for range 2 {
			receipt, err := r.client.Enqueue(t.Context(), sluice.NewJob{Queue: "payments", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Key: "k", Delay: time.Hour}})
			r.ok(err)
			r.ok(r.client.Cancel(t.Context(), []sluice.ID{receipt.ID}, act))
		}
		op := run(operation.Operation{Kind: operation.KindRequeue, Query: search.Query{Key: "k", States: []sluice.State{sluice.StateCancelled}}})
		if op.Done != 1 || op.Failed != 1 || op.Skipped != 0 {
			t.Errorf("requeued: %+v", op)
		}
	})
}

func TestOperationsThatMakeNoSenseAreRefused(t *testing.T) {
	inRedrive(t, 0, func(r *redrive) {
		act := sluice.Act{By: "ada", Reason: "test"}
		for name, op := range map[string]operation.Operation{
			"kind":           {Kind: "resurrect"},
			"states":         {Kind: operation.KindRequeue, Query: search.Query{States: []sluice.State{sluice.StateQueued}}},
			"fingerprint":    {Kind: operation.KindRequeue, Query: search.Query{Fingerprint: "9AC1"}},
			"limit":          {Kind: operation.KindRequeue, Limit: -1},
			"rate":           {Kind: operation.KindRequeue, Rate: sluice.Rate{Jobs: -1}},
			"canary":         {Kind: operation.KindRequeue, Canary: operation.MaxCanary + 1},
			"stop_if_failed": {Kind: operation.KindRequeue, StopIfFailed: 10},
			"due_at":         {Kind: operation.KindRequeue, DueAt: time.Now()},
		} {
			_, err := operation.Start(t.Context(), r.store, op, act)
			var wrong *sluice.InvalidError
			if !errors.As(err, &wrong) || wrong.Field != name {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := operation.Start(t.Context(), r.store, operation.Operation{Kind: operation.KindCancel, Canary: 1}, act); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("a cancel with a canary: %v", err)
		}
		if _, err := operation.Start(t.Context(), r.store, operation.Operation{Kind: operation.KindRequeue}, sluice.Act{By: "ada"}); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("a requeue without a reason: %v", err)
		}
	})
}

func TestDeadLettersAreGroupedAndSearchedWithinBounds(t *testing.T) {
	inRedrive(t, 30, func(r *redrive) {
		found, err := deadletter.Read(t.Context(), r.store, nil, 0)
		r.ok(err)
		if len(found.Groups) != 1 || found.More || found.Groups[0].Count != 30 || found.Groups[0].Message != "account closed" || found.Groups[0].Tenants != 1 {
			t.Errorf("found %+v, want one group of 30 dead letters of one tenant", found)
		}
		if found, err = deadletter.Read(t.Context(), r.store, []string{"payments"}, 10); err != nil || !found.More || found.Compared != 10 {
			t.Errorf("found %+v, %v, want 10 compared, and more", found, err)
		}
		query := search.Query{Fingerprint: deadletter.Fingerprint("payments", "account closed")}
		if jobs, err := search.Jobs(t.Context(), r.store, query, 7); err != nil || len(jobs.Jobs) != 7 || !jobs.More {
			t.Errorf("found %+v, %v, want 7 jobs, and more", jobs, err)
		}
		if all, err := search.Preview(t.Context(), r.store, query, 3); err != nil || all.Matched != 30 || len(all.Jobs) != 3 || all.More {
			t.Errorf("previewed %+v, %v, want 30 matched, 3 jobs, and no more", all, err)
		}
		if _, err := search.Jobs(t.Context(), r.store, search.Query{States: []sluice.State{"odd"}}, 7); !errors.Is(err, sluice.ErrInvalid) {
			t.Error(err)
		}
	})
}

func TestOperationsAreListedAndSayHowMuchIsLeft(t *testing.T) {
	inRedrive(t, 4, func(r *redrive) {
		started := r.start(operation.Operation{Rate: sluice.RatePerSecond(2), Expected: 4})
		if eta, known := started.ETA(); !known || started.Left() != 4 || eta != 2*time.Second {
			r.Errorf("at its beginning %d are left, in %s (%v); want 4, in 2s", started.Left(), eta, known)
		}
		stopped, err := operation.Stop(r.Context(), r.store, started.ID, sluice.Act{By: "ada", Reason: "enough"})
		r.ok(err)
		if _, known := stopped.ETA(); known {
			r.Error("a stopped operation says when it will be done")
		}
		all, err := operation.List(r.Context(), r.store, operation.Filter{})
		r.ok(err)
		if len(all) != 1 || all[0].ID != started.ID || all[0].State != operation.StateStopped {
			r.Errorf("the list has %+v, want the one that was stopped", all)
		}
	})
}

// TestAnEditSpreadsJobsThatAreDueAtOnce postpones jobs of which some were due before, and some expire too early for it.
func TestAnEditSpreadsJobsThatAreDueAtOnce(t *testing.T) {
	inRedrive(t, 0, func(r *redrive) {
		at := time.Now().Add(time.Hour)
		enqueue := func(options sluice.EnqueueOptions) sluice.ID {
			receipt, err := r.client.Enqueue(r.Context(), sluice.NewJob{Queue: "payments", Payload: []byte(`{}`), EnqueueOptions: options})
			r.ok(err)
			return receipt.ID
		}
		var wave []sluice.ID
		for range 1200 {
			wave = append(wave, enqueue(sluice.EnqueueOptions{DueAt: at}))
		}
		past := enqueue(sluice.EnqueueOptions{})
		expires := enqueue(sluice.EnqueueOptions{DueAt: at, ExpiresAt: at.Add(time.Minute)})
		time.Sleep(time.Minute)
		began := time.Now()
		begun, err := operation.Start(r.Context(), r.store, operation.Operation{
			Kind: operation.KindEdit, Query: search.Query{Queue: "payments"}, Edit: &operation.Edit{Priority: 9, Postpone: 10 * time.Minute, Spread: 40 * time.Minute},
		}, sluice.Act{By: "ada", Reason: "too many at once"})
		r.ok(err)
		if op := r.carry(begun.ID); op.State != operation.StateDone || op.Done != 1201 || op.Failed != 1 || op.Skipped != 0 {
			t.Fatalf("the operation is %+v, want 1,201 edited jobs and one refused", op)
		}
		quarters, instants := make(map[int]int), make(map[time.Time]bool)
		for _, id := range wave {
			job, err := r.store.Job(r.Context(), id)
			r.ok(err)
			later := job.DueAt.Sub(at)
			if job.Priority != 9 || later < 10*time.Minute || later > 50*time.Minute {
				t.Fatalf("a job has priority %d and is due %s later", job.Priority, later)
			}
			quarters[int((later-10*time.Minute)/(10*time.Minute+1))]++
			instants[job.DueAt] = true
		}
		for q := range 4 {
			if quarters[q] < 200 || quarters[q] > 400 {
				t.Errorf("the quarters have %v jobs, want about 300 each", quarters)
			}
		}
		if len(instants) < 1100 {
			t.Errorf("the jobs are due at %d instants", len(instants))
		}
		if job, err := r.store.Job(r.Context(), past); err != nil || job.DueAt.Before(began.Add(10*time.Minute)) {
			t.Errorf("the job that was due is %+v, %v, want it due 10 minutes after the beginning at the earliest", job, err)
		}
		if job, err := r.store.Job(r.Context(), expires); err != nil || !job.DueAt.Equal(at) || job.Priority != 5 {
			t.Errorf("the job that expires is %+v, %v, want no change", job, err)
		}
	})
}

// TestARescheduleGoesOnAfterJobsThatExpireTooEarly reschedules many jobs, of which one expires before it would be due.
func TestARescheduleGoesOnAfterJobsThatExpireTooEarly(t *testing.T) {
	inRedrive(t, 0, func(r *redrive) {
		at := time.Now().Add(time.Hour)
		jobs := slices.Repeat([]sluice.NewJob{{Queue: "payments", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{DueAt: at}}}, 601) // more than a batch
		jobs[0].ExpiresAt = at.Add(time.Minute)
		receipts, err := r.client.EnqueueMany(r.Context(), jobs)
		r.ok(err)
		begun, err := operation.Start(r.Context(), r.store, operation.Operation{
			Kind: operation.KindReschedule, Query: search.Query{Queue: "payments"}, DueAt: at.Add(time.Hour),
		}, sluice.Act{By: "ada", Reason: "the bank is closed"})
		r.ok(err)
		if op := r.carry(begun.ID); op.State != operation.StateDone || op.Done != 600 || op.Failed != 1 || op.Skipped != 0 {
			t.Errorf("the operation is %+v, want 600 rescheduled jobs and one refused", op)
		}
		if job, err := r.store.Job(r.Context(), receipts[0].ID); err != nil || !job.DueAt.Equal(at) {
			t.Errorf("the job that expires is %+v, %v, want no change", job, err)
		}
	})
}

// TestAnEditPostponesNoJobBeyondTheLastYear: JSON has no instants after the year 9999, so such a job could not be listed.
func TestAnEditPostponesNoJobBeyondTheLastYear(t *testing.T) {
	inRedrive(t, 0, func(r *redrive) {
		last := time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)
		receipt, err := r.client.Enqueue(r.Context(), sluice.NewJob{Queue: "payments", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{DueAt: last}})
		r.ok(err)
		begun, err := operation.Start(r.Context(), r.store, operation.Operation{
			Kind: operation.KindEdit, Query: search.Query{Queue: "payments"}, Edit: &operation.Edit{Postpone: 2 * time.Hour},
		}, sluice.Act{By: "ada", Reason: "later"})
		r.ok(err)
		if op := r.carry(begun.ID); op.State != operation.StateDone || op.Done != 0 || op.Failed != 1 {
			t.Errorf("the operation is %+v, want one refused job", op)
		}
		if job, err := r.store.Job(r.Context(), receipt.ID); err != nil || !job.DueAt.Equal(last) {
			t.Errorf("the job is due at %s, %v, want %s", job.DueAt, err, last)
		}
	})
}

func TestAnEditMustChangeSomething(t *testing.T) {
	inRedrive(t, 0, func(r *redrive) {
		for name, op := range map[string]operation.Operation{
			"no edit": {Kind: operation.KindEdit}, "empty": {Kind: operation.KindEdit, Edit: &operation.Edit{}}, "another kind": {Kind: operation.KindCancel, Edit: &operation.Edit{Priority: 1}},
			"priority": {Kind: operation.KindEdit, Edit: &operation.Edit{Priority: 11}}, "postpone": {Kind: operation.KindEdit, Edit: &operation.Edit{Postpone: -1}},
			"spread": {Kind: operation.KindEdit, Edit: &operation.Edit{Spread: operation.MaxPostpone + 1}},
		} {
			op.Query.Queue = "payments"
			if _, err := operation.Start(r.Context(), r.store, op, sluice.Act{By: "ada"}); !errors.Is(err, sluice.ErrInvalid) {
				t.Errorf("%s: got %v, want a refusal", name, err)
			}
		}
	})
}
