package postgres_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestSignalsThatComeNowAndThenDoNotWait sends a few signals in a row, then one every 12 ms, and then as many as
// possible for 1 s.
func TestSignalsThatComeNowAndThenDoNotWait(t *testing.T) {
	t.Parallel()
	wait, now := postgres.Pace(), time.Now()
	for range 5 {
		if w := wait(now); w != 0 {
			t.Fatalf("one of the first five waits %s", w)
		}
	}
	if w := wait(now); w != 10*time.Millisecond {
		t.Errorf("the sixth waits %s", w)
	}
	now = now.Add(time.Second)
	for range 100 {
		now = now.Add(12 * time.Millisecond)
		if w := wait(now); w != 0 {
			t.Fatalf("one that comes now and then waits %s", w)
		}
	}
	sent := 0
	for range 1000 {
		now = now.Add(time.Millisecond)
		if wait(now) == 0 {
			sent++
		}
	}
	if sent < 100 || sent > 105 {
		t.Errorf("%d were sent in a second, want 100, and at most five more", sent)
	}
}

// statements counts the statements that store one job, and those that only send signals.
type statements struct{ stores, notifies atomic.Int32 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "insert into sluice.job ") {
		s.stores.Add(1)
	} else if strings.Contains(data.SQL, "select pg_notify('sluice'") {
		s.notifies.Add(1)
	}
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// openCounted opens a store whose statements are counted, and a connection beside it. With parameters of its own, the
// store finds the functions of the schema public before the server's.
func openCounted(t *testing.T, parameters string) (*postgres.Store, *statements, *pgx.Conn) {
	t.Helper()
	at := migrated.Copy(t)
	config, err := pgxpool.ParseConfig(at + "&pool_max_conns=4" + parameters)
	if err != nil {
		t.Fatal(err)
	}
	counted := &statements{}
	config.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := postgres.New(t.Context(), pool, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return store, counted, conn
}

// TestALoneJobWakesOtherProcessesByItsOwnCommit listens beside a store that stores a job now and then. No statement but
// that of the job may have sent the notification.
func TestALoneJobWakesOtherProcessesByItsOwnCommit(t *testing.T) {
	t.Parallel()
	store, counted, conn := openCounted(t, "")
	if _, err := conn.Exec(t.Context(), "listen sluice"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), []sluice.Insert{plain()}); err != nil {
		t.Fatal(err)
	}
	heard, err := conn.WaitForNotification(t.Context())
	if err != nil || !strings.HasSuffix(heard.Payload, " queue "+plain().Queue) {
		t.Fatalf("heard %v, error %v", heard, err)
	}
	if n := counted.notifies.Load(); n != 0 {
		t.Errorf("%d statements sent only signals", n)
	}
}

// TestSignalsAreCarriedOnlyNowAndThen stores a second job in the pause that follows a carried signal. Its signal comes after
// its commit.
func TestSignalsAreCarriedOnlyNowAndThen(t *testing.T) {
	t.Parallel()
	store, counted, conn := openCounted(t, "")
	if _, err := conn.Exec(t.Context(), "listen sluice"); err != nil {
		t.Fatal(err)
	}
	store.PauseCarrying(time.Hour)
	if _, err := store.Enqueue(t.Context(), []sluice.Insert{plain()}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.WaitForNotification(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := counted.notifies.Load(); n != 1 {
		t.Errorf("%d statements sent only signals, want 1", n)
	}
}

// TestARefusedSignalDoesNotRefuseItsJob makes the server refuse notifications, as it does when its queue of them is full.
func TestARefusedSignalDoesNotRefuseItsJob(t *testing.T) {
	t.Parallel()
	store, counted, conn := openCounted(t, "&search_path=public,pg_catalog")
	const full = `create function public.pg_notify(text, text) returns void language plpgsql as $$
		begin raise 'too many notifications in the NOTIFY queue' using errcode = 'program_limit_exceeded'; end $$`
	if _, err := conn.Exec(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int32{2, 3} { // the second job does not try it again
		receipts, err := store.Enqueue(t.Context(), []sluice.Insert{plain()})
		if err != nil || receipts[0].Duplicate {
			t.Fatalf("receipts %v, error %v", receipts, err)
		}
		if n := counted.stores.Load(); n != want {
			t.Errorf("%d statements stored a job, want %d", n, want)
		}
	}
	var stored int
	if err := conn.QueryRow(t.Context(), "select count(*) from sluice.live").Scan(&stored); err != nil || stored != 2 {
		t.Errorf("%d jobs are stored, want 2 (error %v)", stored, err)
	}
}
