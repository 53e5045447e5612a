package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

// TestSharedLimitIsKeptWhateverTheIsolation has another claim hold the lock of a limit, and commit one job in flight while a
// claim waits. By the default isolation of this database, a transaction sees only rows from before its begin.
func TestSharedLimitIsKeptWhateverTheIsolation(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t)+"&default_transaction_isolation=repeatable%20read")
	client := sluice.NewClient(store, sluice.ClientOptions{})
	act := sluice.Act{By: "test"}
	_, err := limit.Change(t.Context(), store, "bank", act, func(l *limit.Limit) error {
		l.Concurrency = 1
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	settings := sluice.DefaultSettings()
	settings.Limits = "bank"
	for _, queue := range []string{"q", "other"} {
		if _, err := client.EnsureQueue(t.Context(), queue, settings, act); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, store, "insert into sluice.flow (queue) values ('@bank')")
	const claim = "select from sluice.claim(queues => '{q}', holder => 'h:1:a')"
	if _, err := store.Pool().Exec(t.Context(), claim); !isCode(err, "SL004") {
		t.Errorf("the function claim: %v, want a refusal of the isolation", err)
	}
	another, err := store.Pool().BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = another.Rollback(t.Context()) }()
	for _, statement := range []string{
		"select from sluice.flow where queue = '@bank' for update",
		"update sluice.live set state = 'claimed', token = gen_random_uuid(), holder = 'h', claimed_at = now(), lease_until = now() + interval '1 hour' where queue = 'other'",
	} {
		if _, err := another.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	answer := make(chan sluice.Claimed, 1)
	go func() {
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil {
			t.Error(err)
		}
		answer <- claimed
	}()
	for waits := false; !waits && len(answer) == 0; { // on a slow machine, the claim may have given up before
		const waiting = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')"
		if err := store.Pool().QueryRow(t.Context(), waiting).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := another.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if claimed := <-answer; len(claimed.Jobs) > 0 {
		t.Errorf("a claim gets %d jobs beside one in flight, and the limit allows 1", len(claimed.Jobs))
	}
}

// TestTransactionsOfTheStoreAreReadCommitted notes the isolation level in which the store takes a key and ends a job.
func TestTransactionsOfTheStoreAreReadCommitted(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t)+"&default_transaction_isolation=serializable")
	client, act := sluice.NewClient(store, sluice.ClientOptions{}), sluice.Act{By: "test", Reason: "test"}
	if _, err := client.EnsureQueue(t.Context(), "q", sluice.DefaultSettings(), act); err != nil {
		t.Fatal(err)
	}
	run(t, store, "create table levels (level text)")
	run(t, store, `create function note_level() returns trigger language plpgsql as $function$ begin
		insert into public.levels values (current_setting('transaction_isolation'));
		return null;
	end $function$`)
	for _, table := range []string{"job_key", "done"} {
		run(t, store, "create trigger note_level after insert on sluice."+table+" for each row execute function note_level()")
	}
	job, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Key: "k"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Cancel(t.Context(), []sluice.ID{job.ID}, act); err != nil {
		t.Fatal(err)
	}
	var levels string
	if err := store.Pool().QueryRow(t.Context(), "select string_agg(level, ', ') from levels").Scan(&levels); err != nil || levels != "read committed, read committed" {
		t.Errorf("the levels are %q, %v", levels, err)
	}
}
