package move

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/litetest"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// The environment variables of a process that moves. The process is this test program, started again.
const (
	envFrom = "SLUICE_MOVETEST_FROM"
	envTo   = "SLUICE_MOVETEST_TO"
)

func TestMain(m *testing.M) {
	batchRows = 37 // small batches, so that there are many
	if from := os.Getenv(envFrom); from != "" {
		_, err := Run(context.Background(), from, os.Getenv(envTo), Options{Progress: func(Progress) { fmt.Println("on") }})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.Main(m)
}

func newFile(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "sluice.db") }

func open(t *testing.T, address string) sluice.Store {
	t.Helper()
	store, err := tryOpen(t, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func tryOpen(t *testing.T, address string) (sluice.Store, error) {
	if path, isFile := strings.CutPrefix(address, "sqlite:"); isFile {
		litetest.MakeFile(t, path)
		return sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true, NoStatistics: true})
	}
	return postgres.Open(t.Context(), address, postgres.Options{Migrate: true, NoStatistics: true})
}

func mustMove(t *testing.T, from, to string) Report {
	t.Helper()
	report, err := Run(t.Context(), from, to, Options{})
	if err != nil {
		t.Fatalf("move from %s to %s: %v", from, to, err)
	}
	return report
}

// TestEveryColumnIsMovedOrStaysForAReason fails if a schema step adds a column that the plan of a move does not know.
func TestEveryColumnIsMovedOrStaysForAReason(t *testing.T) {
	t.Parallel()
	for _, address := range []string{newFile(t), pgtest.NewDatabase(t)} {
		open(t, address)
		s, err := openStore(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		there, err := s.columns(t.Context())
		if err != nil || len(there) < 18 {
			t.Fatalf("%d tables, %v", len(there), err)
		}
		if odd := unknown(s, tables(), there); len(odd) > 0 {
			t.Errorf("table.go does not say how to move %v of %s", odd, s.name())
		}
		there["sluice_x"] = []string{"a"}
		first := tableName(s, s.layout(&tables()[0]))
		there[first] = append(there[first][1:], "b")
		if odd := unknown(s, tables(), there); len(odd) != 3 {
			t.Errorf("of a new table, a new column and one that is gone, it sees %v", odd)
		}
	}
}

// TestMovedThereAndBackIsTheSame moves a random system from SQLite to PostgreSQL, to another PostgreSQL and back. It
// compares the tables of SQLite before and after.
func TestMovedThereAndBackIsTheSame(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	first, second, third, last := newFile(t), pgtest.NewDatabase(t), pgtest.NewDatabase(t), newFile(t)
	store := open(t, first)
	populate(t, store, rand.New(rand.NewPCG(seed, 0)))
	before, twin := dump(t, first), copyOf(t, store)
	// These tables may be empty. The audit's chain begins anew in the new store. Permits exist only while jobs are about
	// to start. Followers and cursors of results stay in the old store.
	empty := []string{"sluice_move", "sluice_moved", "sluice_audit_seal", "sluice_audit_batch", "sluice_permit", "sluice_follower", "sluice_result_cursor"}
	for name, rows := range before {
		if len(rows) == 0 && !slices.Contains(empty, name) {
			t.Errorf("there is nothing in %s, so that its move is not tried", name)
		}
	}
	there := mustMove(t, first, second)
	mustMove(t, second, third)
	back := mustMove(t, third, last)
	if there.Rows != back.Rows || fmt.Sprint(there.Tables) != fmt.Sprint(back.Tables) {
		t.Errorf("there: %+v\nback: %+v", there, back)
	}
	sameDump(t, before, dump(t, last))
	goesOnAs(t, open(t, last), twin)
}

// TestMovedJobRunsAfterAllOthers checks that the new store numbers jobs after the highest number of the old one.
func TestMovedJobRunsAfterAllOthers(t *testing.T) {
	t.Parallel()
	for _, way := range [][2]string{{newFile(t), pgtest.NewDatabase(t)}, {pgtest.NewDatabase(t), newFile(t)}} {
		store := open(t, way[0])
		w := &world{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), random: rand.New(rand.NewPCG(1, 0))}
		// The order of the IDs is the opposite of the order in which the store numbers the jobs.
		low, high := sluice.NewID(), sluice.NewID()
		w.add("plain", sluice.EnqueueOptions{ID: high})
		w.add("plain", sluice.EnqueueOptions{ID: low, Priority: 1})
		last := w.add("plain", sluice.EnqueueOptions{After: []sluice.ID{low, high}})
		mustMove(t, way[0], way[1])
		w.store = open(t, way[1])
		w.settle(w.claim("plain", 1)[0], sluice.EventComplete)
		if job, err := w.store.Job(t.Context(), last); err != nil || job.BlockedBy != high {
			t.Errorf("from %s: the job waits for %s, not for %s; %v", way[0], job.BlockedBy, high, err)
		}
	}
}

// TestARemovedResultIsMovedAsOne checks that the new store also says that there was a result.
func TestARemovedResultIsMovedAsOne(t *testing.T) {
	t.Parallel()
	way := []string{newFile(t), pgtest.NewDatabase(t), newFile(t)}
	store := open(t, way[0])
	w := &world{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), random: rand.New(rand.NewPCG(1, 0))}
	settings := sluice.DefaultSettings()
	settings.KeepResults = time.Millisecond
	_, err := w.client.EnsureQueue(t.Context(), "plain", settings, sluice.Act{By: "ada"})
	w.ok(err)
	id := w.add("plain", sluice.EnqueueOptions{})
	w.settle(w.claim("plain", 1)[0], sluice.EventComplete)
	for end := (await.End{}); !end.ResultRemoved; {
		_, err := store.Prune(t.Context(), "", 100)
		w.ok(err)
		ends, err := await.Given(store).Ended(t.Context(), []sluice.ID{id})
		w.ok(err)
		end = ends[0]
	}
	for i := 1; i < len(way); i++ {
		mustMove(t, way[i-1], way[i])
		ends, err := await.Given(open(t, way[i])).Ended(t.Context(), []sluice.ID{id})
		if err != nil || len(ends) != 1 || !ends[0].ResultRemoved || len(ends[0].Result) > 0 {
			t.Errorf("in %s: %+v, %v; want a removed result", way[i], ends, err)
		}
	}
}

// TestMovedSystemGoesOn drains a system that moved to PostgreSQL, and a copy that stayed. The same jobs must end in the
// same orders.
func TestMovedSystemGoesOn(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	from, to := newFile(t), pgtest.NewDatabase(t)
	store := open(t, from)
	populate(t, store, rand.New(rand.NewPCG(seed, 0)))
	twin := copyOf(t, store)
	mustMove(t, from, to)
	goesOnAs(t, open(t, to), twin)
}

// TestKilledMoveGoesOn kills the moving process again and again, at random moments.
func TestKilledMoveGoesOn(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	from, to, last := newFile(t), pgtest.NewDatabase(t), newFile(t)
	populate(t, open(t, from), random)
	before := dump(t, from)
	for _, way := range [][2]string{{from, to}, {to, last}} {
		kills := 0
		for ; kills < 5 && !moveUntil(t, way[0], way[1], random.IntN(20)); kills++ {
		}
		if kills < 2 {
			t.Errorf("only %d kills", kills)
		}
		mustMove(t, way[0], way[1])
		if report := mustMove(t, way[0], way[1]); !report.Already {
			t.Errorf("once more: %+v", report)
		}
	}
	sameDump(t, before, dump(t, last))
}

// moveUntil starts a process that moves, and kills it after a number of progress lines. It reports whether the move
// ended before the kill.
func moveUntil(t *testing.T, from, to string, steps int) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), envFrom+"="+from, envTo+"="+to)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("on\n"))
	for range steps + 1 {
		if _, err := out.Read(line); err != nil {
			break
		}
	}
	_ = cmd.Process.Kill()
	err = cmd.Wait()
	if err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatal(err)
	}
	return err == nil
}

// TestMovedStoreRefusesToChange checks that changes of the old store fail with the address of the new one. Reading the
// old store still works.
func TestMovedStoreRefusesToChange(t *testing.T) {
	t.Parallel()
	for _, way := range [][2]string{{newFile(t), pgtest.NewDatabase(t)}, {pgtest.NewDatabase(t), newFile(t)}} {
		store := open(t, way[0])
		client := sluice.NewClient(store, sluice.ClientOptions{})
		job := sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}
		receipt, err := client.Enqueue(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		mustMove(t, way[0], way[1])
		_, err = client.Enqueue(t.Context(), job)
		if !errors.Is(err, sluice.ErrMoved) || !strings.Contains(err.Error(), "sqlite:/") && !strings.Contains(err.Error(), "postgres://") {
			t.Errorf("enqueue: %v", err)
		}
		if strings.Contains(fmt.Sprint(err), "SLM01") || strings.Count(fmt.Sprint(err), "moved") != 1 {
			t.Errorf("enqueue: %v", err)
		}
		request := sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()}
		if _, err := store.Claim(t.Context(), request); !errors.Is(err, sluice.ErrMoved) {
			t.Errorf("claim: %v", err)
		}
		if err := client.Cancel(t.Context(), []sluice.ID{receipt.ID}, sluice.Act{By: "ada"}); !errors.Is(err, sluice.ErrMoved) {
			t.Errorf("cancel: %v", err)
		}
		if j, err := client.Job(t.Context(), receipt.ID); err != nil || j.State != sluice.StateQueued {
			t.Errorf("look: %v, %v", j, err)
		}
		if err := Reopen(t.Context(), way[0]); !errors.Is(err, ErrRefused) {
			t.Errorf("reopen: %v", err)
		}
		onlyMoved(t, store)
		if claimed, err := open(t, way[1]).Claim(t.Context(), request); err != nil || len(claimed.Jobs) != 1 || claimed.Jobs[0].ID != receipt.ID {
			t.Errorf("claim there: %v, %v", claimed, err)
		}
	}
}

// onlyMoved checks that the health of a moved store says so, and calls nothing that keeps it closed somebody else's.
func onlyMoved(t *testing.T, store sluice.Store) {
	t.Helper()
	report, err := health.Of(t.Context(), store, health.Options{})
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for _, f := range report.Findings {
		switch {
		case f.Check == "moved" && !f.Well && strings.Contains(f.What, "the store was moved to "):
			moved++
		case f.Check == "foreign" && !f.Well:
			t.Errorf("%s: %s", f.What, f.Repair)
		}
	}
	if moved != 1 {
		t.Errorf("%d findings say that the store was moved, want 1", moved)
	}
}

// TestClaimedJobsAreWaitedFor checks that a move fails while a job is claimed. With the option Wait, the move waits
// until the job is settled.
func TestClaimedJobsAreWaitedFor(t *testing.T) {
	t.Parallel()
	for _, way := range [][2]string{{newFile(t), pgtest.NewDatabase(t)}, {pgtest.NewDatabase(t), newFile(t)}} {
		store := open(t, way[0])
		client := sluice.NewClient(store, sluice.ClientOptions{})
		job := sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}
		if _, err := client.EnqueueMany(t.Context(), []sluice.NewJob{job, job}); err != nil {
			t.Fatal(err)
		}
		request := sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()}
		claimed, err := store.Claim(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		var busy *BusyError
		if _, err := Run(t.Context(), way[0], way[1], Options{}); !errors.As(err, &busy) || busy.Claimed != 1 || busy.Holders[0] != "h:1:x" {
			t.Fatalf("move: %v", err)
		}
		if _, err := client.Enqueue(t.Context(), job); err != nil { // after the refusal, the store is open again
			t.Fatal(err)
		}
		var once bool
		_, err = Run(t.Context(), way[0], way[1], Options{Wait: time.Minute, Progress: func(p Progress) {
			if p.Doing != "waiting" || once {
				return
			}
			once = true
			if _, err := client.Enqueue(t.Context(), job); !errors.Is(err, sluice.ErrMoved) {
				t.Errorf("enqueue while it is waited: %v", err)
			}
			if _, err := store.Claim(t.Context(), request); !errors.Is(err, sluice.ErrMoved) {
				t.Errorf("claim while it is waited: %v", err)
			}
			if other, err := tryOpen(t, way[1]); !errors.Is(err, sluice.ErrUnavailable) {
				t.Errorf("the target can be opened: %v, %v", other, err)
			}
			errs, err := store.Settle(t.Context(), []sluice.Settlement{{ID: claimed.Jobs[0].ID, Token: request.Token, Event: sluice.EventComplete}})
			if err != nil || errs[0] != nil {
				t.Errorf("settle while it is waited: %v, %v", errs, err)
			}
		}})
		if err != nil || !once {
			t.Fatalf("waited %t, %v", once, err)
		}
		if j, err := open(t, way[1]).Job(t.Context(), claimed.Jobs[0].ID); err != nil || j.State != sluice.StateCompleted {
			t.Errorf("the job is %s, %v", j.State, err)
		}
	}
}

func TestMovesThatWouldLoseSomethingAreRefused(t *testing.T) {
	t.Parallel()
	from, other := newFile(t), newFile(t)
	for _, address := range []string{from, other} {
		if _, err := sluice.NewClient(open(t, address), sluice.ClientOptions{}).Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	odd := newFile(t)
	open(t, odd)
	db, err := sql.Open("sqlite", strings.TrimPrefix(odd, "sqlite:")) // a Store would refuse this statement
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("alter table sluice_live add column mood text"); err != nil {
		t.Fatal(err)
	}
	older := newFile(t)
	if _, err := open(t, older).(*sqlite.Store).DB().Exec("delete from sluice_migration where version = (select max(version) from sluice_migration)"); err != nil {
		t.Fatal(err)
	}
	for what, way := range map[string][2]string{
		"is not empty: it has queues": {from, other},
		"are the same store":          {from, from},
		"sluice_live.mood":            {from, odd},
		"schema step":                 {from, older},
	} {
		if _, err := Run(t.Context(), way[0], way[1], Options{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := Run(t.Context(), newFile(t), newFile(t), Options{}); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("from nowhere: %v", err)
	}
	if err := Reopen(t.Context(), from); !errors.Is(err, ErrRefused) {
		t.Errorf("reopen what was not moved: %v", err)
	}
}

// TestMoveThatIsGivenUp ends a move in the middle. The old store works as before, and the new store, which has a part
// of the data, refuses to work.
func TestMoveThatIsGivenUp(t *testing.T) {
	t.Parallel()
	from, to := newFile(t), newFile(t)
	store := open(t, from)
	populate(t, store, rand.New(rand.NewPCG(1, 2)))
	ctx, stop := context.WithCancel(t.Context())
	if _, err := Run(ctx, from, to, Options{Progress: func(p Progress) {
		if p.Rows > 200 {
			stop()
		}
	}}); err == nil {
		t.Fatal("the move ended well, want an error after its context ended")
	}
	if _, err := tryOpen(t, to); !errors.Is(err, sluice.ErrUnavailable) || !strings.Contains(err.Error(), "sluice move") {
		t.Errorf("the half full target: %v", err)
	}
	if _, err := Run(t.Context(), from, newFile(t), Options{}); !errors.Is(err, ErrRefused) {
		t.Errorf("to elsewhere: %v", err)
	}
	if err := Reopen(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if _, err := sluice.NewClient(store, sluice.ClientOptions{}).Enqueue(t.Context(), sluice.NewJob{Queue: queues[0], Payload: []byte(`{}`)}); err != nil {
		t.Error(err)
	}
	if _, err := Run(t.Context(), from, to, Options{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "part of another move") {
		t.Errorf("into the half full target: %v", err)
	}
	mustMove(t, from, newFile(t))
}

// TestCorruptionIsSeen changes data in the target. The check at the end of the move must find the change.
func TestCorruptionIsSeen(t *testing.T) {
	t.Parallel()
	from, to := newFile(t), newFile(t)
	populate(t, open(t, from), rand.New(rand.NewPCG(3, 4)))
	path := strings.TrimPrefix(to, "sqlite:")
	done := false
	_, err := Run(t.Context(), from, to, Options{Progress: func(p Progress) {
		if p.Doing == "copying" && p.Table == "audit" && !done {
			done = true
			s, err := openLite(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.close()
			if _, err := s.db.Exec("update sluice_done set attempts = attempts + 1 where seq = (select min(seq) from sluice_done)"); err != nil {
				t.Error(err)
			}
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "history differ after the copy") {
		t.Errorf("moved: %v", err)
	}
	if _, err := tryOpen(t, to); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("the target can be opened: %v", err)
	}
}
