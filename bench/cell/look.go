package cell

import (
	"context"
	"database/sql"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// look is a separate connection to Sluice's database, with a query for unfinished jobs.
type look struct {
	db    *sql.DB
	query string
}

// openLook opens a look at the table of live jobs, which has no finished jobs.
func openLook(ctx context.Context, task Task) (*look, error) {
	table := "sluice.live"
	if task.Store == SQLite {
		table = "sluice_live"
	}
	db, err := openDatabase(task)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &look{db: db, query: "select exists (select 1 from " + table + ")"}, db.PingContext(ctx)
}

// openDatabase opens the database of a task for plain SQL.
func openDatabase(task Task) (*sql.DB, error) {
	if task.Store == SQLite {
		return sql.Open("sqlite", "file:"+task.Place)
	}
	return sql.Open("pgx", withoutPool(task.Place))
}

func (l *look) unfinished(ctx context.Context) (bool, error) {
	var left bool
	err := l.db.QueryRowContext(ctx, l.query).Scan(&left)
	return left, err
}

// dispatched reports whether every job in PostgreSQL is with its engine.
func (l *look) dispatched(ctx context.Context) (bool, error) {
	var all bool
	err := l.db.QueryRowContext(ctx, `
		select not exists (select 1 from sluice.live where queue = $1 and state = 'queued' and blocked_by is null)
		   and not exists (select 1 from sluice.live where state = 'claimed')`, parcels.Name()).Scan(&all)
	return all, err
}
