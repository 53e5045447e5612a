package payment

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"strings"
)

//go:embed sql/astray.sql
var astraySQL string

// Astray tells of each payment that does not say what became of its job. There should be none, ever. Jobs is the name of
// Sluice's view of jobs, which differs between databases; see books.Books.Jobs.
func Astray(ctx context.Context, db *sql.DB, jobs string) ([]string, error) {
	rows, err := db.QueryContext(ctx, strings.ReplaceAll(astraySQL, "{jobs}", jobs))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, errors.Join(rows.Err(), rows.Close())
}
