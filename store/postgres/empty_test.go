package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/store/storetest"
)

// databases are used by one rule after the other, emptied in between: that takes a tenth of the time that a
// new database and its schema take. They are dropped when their owner ends.
type databases struct {
	owner *testing.T
	make  func(testing.TB) string

	mu   sync.Mutex
	free []string
}

// open makes two stores on an empty database.
func (d *databases) open(t *testing.T) storetest.Bench {
	t.Helper()
	url := d.take()
	// The stores are closed before this, as cleanups run backwards.
	t.Cleanup(func() {
		if t.Failed() {
			return // whatever it left behind is nobody else's trouble
		}
		if err := empty(url); err != nil {
			t.Errorf("empty the database: %v", err)
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.free = append(d.free, url)
	})
	return openAt(t, url)
}

func (d *databases) take() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := len(d.free) - 1; last >= 0 {
		url := d.free[last]
		d.free = d.free[:last]
		return url
	}
	return d.make(d.owner)
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
    for one in select c.oid::regclass from pg_class c where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'S' loop
        execute format('alter sequence %s restart', one);
    end loop;
    delete from pg_statistic where starelid in (select oid from pg_class where relnamespace = 'sluice'::regnamespace);
end $$`

func empty(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, emptying)
	return err
}
