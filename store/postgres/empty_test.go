package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/storetest"
)

// databases are emptied and used again by the next rule. Emptying a database takes a tenth of the time of making one
// with its schema.
//
// Connections stay open too, because a server compiles each function and plans each statement anew in each new
// connection. The databases are dropped when their owner ends.
type databases struct {
	owner *testing.T
	make  func(testing.TB) string

	mu   sync.Mutex
	free []database
}

// database has two stores. Their pools stay open for the stores that rules get.
type database [2]*postgres.Store

// open makes two stores on an empty database.
func (d *databases) open(t *testing.T) storetest.Bench {
	t.Helper()
	kept := d.take(t)
	// Cleanups run backwards, so the stores of the rule are closed before this cleanup runs.
	t.Cleanup(func() {
		if t.Failed() {
			return // no other rule gets the database of a failed rule
		}
		if err := kept.empty(); err != nil {
			t.Errorf("empty the database: %v", err)
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.free = append(d.free, kept)
	})
	return benchOf(t, reopen(t, kept[0]), reopen(t, kept[1]))
}

func (d *databases) take(t *testing.T) database {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := len(d.free) - 1; last >= 0 {
		kept := d.free[last]
		d.free = d.free[:last]
		return kept
	}
	url := d.make(d.owner)
	return database{openStore(d.owner, url), openStore(d.owner, url)}
}

func reopen(t *testing.T, kept *postgres.Store) *postgres.Store {
	t.Helper()
	store, err := kept.Again(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// emptying leaves the schema as its migration left it, which stores nothing but its own steps and functions. To delete a few
// rows is far cheaper than to truncate forty tables, which makes all their files anew.
const emptying = `
do $$
declare
    one   regclass;
    small boolean;
begin
    set local lock_timeout = '20s';
    set local session_replication_role = replica; -- triggers keep the audit from being emptied
    for one, small in
        select c.oid::regclass, pg_table_size(c.oid) < 500000 from pg_class c
        where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'r' and c.relname not in ('migration', 'function_set')
          and pg_relation_size(c.oid) > 0
    loop
        execute case when small then 'delete from ' else 'truncate ' end || one;
    end loop;
    -- To restart a sequence makes its file anew, and the plans that use it.
    perform setval(s.seqrelid::regclass, s.seqstart, false) from pg_sequence s join pg_class c on c.oid = s.seqrelid
    where c.relnamespace = 'sluice'::regnamespace;
    delete from pg_statistic where starelid in (select oid from pg_class where relnamespace = 'sluice'::regnamespace);
end $$`

func (d database) empty() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	_, err := d[0].Pool().Exec(ctx, emptying)
	return err
}
