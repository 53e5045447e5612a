package httpapi_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/internal/litetest"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/internal/timetest"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/remote"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/store/storetest"
)

// serveHTTP serves the API of a store on a real socket, and returns its address.
func serveHTTP(t *testing.T, behind sluice.Store) string {
	t.Helper()
	server := httptest.NewServer(httpapi.New(behind, httpapi.Options{NoLogin: true, Bounds: httpapi.Bounds{Rate: 1e6, Burst: 1e6}}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// overHTTP opens a remote store at the address of a server, or of a proxy in front of it.
func overHTTP(t *testing.T, address string, behind sluice.Store) sluice.Store {
	t.Helper()
	store, err := remote.Open(t.Context(), "http://"+address, remote.Options{CallTimeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return bench{store, func() sluice.Store { return behind }, new(sync.Map)}
}

// onSQLite makes a bench of two remote stores at one server on a new file. If between is given, it starts a proxy in
// front of the server.
func onSQLite(t *testing.T, between func(t *testing.T, address string) string) storetest.Bench {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sluice.db")
	litetest.MakeFile(t, file)
	behind, err := sqlite.Open(t.Context(), file, sqlite.Options{CallTimeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = behind.Close() })
	address := serveHTTP(t, behind)
	if between != nil {
		address = between(t, address)
	}
	free, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = free.Close() })
	advance := func(d time.Duration) {
		if err := timetest.AdvanceSQLite(context.Background(), free, d); err != nil {
			t.Fatalf("advance: %v", err)
		}
	}
	setColumn := func(column string, value any) {
		if _, err := free.ExecContext(context.Background(), "update sluice_queue set "+column+" = ? where name = 'payments'", value); err != nil {
			t.Fatalf("set %s: %v", column, err)
		}
	}
	return storetest.Bench{Store: overHTTP(t, address, behind), Other: overHTTP(t, address, behind), Now: time.Now, Advance: advance, SetColumn: setColumn, Slow: true}
}

// restarted is a server that starts anew when time is moved: a store of PostgreSQL remembers positions in time, such as
// until when no job falls due.
type restarted struct {
	t    *testing.T
	pool *pgxpool.Pool
	now  atomic.Pointer[running]
}

// running is a server until its next start.
type running struct {
	api   *httpapi.API
	store sluice.Store
}

// start begins the first time, or anew: the requests that wait are answered, and the next ones meet a new store.
func (r *restarted) start() {
	store, err := postgres.New(context.WithoutCancel(r.t.Context()), r.pool, postgres.Options{CallTimeout: 5 * time.Minute})
	if err != nil {
		r.t.Fatalf("start the server again: %v", err)
	}
	last := r.now.Swap(&running{httpapi.New(store, httpapi.Options{NoLogin: true, Bounds: httpapi.Bounds{Rate: 1e6, Burst: 1e6}}), store})
	if last != nil {
		last.end()
	}
}

// end answers what waits, and closes the store.
func (r *running) end() {
	r.api.Drain()
	_ = r.store.Close()
}

func (r *restarted) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.now.Load().api.ServeHTTP(w, request)
}

// onPostgres makes a bench of two remote stores, each at its own server, on a new database. A proxy in front of each server
// breaks connections.
func onPostgres(t *testing.T, url string) storetest.Bench {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url+"&pool_max_conns=10")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	open := func() (sluice.Store, *restarted) {
		server := &restarted{t: t, pool: pool}
		server.start()
		t.Cleanup(func() { server.now.Load().end() })
		socket := httptest.NewServer(server)
		t.Cleanup(socket.Close)
		store, err := remote.Open(t.Context(), "http://"+cuttingOthers(t, socket.Listener.Addr().String()), remote.Options{CallTimeout: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return bench{store, func() sluice.Store { return server.now.Load().store }, new(sync.Map)}, server
	}
	one, serverOfOne := open()
	other, serverOfOther := open()
	refresh := func() {
		if !*allRules { // those of single jobs ask for nothing that a store remembers
			return
		}
		serverOfOne.start()
		serverOfOther.start()
	}
	run := func(statement string, args ...any) {
		if _, err := pool.Exec(context.Background(), statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return storetest.Bench{
		Store: one, Other: other, Now: time.Now, Slow: true, Refresh: refresh,
		Advance: func(d time.Duration) {
			run(timetest.AdvancePostgres(d))
			refresh()
		},
		SetColumn: func(column string, value any) {
			run("update sluice.queue set "+column+" = $1 where name = 'payments'", value)
		},
	}
}

// migrated is the template of a database with the schema.
var migrated = pgtest.Template{Fill: func(ctx context.Context, url string) error {
	_, err := postgres.Migrate(ctx, url)
	return err
}}

func TestStoreOverHTTPObeysTheRulesOnSQLiteWhileConnectionsBreak(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Bench { return onSQLite(t, cuttingOthers) }, lacked...)
}

// allRules makes the test behind PostgreSQL take all rules. They pass, and take four times as long as those of single jobs. Behind
// SQLite, all of them always run.
var allRules = flag.Bool("all-rules", false, "test all rules behind PostgreSQL")

func TestStoreOverHTTPObeysTheRulesOnPostgresWhileConnectionsBreak(t *testing.T) {
	t.Parallel()
	rules := storetest.RunLife
	if *allRules {
		rules = storetest.Run
	}
	rules(t, func(t *testing.T) storetest.Bench { return onPostgres(t, migrated.Copy(t)) }, lacked...)
}

// Any answer may be lost. These are the rules of single jobs, because this test runs under the race detector too.
func TestStoreOverHTTPObeysTheRulesOfJobsWhileConnectionsBreak(t *testing.T) {
	t.Parallel()
	storetest.RunLife(t, func(t *testing.T) storetest.Bench { return onSQLite(t, cutting) }, append(slices.Clip(lacked), storetest.Lack{
		Rules:   []string{"R-3", "R-5", "R-120", "R-561"},
		Because: "After a lost answer, a job that an earlier call has stored looks like one that the call itself has stored.",
	})...)
}

// TestNumbersOfTheAuditHave64Bits asks for entries after a number that an int of 32 bits cuts to 0, which is every entry.
func TestNumbersOfTheAuditHave64Bits(t *testing.T) {
	t.Parallel()
	behind := memory.New(memory.Options{})
	if err := behind.AppendAudit(t.Context(), []sluice.AuditEntry{{Actor: "ada", Object: audit.ObjectQueue, Name: "mail", Event: audit.EventChange}}); err != nil {
		t.Fatal(err)
	}
	store := overHTTP(t, serveHTTP(t, behind), behind)
	for after, want := range map[int64]int{0: 1, 1 << 32: 0} {
		page, err := audit.Search(t.Context(), store, audit.Filter{AuditFilter: sluice.AuditFilter{After: after}})
		if err != nil || len(page.Entries) != want {
			t.Errorf("after %d there are %d entries (%v), want %d", after, len(page.Entries), err, want)
		}
	}
}

// TestJobsThatTogetherAreLargerThanARequestAreStored enqueues jobs of which any two are larger than the server reads at
// once, and one that is so alone.
func TestJobsThatTogetherAreLargerThanARequestAreStored(t *testing.T) {
	t.Parallel()
	behind := memory.New(memory.Options{})
	settings := sluice.DefaultSettings()
	settings.PayloadLimit = 64 << 20
	if _, err := sluice.NewClient(behind, sluice.ClientOptions{}).EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	store := overHTTP(t, serveHTTP(t, behind), behind)
	var jobs []sluice.NewJob
	for _, size := range []int{7 << 20, 10 << 20, 20 << 20, 7 << 20} {
		jobs = append(jobs, sluice.NewJob{Queue: "mail", Payload: []byte(`"` + strings.Repeat("x", size) + `"`)})
	}
	receipts, err := sluice.NewClient(store, sluice.ClientOptions{}).EnqueueMany(t.Context(), jobs)
	batch, is := errors.AsType[*sluice.BatchError](err)
	if !is || len(batch.Failed) != 1 || !errors.Is(batch.Failed[2], sluice.ErrInvalid) {
		t.Fatalf("it ends with %v, want the third of them refused", err)
	}
	for _, i := range []int{0, 1, 3} {
		if job, err := behind.Job(t.Context(), receipts[i].ID); err != nil || len(job.Payload) != len(jobs[i].Payload) {
			t.Errorf("job %d: %d bytes, %v", i, len(job.Payload), err)
		}
	}
}

// lacked lists the rules that a store over HTTP cannot obey, with the reasons.
var lacked = []storetest.Lack{
	{Rules: []string{"R-2", "R-660"}, Because: "The API writes JSON without blanks between its parts: values stay, bytes do not."},
	{Rules: []string{"R-35"}, Because: "The server checks acts as a client does, and refuses instants before 1970."},
	{Rules: []string{"R-93", "R-380", "R-523", "R-526"}, Because: "The server makes the queue of a job that it stores, as a client does."},
	{Rules: []string{"R-210"}, Because: "The server claims by the ageing of the queue, whatever a worker asks for."},
	{Rules: []string{"R-240"}, Because: "Upkeep at the server looks for settings that were changed by plain SQL."},
	{Rules: []string{"R-815"}, Because: "The server limits waiting jobs by the settings of the queue, whatever a client says."},
}
