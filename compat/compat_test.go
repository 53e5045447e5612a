package compat_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

const mattn = "?_txlock=immediate&_busy_timeout=5000&_journal_mode=WAL"

func mattnDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+mattn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// own opens a store on a database handle of the program.
func own(t *testing.T, db *sql.DB) (*sqlite.Store, *sluice.Client) {
	t.Helper()
	store, err := sqlite.New(t.Context(), db, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, sluice.NewClient(store, sluice.ClientOptions{})
}

func opened(t *testing.T, path string) (*sqlite.Store, *sluice.Client) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, sluice.NewClient(store, sluice.ClientOptions{})
}

type order struct {
	ID int `json:"id" bun:",pk" gorm:"primaryKey" db:"id"`
}

var orders = sluice.QueueOf[order]("orders")

func newJob() sluice.NewJob { return sluice.NewJob{Queue: "orders", Payload: []byte(`{"id":1}`)} }

func count(t *testing.T, db *sql.DB, text string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), text).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMain can run one test in a process of its own, in which no file was locked before.
func TestMain(m *testing.M) {
	if path := os.Getenv("SLUICE_TEST_OPEN"); path != "" {
		os.Exit(openBeside(path))
	}
	pgtest.Main(m)
}

// openBeside opens a store on a file that another library keeps open, and for which that library has made no log yet.
func openBeside(path string) int {
	ctx := context.Background()
	db, err := sql.Open("sqlite3", path)
	if err == nil {
		_, err = db.ExecContext(ctx, "create table orders (id integer primary key)")
	}
	if err == nil {
		_, err = sqlite.Open(ctx, path, sqlite.Options{Migrate: true})
	}
	fmt.Println(err)
	if errors.Is(err, sqlite.ErrTwoLibraries) {
		return 0
	}
	return 1
}

func TestOpenRefusesAFileThatAnotherLibraryHasOpen(t *testing.T) {
	t.Run("with a log", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "app.db")
		db := mattnDB(t, path)
		if _, err := db.ExecContext(t.Context(), "create table orders (id integer primary key)"); err != nil {
			t.Fatal(err)
		}
		_, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
		if !errors.Is(err, sqlite.ErrTwoLibraries) || !strings.Contains(err.Error(), "mattn/go-sqlite3") || !strings.Contains(err.Error(), "sqlite.New") {
			t.Fatal(err)
		}
		if n := count(t, db, "select count(*) from orders"); n != 0 {
			t.Error(n)
		}
	})
	t.Run("without one", func(t *testing.T) {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), "SLUICE_TEST_OPEN="+filepath.Join(t.TempDir(), "app.db"))
		if out, err := process.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
	t.Run("another file", func(t *testing.T) {
		folder := t.TempDir()
		db := mattnDB(t, filepath.Join(folder, "app.db"))
		if _, err := db.ExecContext(t.Context(), "create table orders (id integer primary key)"); err != nil {
			t.Fatal(err)
		}
		_, client := opened(t, filepath.Join(folder, "jobs.db"))
		if _, err := client.Enqueue(t.Context(), newJob()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStoreRefusesOnceAnotherLibraryOpensItsFile checks that no acknowledged job is lost.
func TestStoreRefusesOnceAnotherLibraryOpensItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	store, client := opened(t, path)
	acknowledged := 0
	var refused error
	var db *sql.DB
	for deadline := time.Now().Add(time.Minute); refused == nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, refused = client.Enqueue(t.Context(), newJob()); refused == nil {
			acknowledged++
		}
		if acknowledged == 20 && db == nil {
			db = mattnDB(t, path)
			count(t, db, "select count(*) from sluice_jobs")
		}
	}
	if !errors.Is(refused, sqlite.ErrTwoLibraries) || !errors.Is(refused, sluice.ErrUnavailable) {
		t.Fatalf("after %d jobs: %v", acknowledged, refused)
	}
	if _, err := client.Queues(t.Context(), sluice.QueueFilter{}); !errors.Is(err, sqlite.ErrTwoLibraries) {
		t.Errorf("a read: %v", err)
	}
	if err := errors.Join(store.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, mattnDB(t, path), "select count(*) from sluice_jobs"); n != acknowledged {
		t.Errorf("%d jobs of %d", n, acknowledged)
	}
}

func TestTransactionOfAnotherDriverIsRefusedByName(t *testing.T) {
	for _, name := range []string{"jobs.db", "app.db"} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			store, client := opened(t, filepath.Join(folder, "jobs.db"))
			if _, err := client.Enqueue(t.Context(), newJob()); err != nil {
				t.Fatal(err)
			}
			claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "orders", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
			if err != nil || len(claimed.Jobs) != 1 {
				t.Fatal(claimed, err)
			}
			db := mattnDB(t, filepath.Join(folder, name))
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), newJob()); !refuses(err, name) {
				t.Errorf("enqueue: %v", err)
			}
			if err := sqlite.CompleteTx(t.Context(), tx, claimed.Jobs[0], nil); !refuses(err, name) {
				t.Errorf("complete: %v", err)
			}
			if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// refuses reports whether an error names the cause: the driver, the file, or two libraries on one file.
func refuses(err error, name string) bool {
	if name == "app.db" {
		return errors.Is(err, sluice.ErrForeignTx) && strings.Contains(err.Error(), "app.db")
	}
	return errors.Is(err, sluice.ErrForeignTx) && strings.Contains(err.Error(), "github.com/mattn/go-sqlite3") || errors.Is(err, sqlite.ErrTwoLibraries)
}

// TestStoreOnAnotherDriverDoesAllThatAStoreDoes runs a store beside statements of the program.
func TestStoreOnAnotherDriverDoesAllThatAStoreDoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := mattnDB(t, path)
	store, client := own(t, db)
	if _, err := db.ExecContext(t.Context(), "create table effect (job text primary key)"); err != nil {
		t.Fatal(err)
	}
	const jobs = 100
	if _, err := client.EnsureQueue(t.Context(), "orders", sluice.DefaultSettings(), sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	_, err := client.ChangeSettings(t.Context(), "orders", sluice.Act{By: "test"}, func(s *sluice.Settings) error {
		s.Backoff.Base, s.Backoff.Jitter, s.MaxAttempts = time.Millisecond, 0, 3
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var producers sync.WaitGroup
	for n := range jobs {
		producers.Go(func() {
			job := newJob()
			job.Key, job.Labels = fmt.Sprint("order-", n), map[string]string{"n": fmt.Sprint(n)}
			if _, err := client.Enqueue(t.Context(), job); err != nil {
				t.Error(err)
			}
		})
	}
	producers.Wait()
	if receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "orders", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Key: "order-1"}}); err != nil || !receipt.Duplicate {
		t.Errorf("the key of a waiting job again: %+v, %v", receipt, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	w := worker.New(store, worker.Options{Slots: 8, Logger: slog.New(slog.DiscardHandler)})
	var once sync.Map
	worker.Handle(w, orders, func(ctx context.Context, job *worker.Job[order]) error {
		if _, again := once.LoadOrStore(job.ID, true); !again && job.Labels["n"] == "7" {
			return errors.New("the first attempt fails")
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "insert into effect (job) values (?)", job.ID.String()); err != nil {
			return err
		}
		if err := sqlite.CompleteTx(ctx, tx, job.Claim, nil); err != nil {
			return err
		}
		return tx.Commit()
	}, worker.QueueOptions{})
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	running.Go(func() { _ = upkeep.New(store, upkeep.Options{Logger: slog.New(slog.DiscardHandler)}).Run(ctx) })
	for deadline := time.Now().Add(time.Minute); count(t, db, "select count(*) from effect") < jobs && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	running.Wait()
	if n := count(t, db, "select count(*) from sluice_jobs where state = 'completed'"); n != jobs {
		t.Errorf("%d jobs of %d are completed", n, jobs)
	}
	if err := errors.Join(store.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		t.Error("a closed store is more than one file")
	}
}
