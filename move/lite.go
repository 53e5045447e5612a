package move

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/migration"
)

// lite is a SQLite file.
type lite struct {
	db   *sql.DB
	path string
}

// openLite opens a file, even without tables.
func openLite(ctx context.Context, path string) (*lite, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(whole); err == nil {
		whole = real
	}
	if err := migration.NewFile(whole); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, sluice.ErrUnavailable, err)
	}
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(whole)}).EscapedPath()}
	dsn.RawQuery = url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)"}}.Encode()
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2)
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("%s: %w: %w", path, sluice.ErrUnavailable, err)
	}
	return &lite{db: db, path: whole}, nil
}

func (s *lite) name() string           { return liteScheme + s.path }
func (s *lite) close()                 { _ = s.db.Close() }
func (s *lite) layout(t *table) layout { return t.lite }

func (s *lite) columns(ctx context.Context) (map[string][]string, error) {
	ctx, cancel := briefly(ctx)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, `select m.name, x.name from sqlite_master m join pragma_table_xinfo(m.name) x
		where m.type = 'table' and m.name like 'sluice\_%' escape '\'`)
	if err != nil {
		return nil, fmt.Errorf("look at the tables of %s: %w", s.path, err)
	}
	defer func() { _ = rows.Close() }()
	there := make(map[string][]string)
	for rows.Next() {
		var name, column string
		if err := rows.Scan(&name, &column); err != nil {
			return nil, err
		}
		there[name] = append(there[name], column)
	}
	return there, rows.Err()
}

func (s *lite) step(ctx context.Context) (step int, err error) {
	err = s.one(ctx, &step, "select coalesce(max(version), 0) from sluice_migration where version <> ?", migration.Moving)
	return step, err
}

// one runs a query for one value.
func (s *lite) one(ctx context.Context, into any, text string, args ...any) error {
	ctx, cancel := briefly(ctx)
	defer cancel()
	if err := s.db.QueryRowContext(ctx, text, args...).Scan(into); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return nil
}

func (s *lite) count(ctx context.Context, t *table) (n int64, err error) {
	err = s.one(ctx, &n, counting(s, t))
	return n, err
}

func (s *lite) any(ctx context.Context, t *table) (found bool, err error) {
	err = s.one(ctx, &found, "select exists (select 1 from "+t.lite.name+")")
	return found, err
}

func (s *lite) last(ctx context.Context) (place int64, err error) {
	err = s.one(ctx, &place, "select coalesce(max(seq), 0) from sluice_job where order_key is not null")
	return place, err
}

// liteExpression reads a column, with jobs named by their ids.
func liteExpression(c column) string {
	if c.liteReads != "" {
		return c.liteReads
	}
	name := "t." + quote(c.lite)
	if c.kind != kindJob {
		return name
	}
	return "case when " + name + " is not null then coalesce((select j.id from sluice_job j where j.seq = " + name + "), x'00') end"
}

func (s *lite) read(ctx context.Context, t *table, after []any) ([]row, error) {
	ctx, cancel := briefly(ctx)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, selecting(s, t, liteExpression, len(after) > 0, func(int) string { return "?" }), after...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []row
	keys := len(t.lite.key)
	for bytes := 0; bytes < batchBytes && rows.Next(); {
		cells := make([]any, keys+len(t.columns))
		into := make([]any, len(cells))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		r := row{key: cells[:keys], values: cells[keys:]}
		for i, c := range t.columns {
			if r.values[i], err = fromLite(c, r.values[i]); err != nil {
				return nil, fmt.Errorf("row %v: %w", r.key, err)
			}
		}
		out = append(out, r)
		bytes += size(r.values)
	}
	return out, rows.Err()
}

// in runs a transaction.
func (s *lite) in(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	ctx, cancel := briefly(ctx)
	defer cancel()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if err := do(ctx, tx); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", s.path, err), tx.Rollback())
	}
	return tx.Commit()
}

func execAll(ctx context.Context, tx *sql.Tx, texts ...string) error {
	for _, text := range texts {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (s *lite) begin(ctx context.Context, st state) error {
	return s.in(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := execAll(ctx, tx, "create table if not exists sluice_move (one integer primary key check (one = 1), state text not null)")
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `insert into sluice_migration (version, name, checksum, works_from, applied_at)
			values (?1, 'a move is under way', '', ?1, ?2) on conflict do nothing`, migration.Moving, time.Now().UnixMicro())
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "insert into sluice_move values (1, ?) on conflict do nothing", st.text()); err != nil {
			return err
		}
		kept, err := liteStateIn(ctx, tx)
		return cmp.Or(err, kept.of(st.ID))
	})
}

// liteState stores how far a move has come. If another move has the target by now, liteState fails.
func liteState(ctx context.Context, tx *sql.Tx, st state) error {
	done, err := tx.ExecContext(ctx, "update sluice_move set state = ? where json_extract(state, '$.ID') = ?", st.text(), st.ID)
	if err != nil {
		return err
	}
	if changed, err := done.RowsAffected(); err != nil || changed == 0 {
		return cmp.Or(err, (*state)(nil).of(st.ID))
	}
	return nil
}

const liteHasState, liteReadState = "select exists (select 1 from sqlite_master where name = 'sluice_move')", "select state from sluice_move"

func (s *lite) state(ctx context.Context) (*state, error) {
	return kept[state](ctx, s, liteHasState, liteReadState)
}

// liteStateIn is state in a transaction.
func liteStateIn(ctx context.Context, tx *sql.Tx) (*state, error) {
	return kept[state](ctx, liteTx{tx}, liteHasState, liteReadState)
}

// settle lets upkeep look at batches. SQLite itself continues from the highest row.
func (s *lite) settle(ctx context.Context) error {
	return s.in(ctx, func(ctx context.Context, tx *sql.Tx) error { return execAll(ctx, tx, liteWakeBatches) })
}

func (s *lite) seal(ctx context.Context) (*sealed, error) {
	return kept[sealed](ctx, s, "select exists (select 1 from sluice_audit_seal)",
		`select json_object('No', no, 'Upto', upto, 'Hash', lower(hex(hash)), 'Notable', notable_keep_ms, 'Full', full_keep_ms)
		from sluice_audit_seal order by no desc limit 1`)
}

func (s *lite) end(ctx context.Context, id string, chain *audit.Addition) error {
	return s.in(ctx, func(ctx context.Context, tx *sql.Tx) error {
		kept, err := liteStateIn(ctx, tx)
		if err != nil || kept == nil {
			return err
		}
		if err := kept.of(id); err != nil {
			return err
		}
		var at any
		if chain != nil {
			at = chain.Seal.At.UnixMicro()
		}
		err = addChain(ctx, chain, at,
			"insert into sluice_audit_seal ("+sealColumns+") values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
			"insert into sluice_audit (at, actor, object, name, event, reason, after) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
			func(ctx context.Context, text string, args ...any) error {
				_, err := tx.ExecContext(ctx, text, args...)
				return err
			})
		if err != nil {
			return err
		}
		return execAll(ctx, tx, fmt.Sprintf("delete from sluice_migration where version = %d", migration.Moving), "drop table if exists sluice_move")
	})
}

func (s *lite) write(ctx context.Context, t *table, rows []row, st state) error {
	return s.in(ctx, func(ctx context.Context, tx *sql.Tx) error {
		places, names, made := writes(s, t)
		insert, err := tx.PrepareContext(ctx, fmt.Sprintf("insert into %s (%s) values (?%s)", t.lite.name, quoteAll(names, ""), strings.Repeat(", ?", len(names)-1)))
		if err != nil {
			return err
		}
		defer func() { _ = insert.Close() }()
		seqOf, err := tx.PrepareContext(ctx, "select seq from sluice_job where id = ?")
		if err != nil {
			return err
		}
		defer func() { _ = seqOf.Close() }()
		next, err := nextSeq(ctx, tx, t, st)
		if err != nil {
			return err
		}
		args := make([]any, 0, len(names))
		for _, r := range rows {
			args = args[:0]
			for _, i := range places {
				arg, err := liteArgument(ctx, seqOf, t.columns[i], r.values[i], &next)
				if err != nil {
					return err
				}
				args = append(args, arg)
			}
			if _, err := insert.ExecContext(ctx, append(args, made...)...); err != nil {
				return err
			}
		}
		return liteState(ctx, tx, st)
	})
}

// nextSeq returns the seq of the next job without a place in an order: above all jobs with a place, and all
// jobs before.
func nextSeq(ctx context.Context, tx *sql.Tx, t *table, st state) (next int64, err error) {
	if t.lite.name != "sluice_job" {
		return 0, nil
	}
	err = tx.QueryRowContext(ctx, "select coalesce(max(seq), 0) from sluice_job").Scan(&next)
	return max(next, st.Base) + 1, err
}

func liteArgument(ctx context.Context, seqOf *sql.Stmt, c column, value any, next *int64) (any, error) {
	switch {
	case value == nil && c.place:
		*next++
		return *next - 1, nil
	case value == nil || c.kind != kindJob:
		return toLite(value), nil
	}
	var seq int64
	err := seqOf.QueryRowContext(ctx, value).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("column %s names job %s, which is not stored; run `sluice upkeep --once` on the source and begin again", c.name, sluice.ID(value.([]byte)))
	}
	return seq, err
}
