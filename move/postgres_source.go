package move

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice/internal/migration"
)

// A moved database has triggers that refuse further changes by every process and version, and a table with the
// mark of the move.

// lockPatience is how long to try for the locks that triggers need. Each try waits some seconds, while other
// transactions wait behind it. Between tries, those proceed.
const lockPatience = time.Minute

func (s *pg) mark(ctx context.Context) (*mark, error) {
	return kept[mark](ctx, s, "select to_regclass('sluice.moved') is not null", "select mark from sluice.moved")
}

func pgCursor(ctx context.Context, tx pgx.Tx, m mark) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "insert into sluice.moved values (1, $1) on conflict (one) do update set mark = excluded.mark", string(text))
	return err
}

// pgMark reads the mark in a transaction, and keeps others from changing it until that ends. Nil: the store has none.
func pgMark(ctx context.Context, tx pgx.Tx) (*mark, error) {
	const exists = "select to_regclass('sluice.moved') is not null"
	var there bool
	err := tx.QueryRow(ctx, exists).Scan(&there)
	if err == nil && there {
		err = pgExec(ctx, tx, "lock table sluice.moved in share row exclusive mode")
	}
	if err != nil {
		return nil, err
	}
	return kept[mark](ctx, pgTx{tx}, exists, "select coalesce((select mark from sluice.moved), '{}')")
}

// pgTx reads in a transaction.
type pgTx struct{ pgx.Tx }

func (t pgTx) one(ctx context.Context, into any, text string, args ...any) error {
	return t.QueryRow(ctx, text, args...).Scan(into)
}

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// patiently runs a transaction that needs locks, and retries while others hold them.
func (s *pg) patiently(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	for until := time.Now().Add(lockPatience); ; {
		err := s.in(ctx, do)
		var server *pgconn.PgError
		if !errors.As(err, &server) || server.Code != "55P03" && server.Code != "40P01" {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("a transaction of somebody else's keeps the tables locked: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (s *pg) shut(ctx context.Context, m mark) error {
	return s.patiently(ctx, func(ctx context.Context, tx pgx.Tx) error {
		err := pgExec(ctx, tx,
			"create table if not exists sluice.moved (one integer primary key check (one = 1), mark text not null)",
			fmt.Sprintf(`create or replace function sluice.refuse_moved() returns trigger language plpgsql set search_path = pg_catalog as $body$
				begin raise exception using errcode = %s, message = %s, detail = %s, hint = 'Use that store.'; end $body$`,
				literal(migration.MovedCode), literal(migration.MovedText+m.To), literal(m.To)),
			"revoke all on function sluice.refuse_moved() from public",
			"drop trigger if exists moved_enqueue on sluice.job",
			"create trigger moved_enqueue before insert on sluice.job for each statement execute function sluice.refuse_moved()",
			"drop trigger if exists moved_claim on sluice.live",
			"create trigger moved_claim before update on sluice.live for each row when (new.state = 'claimed' and old.state <> 'claimed') execute function sluice.refuse_moved()")
		if err != nil {
			return err
		}
		was, err := pgMark(ctx, tx)
		if err != nil || was.ID != "" {
			return cmp.Or(err, was.of(m.ID))
		}
		return pgCursor(ctx, tx, m)
	})
}

func (s *pg) claims(ctx context.Context) (int64, []string, error) {
	ctx, cancel := briefly(ctx)
	defer cancel()
	rows, err := s.conn.Query(ctx, "select coalesce(holder, ''), count(*) from sluice.live where state = 'claimed' and lease_until >= clock_timestamp() group by 1 order by 2 desc")
	if err != nil {
		return 0, nil, err
	}
	defer rows.Close()
	return holdersOf(rows.Next, rows.Scan, rows.Err)
}

func (s *pg) freeze(ctx context.Context, id string) (frozen bool, err error) {
	err = s.patiently(ctx, func(ctx context.Context, tx pgx.Tx) error {
		m, err := pgMark(ctx, tx)
		if err = cmp.Or(err, m.of(id)); err != nil || m.Frozen {
			return err
		}
		for _, t := range tables() {
			name := tableName(s, t.postgres)
			if t.name == batchCounts {
				if err := foldBatches(ctx, tx); err != nil {
					return err
				}
			}
			err := pgExec(ctx, tx, "drop trigger if exists moved on "+name,
				"create trigger moved before insert or update or delete or truncate on "+name+" for each statement execute function sluice.refuse_moved()")
			if err != nil {
				return err
			}
		}
		var claimed int64 // no process can write any more
		err = tx.QueryRow(ctx, "select count(*) from sluice.live where state = 'claimed' and lease_until >= clock_timestamp()").Scan(&claimed)
		if err != nil {
			return err
		}
		if claimed > 0 {
			return errHeld
		}
		m.Frozen = true
		return pgCursor(ctx, tx, *m)
	})
	if errors.Is(err, errHeld) {
		return false, nil
	}
	return err == nil, err
}

func (s *pg) done(ctx context.Context, id string) error {
	return s.in(ctx, func(ctx context.Context, tx pgx.Tx) error {
		m, err := pgMark(ctx, tx)
		if err = cmp.Or(err, m.of(id)); err != nil {
			return err
		}
		m.Done = true
		return pgCursor(ctx, tx, *m)
	})
}

func (s *pg) reopen(ctx context.Context, id string, byPerson bool) error {
	return s.patiently(ctx, func(ctx context.Context, tx pgx.Tx) error {
		m, err := pgMark(ctx, tx)
		if err != nil {
			return err
		}
		if may, err := m.mayReopen(id, byPerson); !may {
			return err
		}
		return pgExec(ctx, tx, "drop function if exists sluice.refuse_moved() cascade", "drop table if exists sluice.moved")
	})
}
