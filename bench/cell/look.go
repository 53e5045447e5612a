package cell

import (
	"context"
	"database/sql"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// look is a connection of our own to Sluice's database.
type look struct {
	db    *sql.DB
	query string
}

// openLook opens it. A job that ended is not in the table of live ones.
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

// openDatabase opens the database of a task for SQL of our own.
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

// dispatched says whether every job in PostgreSQL has been handed to its engine.
func (l *look) dispatched(ctx context.Context) (bool, error) {
	var all bool
	err := l.db.QueryRowContext(ctx, `
		select not exists (select 1 from sluice.live where queue = $1 and state = 'queued' and blocked_by is null)
		   and not exists (select 1 from sluice.live where state = 'claimed')`, parcels.Name()).Scan(&all)
	return all, err
}
