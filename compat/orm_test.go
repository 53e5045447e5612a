package compat_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

var errUndo = errors.New("undo")

// within inserts an order in a transaction of an ORM, and calls do with the ORM's handle of that transaction.
type within func(ctx context.Context, id int, do func(tx sqlite.Tx) error) error

func ofGORM(t *testing.T, db *sql.DB, prepare bool) within {
	t.Helper()
	orm, err := gorm.Open(&gormsqlite.Dialector{Conn: db}, &gorm.Config{PrepareStmt: prepare, Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, id int, do func(tx sqlite.Tx) error) error {
		return orm.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&order{ID: id}).Error; err != nil {
				return err
			}
			return do(tx.Statement.ConnPool)
		})
	}
}

func ofSQLX(db *sql.DB) within {
	orm := sqlx.NewDb(db, "sqlite3")
	return func(ctx context.Context, id int, do func(tx sqlite.Tx) error) error {
		tx, err := orm.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.NamedExecContext(ctx, "insert into orders (id) values (:id)", order{ID: id}); err != nil {
			return err
		}
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	}
}

func ofBun(db *sql.DB) within {
	orm := bun.NewDB(db, sqlitedialect.New())
	return func(ctx context.Context, id int, do func(tx sqlite.Tx) error) error {
		return orm.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if _, err := tx.NewInsert().Model(&order{ID: id}).Exec(ctx); err != nil {
				return err
			}
			return do(tx)
		})
	}
}

// ofEnt uses ent's driver, on which ent's generated code is built. Its Tx has ExecContext if the feature sql/execquery
// is on.
func ofEnt(db *sql.DB) within {
	driver := entsql.OpenDB(dialect.SQLite, db)
	return func(ctx context.Context, id int, do func(tx sqlite.Tx) error) error {
		tx, err := driver.Tx(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		text, args := entsql.Dialect(dialect.SQLite).Insert("orders").Columns("id").Values(id).Query()
		if err := tx.Exec(ctx, text, args, nil); err != nil {
			return err
		}
		if err := do(tx.(sqlite.Tx)); err != nil {
			return err
		}
		return tx.Commit()
	}
}

// TestORMsEnqueueAndCompleteInTheirTransactions tests both ways: a store on the program's database, and an ORM on the
// store's database.
func TestORMsEnqueueAndCompleteInTheirTransactions(t *testing.T) {
	for name, on := range map[string]func(t *testing.T, path string) (*sqlite.Store, *sluice.Client, *sql.DB){
		"on mattn": func(t *testing.T, path string) (*sqlite.Store, *sluice.Client, *sql.DB) {
			db := mattnDB(t, path)
			store, client := own(t, db)
			return store, client, db
		},
		"on the store's": func(t *testing.T, path string) (*sqlite.Store, *sluice.Client, *sql.DB) {
			store, client := opened(t, path)
			return store, client, store.DB()
		},
	} {
		for orm, of := range map[string]func(*sql.DB) within{
			"gorm": func(db *sql.DB) within { return ofGORM(t, db, false) }, "gorm prepared": func(db *sql.DB) within { return ofGORM(t, db, true) },
			"sqlx": ofSQLX, "bun": ofBun, "ent": ofEnt,
		} {
			t.Run(fmt.Sprint(orm, " ", name), func(t *testing.T) {
				store, client, db := on(t, filepath.Join(t.TempDir(), "app.db"))
				if _, err := db.ExecContext(t.Context(), "create table orders (id integer primary key)"); err != nil {
					t.Fatal(err)
				}
				standOrFall(t, store, client, db, of(db))
			})
		}
	}
}

func standOrFall(t *testing.T, store *sqlite.Store, client *sluice.Client, db *sql.DB, in within) {
	t.Helper()
	ctx := t.Context()
	for id, undo := range map[int]error{1: nil, 2: errUndo, 3: nil} {
		err := in(ctx, id, func(tx sqlite.Tx) error {
			job := newJob()
			job.Key, job.Labels = fmt.Sprint("order-", id), map[string]string{"a": "b"}
			if _, err := client.Within(store.InTx(tx)).Enqueue(ctx, job); err != nil {
				return err
			}
			return undo
		})
		if !errors.Is(err, undo) {
			t.Fatalf("order %d: %v", id, err)
		}
	}
	claimed, err := store.Claim(ctx, sluice.ClaimRequest{Queue: "orders", Limit: 10, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 2 {
		t.Fatalf("%d jobs, want 2; %v", len(claimed.Jobs), err)
	}
	for i, undo := range []error{nil, errUndo} {
		err := in(ctx, 10+i, func(tx sqlite.Tx) error {
			if err := sqlite.CompleteTx(ctx, tx, claimed.Jobs[i], map[string]int{"n": i}); err != nil {
				return err
			}
			return undo
		})
		if !errors.Is(err, undo) {
			t.Fatalf("complete %d: %v", i, err)
		}
	}
	if n := count(t, db, "select count(*) from orders"); n != 3 {
		t.Errorf("%d orders, want 3", n)
	}
	if n := count(t, db, "select count(*) from sluice_jobs where state = 'completed'"); n != 1 {
		t.Errorf("%d jobs are completed, want 1", n)
	}
	if n := count(t, db, "select count(*) from sluice_jobs where state = 'claimed'"); n != 1 {
		t.Errorf("%d jobs are claimed, want 1", n)
	}
}

// TestORMBesideAStoreOfItsOwnLibraryIsRefused opens GORM with its default driver on the file of an open store.
func TestORMBesideAStoreOfItsOwnLibraryIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	store, client := opened(t, path)
	orm, err := gorm.Open(gormsqlite.Open(path), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	db, err := orm.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	err = orm.Transaction(func(tx *gorm.DB) error {
		_, err := client.Within(store.InTx(tx.Statement.ConnPool)).Enqueue(t.Context(), newJob())
		return err
	})
	if !refuses(err, "jobs.db") {
		t.Error(err)
	}
}
