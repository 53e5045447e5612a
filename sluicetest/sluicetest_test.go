package sluicetest_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/sluicetest"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/worker"
)

type mail struct {
	To string `json:"to"`
}

var mails = sluice.QueueOf[mail]("mail")

func send(t *testing.T, b *sluicetest.Bench, to string, options sluice.EnqueueOptions) sluice.ID {
	t.Helper()
	receipt, err := mails.Enqueue(t.Context(), b.Client, mail{to}, options)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.ID
}

func stateOf(t *testing.T, b *sluicetest.Bench, id sluice.ID) sluice.Job {
	t.Helper()
	job, err := b.Client.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestTwoDaysOfRetriesPassAtTheirInstants(t *testing.T) {
	t.Parallel()
	b := sluicetest.New(t, sluicetest.Options{})
	var at []time.Duration
	begun := b.Now()
	worker.Handle(b.Worker, mails, func(context.Context, *worker.Job[mail]) error {
		at = append(at, b.Now().Sub(begun))
		return errors.New("smtp: 451")
	}, worker.QueueOptions{MaxAttempts: 4, Backoff: func(attempt int, _ error) time.Duration { return time.Duration(attempt) * 8 * time.Hour }})
	id := send(t, b, "ada", sluice.EnqueueOptions{})
	if ran := b.Advance(48 * time.Hour); ran != 4 {
		t.Errorf("%d attempts, want 4", ran)
	}
	if want := []time.Duration{0, 8 * time.Hour, 24 * time.Hour, 48 * time.Hour}; !slices.Equal(at, want) {
		t.Errorf("the attempts began after %v, want %v", at, want)
	}
	if job := stateOf(t, b, id); job.State != sluice.StateDead || job.Attempts != 4 {
		t.Errorf("%s after %d attempts", job.State, job.Attempts)
	}
	if b.Now() != begun.Add(48*time.Hour) {
		t.Errorf("the clock shows %s", b.Now())
	}
}

func TestAdvanceKeepsToTheRateAndRunsScheduledJobs(t *testing.T) {
	t.Parallel()
	b := sluicetest.New(t, sluicetest.Options{})
	settings := sluice.DefaultSettings()
	settings.Rate = sluice.Rate{Jobs: 1, Per: time.Minute}
	if _, err := b.Client.EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	worker.Handle(b.Worker, mails, func(context.Context, *worker.Job[mail]) error { return nil }, worker.QueueOptions{})
	for range 10 {
		send(t, b, "ada", sluice.EnqueueOptions{})
	}
	late := send(t, b, "bob", sluice.EnqueueOptions{Delay: time.Hour})
	if ran := b.Drain(); ran != 1 {
		t.Errorf("%d ran at once, want 1", ran)
	}
	if ran := b.Advance(5*time.Minute + time.Second); ran != 5 {
		t.Errorf("%d ran in 5 minutes, want 5", ran)
	}
	b.Advance(time.Hour)
	if job := stateOf(t, b, late); job.State != sluice.StateCompleted {
		t.Errorf("the scheduled job is %s", job.State)
	}
}

func TestFaultsBreakTheNextAttempts(t *testing.T) {
	t.Parallel()
	b := sluicetest.New(t, sluicetest.Options{})
	var causes []error
	worker.Handle(b.Worker, mails, func(ctx context.Context, _ *worker.Job[mail]) error {
		causes = append(causes, context.Cause(ctx))
		return ctx.Err()
	}, worker.QueueOptions{MaxAttempts: 10, Backoff: func(int, error) time.Duration { return 0 }})
	id := send(t, b, "ada", sluice.EnqueueOptions{})
	b.Next(sluicetest.Fails(errors.New("smtp: 451")), sluicetest.Panics("nil map"), sluicetest.TimesOut(), sluicetest.LosesLease())
	if ran := b.Drain(); ran != 5 {
		t.Errorf("%d attempts, want 5: four broken ones, and one that is well", ran)
	}
	job := stateOf(t, b, id)
	if job.State != sluice.StateCompleted || job.Attempts != 3 || job.Recoveries != 1 {
		t.Errorf("%s after %d failed attempts and %d lost leases", job.State, job.Attempts, job.Recoveries)
	}
	if len(causes) != 3 || !errors.Is(causes[0], worker.ErrTimeout) || !errors.Is(causes[1], sluice.ErrLost) || causes[2] != nil {
		t.Errorf("the contexts of the handler had ended by %v", causes)
	}
	attempts, err := b.Client.Attempts(t.Context(), id)
	if err != nil || len(attempts) != 3 || attempts[0].Error != "smtp: 451" || attempts[1].Error != "panic: nil map" {
		t.Errorf("the failed attempts are %+v: %v", attempts, err)
	}
	cancelled := send(t, b, "bob", sluice.EnqueueOptions{})
	b.Next(sluicetest.IsCancelled())
	b.Drain()
	if job := stateOf(t, b, cancelled); job.State != sluice.StateCancelled || !errors.Is(causes[3], sluice.ErrCancelled) {
		t.Errorf("the cancelled job is %s, and its context had ended by %v", job.State, causes[3])
	}
}

func TestRunShowsOneAttempt(t *testing.T) {
	t.Parallel()
	type progress struct{ Page int }
	handler := func(ctx context.Context, job *worker.Job[mail]) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var done progress
		if _, err := job.LoadCheckpoint(&done); err != nil {
			return err
		}
		if err := job.SaveCheckpoint(ctx, progress{done.Page + 1}); err != nil {
			return err
		}
		switch {
		case job.Payload.To == "":
			return worker.Permanent(errors.New("nobody"))
		case job.Attempt() == 1:
			return errors.New("smtp: 451")
		}
		return job.SetResult(map[string]int{"attempt": job.Attempt(), "page": done.Page})
	}
	for name, c := range map[string]struct {
		to     string
		given  sluicetest.Given
		state  sluice.State
		result string
		err    string
		retry  time.Duration
	}{
		"the first fails":           {"ada", sluicetest.Given{}, sluice.StateQueued, "", "smtp: 451", 2 * time.Second},
		"the last attempt":          {"ada", sluicetest.Given{Handler: worker.QueueOptions{MaxAttempts: 1}}, sluice.StateDead, "", "smtp: 451", 0},
		"the third, with progress":  {"ada", sluicetest.Given{Attempt: 3, Checkpoint: progress{7}}, sluice.StateCompleted, `{"attempt":3,"page":7}`, "", 0},
		"a permanent error":         {"", sluicetest.Given{}, sluice.StateDead, "", "permanent: nobody", 0},
		"a lost lease":              {"ada", sluicetest.Given{Fault: sluicetest.LosesLease()}, sluice.StateQueued, "", "lost", 0},
		"a cancelled job":           {"ada", sluicetest.Given{Fault: sluicetest.IsCancelled()}, sluice.StateCancelled, "", "cancelled", 0},
		"a scheduled job, snoozed":  {"ada", sluicetest.Given{Options: sluice.EnqueueOptions{Delay: time.Hour}, Fault: sluicetest.Fails(worker.Snooze(time.Minute))}, sluice.StateQueued, "", "", time.Minute},
		"a queue with another wait": {"ada", sluicetest.Given{Settings: func(s *sluice.Settings) { s.Backoff.Base = time.Minute }}, sluice.StateQueued, "", "smtp: 451", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := sluicetest.Run(t, handler, mail{c.to}, c.given)
			if out.State != c.state || string(out.Result) != c.result || out.RetryIn != c.retry {
				t.Errorf("%s, result %s, retry in %s; want %s, %s, %s", out.State, out.Result, out.RetryIn, c.state, c.result, c.retry)
			}
			if c.err == "" && out.Err != nil || c.err == "lost" && !errors.Is(out.Err, sluice.ErrLost) || c.err == "cancelled" && !errors.Is(out.Err, sluice.ErrCancelled) {
				t.Errorf("the handler's error is %v", out.Err)
			}
		})
	}
	panicked := sluicetest.Run(t, func(context.Context, *worker.Job[mail]) error { panic("nil map") }, mail{}, sluicetest.Given{})
	if p := (*worker.PanicError)(nil); !errors.As(panicked.Err, &p) || panicked.State != sluice.StateQueued {
		t.Errorf("%v, %s", panicked.Err, panicked.State)
	}
}

func TestEnqueuedJobsCanBeReadInEveryStoreAndBeforeTheCommit(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	tx, err := store.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	recorder := sluicetest.Record(store.InTx(tx))
	for _, key := range []string{"a", "a", "b"} {
		if _, err := mails.Enqueue(t.Context(), client.Within(recorder), mail{key}, sluice.EnqueueOptions{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	if jobs := recorder.Jobs(); len(jobs) != 2 || string(jobs[1].Payload) != `{"to":"b"}` {
		t.Errorf("recorded %+v", jobs)
	}
	if jobs := sluicetest.Enqueued(t, store, mails); len(jobs) != 0 {
		t.Errorf("%d jobs are there before the commit", len(jobs))
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if jobs := sluicetest.Enqueued(t, store, mails); len(jobs) != 2 || jobs[0].Payload.To != "a" || jobs[1].Key != "b" {
		t.Errorf("enqueued %+v", jobs)
	}
}

func TestScriptedEngineRunsWhatTheTestEnds(t *testing.T) {
	t.Parallel()
	scripted := &sluicetest.Engine{}
	b := sluicetest.New(t, sluicetest.Options{Engines: map[string]engine.Engine{"flow": scripted}})
	scripted.Now = b.Now
	settings := sluice.DefaultSettings()
	settings.Engine, settings.MaxAttempts = "flow", 1
	if _, err := b.Client.EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	scripted.Refuse(engine.ErrBusy)
	good, bad := send(t, b, "ada", sluice.EnqueueOptions{}), send(t, b, "bob", sluice.EnqueueOptions{})
	b.Drain()
	if job := stateOf(t, b, good); job.State != sluice.StateQueued || job.Attempts != 0 {
		t.Errorf("while the engine is busy, the job is %s after %d attempts", job.State, job.Attempts)
	}
	scripted.Refuse(nil)
	b.Advance(time.Hour)
	runs := scripted.Runs()
	if len(runs) != 2 {
		t.Fatalf("%d runs, want 2", len(runs))
	}
	if err := errors.Join(scripted.Complete(runs[0], "paid"), scripted.Fail(runs[1], "no such account")); err != nil {
		t.Fatal(err)
	}
	b.Advance(time.Hour)
	if job := stateOf(t, b, good); job.State != sluice.StateCompleted {
		t.Errorf("the job of the completed run is %s", job.State)
	}
	if job := stateOf(t, b, bad); job.State != sluice.StateDead || job.Error == "" {
		t.Errorf("the job of the failed run is %s with error %q", job.State, job.Error)
	}
	if err := scripted.Complete(runs[0], nil); err == nil {
		t.Error("a run that has ended was completed again")
	}
}

func TestWorkerRunsInABubbleOfFakeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		client := sluice.NewClient(store, sluice.ClientOptions{})
		w := worker.New(store, worker.Options{})
		worker.Handle(w, mails, func(ctx context.Context, _ *worker.Job[mail]) error {
			time.Sleep(10 * time.Minute) // takes no time
			return nil
		}, worker.QueueOptions{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		if _, err := mails.Enqueue(ctx, client, mail{"ada"}, sluice.EnqueueOptions{Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		if jobs := sluicetest.Enqueued(t, store, mails); jobs[0].State != sluice.StateCompleted {
			t.Errorf("the job is %s", jobs[0].State)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
