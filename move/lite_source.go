package move

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/internal/migration"
)

// mark returns the file's record of a move; nil: none. A moved SQLite file has triggers that refuse further
// changes by every process, and a table with this record.

func (s *lite) mark(ctx context.Context) (*mark, error) {
	return kept[mark](ctx, s, "select exists (select 1 from sqlite_master where name = 'sluice_moved')", "select mark from sluice_moved")
}

func liteCursor(ctx context.Context, tx *sql.Tx, m mark) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "insert into sluice_moved values (1, ?) on conflict do update set mark = excluded.mark", string(text))
	return err
}

// liteMark reads the mark in a transaction. Nil: the store has none.
func liteMark(ctx context.Context, tx *sql.Tx) (*mark, error) {
	return kept[mark](ctx, liteTx{tx}, "select exists (select 1 from sqlite_master where name = 'sluice_moved')",
		"select coalesce((select mark from sluice_moved), '{}')")
}

// liteTx reads in a transaction.
type liteTx struct{ *sql.Tx }

func (t liteTx) one(ctx context.Context, into any, text string, args ...any) error {
	return t.QueryRowContext(ctx, text, args...).Scan(into)
}

// refusing returns the body of a trigger.
func refusing(m mark) string {
	said := strings.ReplaceAll(migration.MovedText+m.To+" ("+m.At.UTC().Format(time.RFC3339)+")", "'", "''")
	return " begin select raise(abort, '" + said + "'); end"
}

func (s *lite) shut(ctx context.Context, m mark) error {
	return s.in(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := execAll(ctx, tx,
			"create table if not exists sluice_moved (one integer primary key check (one = 1), mark text not null)",
			"create trigger if not exists sluice_moved_enqueue before insert on sluice_job"+refusing(m),
			"create trigger if not exists sluice_moved_claim before update of state on sluice_live when new.state = 'claimed'"+refusing(m))
		if err != nil {
			return err
		}
		was, err := liteMark(ctx, tx)
		if err != nil || was.ID != "" {
			return cmp.Or(err, was.of(m.ID))
		}
		return liteCursor(ctx, tx, m)
	})
}

func (s *lite) claims(ctx context.Context) (int64, []string, error) {
	ctx, cancel := briefly(ctx)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, "select coalesce(holder, ''), count(*) from sluice_live where state = 'claimed' and lease_until >= ? group by 1 order by 2 desc",
		time.Now().UnixMicro())
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", s.path, err)
	}
	defer func() { _ = rows.Close() }()
	return holdersOf(rows.Next, rows.Scan, rows.Err)
}

// holdersOf sums up claims, and returns the first few holders.
func holdersOf(next func() bool, scan func(...any) error, failed func() error) (claimed int64, holders []string, err error) {
	for next() {
		var holder string
		var n int64
		if err := scan(&holder, &n); err != nil {
			return 0, nil, err
		}
		if claimed += n; len(holders) < 3 {
			holders = append(holders, holder)
		}
	}
	return claimed, holders, failed()
}

func (s *lite) freeze(ctx context.Context, id string) (frozen bool, err error) {
	err = s.in(ctx, func(ctx context.Context, tx *sql.Tx) error {
		m, err := liteMark(ctx, tx)
		if err = cmp.Or(err, m.of(id)); err != nil || m.Frozen {
			frozen = err == nil
			return err
		}
		var claimed int64
		err = tx.QueryRowContext(ctx, "select count(*) from sluice_live where state = 'claimed' and lease_until >= ?", time.Now().UnixMicro()).Scan(&claimed)
		if err != nil || claimed > 0 {
			return err
		}
		for _, t := range tables() {
			for _, act := range []string{"insert", "update", "delete"} {
				text := fmt.Sprintf("create trigger if not exists sluice_moved_%s_%s before %s on %s", t.lite.name, act, act, t.lite.name)
				if err := execAll(ctx, tx, text+refusing(*m)); err != nil {
					return err
				}
			}
		}
		m.Frozen, frozen = true, true
		return liteCursor(ctx, tx, *m)
	})
	return frozen, err
}

func (s *lite) done(ctx context.Context, id string) error {
	return s.in(ctx, func(ctx context.Context, tx *sql.Tx) error {
		m, err := liteMark(ctx, tx)
		if err = cmp.Or(err, m.of(id)); err != nil {
			return err
		}
		m.Done = true
		return liteCursor(ctx, tx, *m)
	})
}

func (s *lite) reopen(ctx context.Context, id string, byPerson bool) error {
	return s.in(ctx, func(ctx context.Context, tx *sql.Tx) error {
		m, err := liteMark(ctx, tx)
		if err != nil {
			return err
		}
		if may, err := m.mayReopen(id, byPerson); !may {
			return err
		}
		rows, err := tx.QueryContext(ctx, `select name from sqlite_master where type = 'trigger' and name like 'sluice\_moved\_%' escape '\'`)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		var drops []string
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			drops = append(drops, "drop trigger "+name)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return execAll(ctx, tx, append(drops, "drop table if exists sluice_moved")...)
	})
}
