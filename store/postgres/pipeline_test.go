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

// messages counts what is sent to the server in a context with countedKey: single statements, and statements that are
// sent together. It leaves out the look at the schema's version, which a store takes once in a while before any call.
type messages struct{ atomic.Int32 }

type countedKey struct{}

func (m *messages) count(ctx context.Context) context.Context {
	if ctx.Value(countedKey{}) != nil {
		m.Add(1)
	}
	return ctx
}

func (m *messages) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "from sluice.migration") {
		return ctx
	}
	return m.count(ctx)
}

func (m *messages) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return m.count(ctx)
}

func (*messages) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*messages) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*messages) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// TestAClaimByTurnsWaitsForFewAnswers counts how often a claim waits for the server. Most claims by turns find no job,
// because another process was first.
func TestAClaimByTurnsWaitsForFewAnswers(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(migrated.Copy(t) + "&default_query_exec_mode=cache_describe")
	if err != nil {
		t.Fatal(err)
	}
	sent := &messages{}
	config.ConnConfig.Tracer = sent
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
	settings := sluice.DefaultSettings()
	settings.Fair = true
	if _, err := sluice.NewClient(store, sluice.ClientOptions{}).EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	claim := func(jobs int) int32 {
		t.Helper()
		sent.Store(0)
		answer, err := store.Claim(context.WithValue(t.Context(), countedKey{}, true), sluice.ClaimRequest{
			Queue: "q", Limit: 10, Holder: "h", Lease: time.Minute, Token: sluice.NewToken(),
		})
		if err != nil || len(answer.Jobs) != jobs {
			t.Fatalf("claimed %d jobs, %v; want %d", len(answer.Jobs), err, jobs)
		}
		return sent.Load()
	}
	claim(0) // the first finds out that the queue has turns

	// To lock the queue; to look for news and tenant queues; to ask when the next job is due, and commit.
	if n := claim(0); n != 3 {
		t.Errorf("a claim without jobs waited %d times, want 3", n)
	}
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a", "b")
	// Between these, to wake tenant queues and read them; to read limits; to claim; and to look what is left.
	if n := claim(2); n != 7 {
		t.Errorf("a claim of jobs waited %d times, want 7", n)
	}
}
