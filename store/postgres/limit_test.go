package postgres_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/store/postgres"
)

var buffersHit = regexp.MustCompile(`shared hit=(\d+)`)

// openLimited makes a store with a queue q of n jobs, whose concurrency is limit.
func openLimited(t *testing.T, limit, n int) *postgres.Store {
	t.Helper()
	store := openStore(t, migrated.Copy(t))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Concurrency = limit
	if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: "q", Payload: []byte("1")}
	}
	if _, err := client.EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	return store
}

// pagesToCount returns how many pages the server reads to count the jobs in flight, from an instant on.
func pagesToCount(t *testing.T, store *postgres.Store, from time.Time) int {
	t.Helper()
	found := buffersHit.FindStringSubmatch(planOf(t, store, "in_flight.sql", []any{"q", 10, from}, "analyze, buffers, costs off, timing off"))
	if found == nil {
		t.Fatal("the plan tells of no pages")
	}
	pages, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// work claims and completes n jobs of a queue with limits. It claims most jobs at a time, by default 10.
func work(t *testing.T, store *postgres.Store, n int, most ...int) {
	t.Helper()
	at := append(most, 10)[0]
	for n > 0 {
		claimed := answerOf(t, store, at)
		var settlements []sluice.Settlement
		for _, c := range claimed.Jobs {
			settlements = append(settlements, sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventComplete})
		}
		if _, err := store.Settle(t.Context(), settlements); err != nil {
			t.Fatal(err)
		}
		n -= len(claimed.Jobs)
	}
}

// TestOldTransactionDoesNotSlowTheCountingOfWhatIsInFlight works jobs off while an old transaction keeps every index
// entry of them. The test counts how many pages the server reads to count the jobs in flight.
func TestOldTransactionDoesNotSlowTheCountingOfWhatIsInFlight(t *testing.T) {
	t.Parallel()
	const jobs = 2000
	store := openLimited(t, 10, jobs+20)
	old, err := store.Pool().BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Rollback(t.Context()) }()
	if _, err := old.Exec(t.Context(), "select count(*) from sluice.live"); err != nil {
		t.Fatal(err)
	}
	work(t, store, 10)
	// As if the settings had been changed 1 h ago.
	if _, err := store.Pool().Exec(t.Context(), "update sluice.flow set counted_since = counted_since - interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	work(t, store, jobs)
	// As if the jobs had taken 1 h, because the store writes the row once a second.
	if _, err := store.Pool().Exec(t.Context(), "update sluice.flow set claimed_at = claimed_at - interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	work(t, store, 10)
	var from time.Time
	if err := store.Pool().QueryRow(t.Context(), "select counted_from from sluice.flow where queue = 'q'").Scan(&from); err != nil {
		t.Fatal(err)
	}
	all, remembered := pagesToCount(t, store, time.Unix(0, 0)), pagesToCount(t, store, from)
	if 4*remembered > all {
		t.Errorf("counting reads %d pages from the remembered place on, and %d from the front", remembered, all)
	}
}

// TestClaimsOfALimitedQueueAreStampedInOrderWhateverTheClockDoes moves the last claim into the future, as a server's
// clock that is set back does.
func TestClaimsOfALimitedQueueAreStampedInOrderWhateverTheClockDoes(t *testing.T) {
	t.Parallel()
	store := openLimited(t, 2, 5)
	claim := func() []*sluice.Claim {
		t.Helper()
		store.ForgetLowWater()
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil {
			t.Fatal(err)
		}
		return claimed.Jobs
	}
	first := claim()
	future := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	if _, err := store.Pool().Exec(t.Context(), "update sluice.flow set claimed_at = $1, counted_from = $1, counted_since = counted_since - interval '1 hour'", future); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Pool().Exec(t.Context(), "update sluice.live set claimed_at = $1 where state = 'claimed'", future); err != nil {
		t.Fatal(err)
	}
	second := claim()
	if len(first) != 1 || len(second) != 1 || !second[0].ClaimedAt.After(future) {
		t.Fatalf("claimed %d and %d jobs, the second at %s, want after %s", len(first), len(second), second[0].ClaimedAt, future)
	}
	if third := claim(); len(third) != 0 {
		t.Errorf("a third job is in flight, and two are allowed")
	}
}

// TestClaimOfALimitedQueueDoesNotWaitForAFrozenOne holds the lock of the queue, as a process does that freezes in the
// middle of its claim.
func TestClaimOfALimitedQueueDoesNotWaitForAFrozenOne(t *testing.T) {
	t.Parallel()
	store := openLimited(t, 10, 3)
	first := sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()}
	if claimed, err := store.Claim(t.Context(), first); err != nil || len(claimed.Jobs) != 1 {
		t.Fatalf("claimed %d jobs, %v", len(claimed.Jobs), err)
	}
	frozen, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := frozen.Exec(t.Context(), "select from sluice.flow where queue = 'q' for update"); err != nil {
		t.Fatal(err)
	}
	request := sluice.ClaimRequest{Queue: "q", Limit: 10, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()}
	claimed, err := store.Claim(t.Context(), request)
	if err != nil || len(claimed.Jobs) != 0 || !claimed.Limited || claimed.NextDue <= 0 || claimed.NextDue > time.Second {
		t.Errorf("beside a frozen claim: %d jobs, limited %t, again in %s, %v", len(claimed.Jobs), claimed.Limited, claimed.NextDue, err)
	}
	if err := frozen.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if claimed, err = store.Claim(t.Context(), request); err != nil || len(claimed.Jobs) != 2 {
		t.Errorf("afterwards: %d jobs, %v", len(claimed.Jobs), err)
	}
}

// openPerHost makes a store with a queue q of jobs that a limit bounds per key: one in flight.
func openPerHost(t *testing.T) (*postgres.Store, *sluice.Client) {
	t.Helper()
	store := openLimited(t, 100, 0)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	_, err := limit.Change(t.Context(), store, "host", sluice.Act{By: "test"}, func(l *limit.Limit) error {
		l.Concurrency, l.Rate, l.Burst, l.PerKey = 1, sluice.RatePerSecond(10), 5, true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ChangeSettings(t.Context(), "q", sluice.Act{By: "test"}, func(s *sluice.Settings) error { s.Limits = "host"; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return store, client
}

func TestLimitKeysThatNobodyUsesLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	store, client := openPerHost(t)
	jobs := make([]sluice.NewJob, 20)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{LimitKey: "host " + strconv.Itoa(i%10)}}
	}
	if _, err := client.EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	work(t, store, 10, 20)
	rowsOfKeys(t, store, "while jobs wait", 10, 10, 10)
	work(t, store, 10)
	answerOf(t, store, 10)
	rowsOfKeys(t, store, "when all have ended", 10, 0, 0)
	runPlain(t, store, "update sluice.limit_key set idle_from = now() - interval '1 second'")
	if _, err := store.Prune(t.Context(), "", 100); err != nil {
		t.Fatal(err)
	}
	rowsOfKeys(t, store, "when the buckets are full", 0, 0, 0)
}

// TestParkedJobThatAnotherTransactionHasLockedIsNotForgotten locks a parked job while the last job of its key ends.
func TestParkedJobThatAnotherTransactionHasLockedIsNotForgotten(t *testing.T) {
	t.Parallel()
	store, client := openPerHost(t)
	job := sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{LimitKey: "host"}}
	if _, err := client.EnqueueMany(t.Context(), []sluice.NewJob{job, job}); err != nil {
		t.Fatal(err)
	}
	first := answerOf(t, store, 10).Jobs
	if len(first) != 1 {
		t.Fatalf("claimed %d jobs of a key, want 1", len(first))
	}
	tx, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tag, err := tx.Exec(t.Context(), "select from sluice.live where parked for update"); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("locked %d parked jobs, want 1: %v", tag.RowsAffected(), err)
	}
	settled := sluice.Settlement{ID: first[0].ID, Token: first[0].Token, Holder: "h", Event: sluice.EventComplete}
	if errs, err := store.Settle(t.Context(), []sluice.Settlement{settled}); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	if got := answerOf(t, store, 10); len(got.Jobs) != 0 || got.NextDue <= 0 || got.NextDue > time.Second {
		t.Errorf("while the job is locked: %d jobs, and a look after %s; want none, and one within a second", len(got.Jobs), got.NextDue)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	runPlain(t, store, "update sluice.limit_lane set wake_at = now()")
	if got := answerOf(t, store, 10); len(got.Jobs) != 1 {
		t.Errorf("afterwards: %d jobs, want the parked one", len(got.Jobs))
	}
}

// rowsOfKeys checks the number of rows that the store has for limit keys.
func rowsOfKeys(t *testing.T, store *postgres.Store, when string, want ...int) {
	t.Helper()
	for i, table := range []string{"limit_key", "limit_lane", "limit_change"} {
		var n int
		if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice."+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != want[i] {
			t.Errorf("%s, %s has %d rows, want %d", when, table, n, want[i])
		}
	}
}
