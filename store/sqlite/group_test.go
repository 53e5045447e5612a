package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/litetest"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// The writes of many callers share a transaction. A failure of one caller must not affect the others.

// crowd is a store with many callers that enqueue at the same time.
type crowd struct {
	*testing.T
	store  *sqlite.Store
	client *sluice.Client
	path   string
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	litetest.MakeFile(t, path)
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{CallTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	c := &crowd{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), path: path}
	if _, err := c.client.EnsureQueue(t.Context(), "mail", sluice.DefaultSettings(), sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *crowd) add(ctx context.Context) error {
	_, err := c.client.Enqueue(ctx, sluice.NewJob{Queue: "mail", Payload: json.RawMessage(`1`)})
	return err
}

// beside lets other callers enqueue while do runs. It checks that each of them succeeds, and that only their jobs are
// stored.
func (c *crowd) beside(do func()) {
	c.Helper()
	const others, each = 8, 25
	var wait sync.WaitGroup
	for range others {
		wait.Go(func() {
			for range each {
				if err := c.add(context.Background()); err != nil {
					c.Errorf("another caller: %v", err)
				}
			}
		})
	}
	do()
	wait.Wait()
	var stored int
	reopened, err := sqlite.Open(context.Background(), c.path, sqlite.Options{})
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = reopened.Close() }()
	if err := reopened.DB().QueryRow("select count(*) from sluice_live").Scan(&stored); err != nil {
		c.Fatal(err)
	}
	if stored != others*each {
		c.Errorf("%d jobs are stored, want %d", stored, others*each)
	}
}

// write enqueues a job in the transaction. The job must not be stored afterwards.
func (c *crowd) write(tx sqlite.Tx) {
	if _, err := c.client.Within(c.store.InTx(tx)).Enqueue(context.Background(), sluice.NewJob{Queue: "mail", Payload: json.RawMessage(`2`)}); err != nil {
		c.Errorf("enqueue in the transaction: %v", err)
	}
}

func TestPanicInATransactionIsItsCallersAlone(t *testing.T) {
	c := newCrowd(t)
	c.beside(func() {
		for range 10 {
			func() {
				defer func() {
					if recover() != "boom" {
						t.Error("the panic did not reach its caller")
					}
				}()
				_ = c.store.Transact(t.Context(), func(tx sqlite.Tx) error {
					c.write(tx)
					panic("boom")
				})
			}()
		}
	})
}

func TestGoroutineThatEndsInATransactionUndoesItsOwnWorkAlone(t *testing.T) {
	c := newCrowd(t)
	c.beside(func() {
		for range 10 {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = c.store.Transact(t.Context(), func(tx sqlite.Tx) error {
					c.write(tx)
					runtime.Goexit()
					return nil
				})
			}()
			<-ended
		}
	})
}

func TestContextThatEndsInATransactionUndoesItsOwnWorkAlone(t *testing.T) {
	c := newCrowd(t)
	c.beside(func() {
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			err := c.store.Transact(ctx, func(tx sqlite.Tx) error {
				c.write(tx)
				time.AfterFunc(time.Millisecond, cancel)
				const slow = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 3000) select max(i) from n"
				if _, err := tx.ExecContext(ctx, slow); err != nil {
					return err
				}
				<-ctx.Done()
				_, err := tx.ExecContext(ctx, slow)
				return err
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		}
	})
}

// A conflict of an "or rollback" ends SQLite's transaction, although the caller passes its error over.
func TestATransactionThatRollsBackInSilenceUndoesItsOwnWorkAlone(t *testing.T) {
	c := newCrowd(t)
	if _, err := c.store.DB().ExecContext(t.Context(), "create table mine (n integer primary key)"); err != nil {
		t.Fatal(err)
	}
	c.beside(func() {
		for range 10 {
			err := c.store.Transact(t.Context(), func(tx sqlite.Tx) error {
				c.write(tx)
				for range 2 {
					_, _ = tx.ExecContext(t.Context(), "insert or rollback into mine values (1)")
				}
				return nil
			})
			if err == nil {
				t.Error("a transaction that was rolled back counts as committed")
			}
		}
	})
}

func TestRowsLeftOpenInATransactionHoldNothingUp(t *testing.T) {
	c := newCrowd(t)
	c.beside(func() {
		for range 10 {
			err := c.store.Transact(t.Context(), func(tx sqlite.Tx) error {
				rows, err := tx.QueryContext(t.Context(), "select seq from sluice_live")
				if err == nil {
					rows.Next()
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

func TestViolationThatShowsAtTheCommitIsFeltByItsCallerAlone(t *testing.T) {
	c := newCrowd(t)
	db, err := sql.Open("sqlite", "file:"+c.path+"?_txlock=immediate&_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(`
		create table parent (id integer primary key);
		create table child (parent integer references parent (id) deferrable initially deferred)`); err != nil {
		t.Fatal(err)
	}
	if c.store, err = sqlite.New(t.Context(), db, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.store.Close() })
	c.client = sluice.NewClient(c.store, sluice.ClientOptions{})
	c.beside(func() {
		for range 5 {
			err := c.store.Transact(t.Context(), func(tx sqlite.Tx) error {
				_, err := tx.ExecContext(t.Context(), "insert into child values (1)")
				return err
			})
			if err == nil {
				t.Error("a child without a parent was committed, want an error")
			}
		}
	})
}

func TestStoreCalledWithinATransactionIsRefusedInTimeAndTheStoreGoesOn(t *testing.T) {
	c := newCrowd(t)
	err := c.store.Transact(t.Context(), func(sqlite.Tx) error { return c.add(t.Context()) })
	if !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	if err := c.add(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestCallerThatGivesUpDoesNotWaitForTheOneBefore(t *testing.T) {
	c := newCrowd(t)
	begun, release := make(chan struct{}), make(chan struct{})
	go func() {
		_ = c.store.Transact(context.Background(), func(sqlite.Tx) error {
			close(begun)
			<-release
			return nil
		})
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.add(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	close(release)
	if depth, err := c.client.Depth(t.Context(), "mail"); err != nil || depth.Ready != 0 {
		t.Errorf("%d jobs are stored, error %v", depth.Ready, err)
	}
}

func TestFileThatIsMovedAwayIsNoticed(t *testing.T) {
	c := newCrowd(t)
	if err := os.Rename(c.path, c.path+".moved"); err != nil {
		t.Fatal(err)
	}
	var err error
	for deadline := time.Now().Add(10 * time.Minute); err == nil && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		err = c.add(t.Context())
	}
	if !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}
