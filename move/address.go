package move

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// liteScheme begins the address of a SQLite file.
const liteScheme = "sqlite:"

// litePath returns the path in the address of a SQLite file.
func litePath(address string) (path string, isLite bool) {
	path, isLite = strings.CutPrefix(address, liteScheme)
	return strings.TrimPrefix(path, "//"), isLite
}

// openStore opens one end of a move, even without tables.
func openStore(ctx context.Context, address string) (store, error) {
	if path, isLite := litePath(address); isLite {
		s, err := openLite(ctx, path)
		return opened(s, err)
	}
	if scheme, _, found := strings.Cut(address, "://"); found && strings.HasPrefix(scheme, "http") {
		return nil, refused("%s is a server, and a move reads and writes the databases themselves: give their addresses", address)
	}
	s, err := openPostgres(ctx, address)
	return opened(s, err)
}

// openTarget opens the target. A file that is not there, or is empty, is made by the store itself: the store refuses a log
// that lies beside it, which SQLite would delete with all jobs that only the log holds.
func openTarget(ctx context.Context, address string) (store, error) {
	if path, isLite := litePath(address); isLite {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
			if _, err := sqlite.Migrate(ctx, path); err != nil {
				return nil, err
			}
		}
	}
	return openStore(ctx, address)
}

// opened returns no store with an error.
func opened(s store, err error) (store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openSource opens the source, which must exist already.
func openSource(ctx context.Context, address string) (store, error) {
	if path, isLite := litePath(address); isLite {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
		}
		if info.Size() == 0 { // opened, SQLite would delete a log beside it
			return nil, refused("%s has no tables of Sluice's: %w", path, sluice.ErrNotMigrated)
		}
	}
	s, err := openStore(ctx, address)
	if err != nil {
		return nil, err
	}
	there, err := s.columns(ctx)
	if err == nil && len(there) == 0 {
		err = refused("%s has no tables of Sluice's: %w", s.name(), sluice.ErrNotMigrated)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// prepareTarget gives a target its tables, if it has none.
func prepareTarget(ctx context.Context, address string, target store) error {
	there, err := target.columns(ctx)
	if err != nil || len(there) > 0 {
		return err
	}
	if path, isLite := litePath(address); isLite {
		_, err = sqlite.Migrate(ctx, path)
	} else {
		_, err = postgres.Migrate(ctx, address)
	}
	return err
}

// storedColumns lists the moved columns that a store has for a table.
func storedColumns(s store, t *table) []string {
	var names []string
	for _, c := range t.columns {
		if name := storedName(s, c); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func storedName(s store, c column) string {
	if _, isLite := s.(*lite); isLite {
		return c.lite
	}
	if c.reads != "" {
		return ""
	}
	return c.name
}

func tableName(s store, l layout) string {
	if _, isLite := s.(*lite); isLite {
		return l.name
	}
	return "sluice." + l.name
}

// quote quotes the name of a column, because some are words of SQL.
func quote(name string) string { return `"` + name + `"` }

func quoteAll(names []string, before string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = before + quote(name)
	}
	return strings.Join(quoted, ", ")
}

// selecting returns the statement that reads a batch of a table: the key columns, and the moved columns.
func selecting(s store, t *table, expression func(c column) string, after bool, parameter func(i int) string) string {
	l := s.layout(t)
	columns := make([]string, 0, len(t.columns))
	for _, c := range t.columns {
		columns = append(columns, expression(c))
	}
	var where []string
	if l.only != "" {
		where = append(where, l.only)
	}
	if after {
		parameters := make([]string, len(l.key))
		for i := range l.key {
			parameters[i] = parameter(i)
		}
		where = append(where, fmt.Sprintf("(%s) > (%s)", quoteAll(l.key, "t."), strings.Join(parameters, ", ")))
	}
	text := "select " + quoteAll(l.key, "t.") + ", " + strings.Join(columns, ", ") + " from " + tableName(s, l) + " t"
	if len(where) > 0 {
		text += " where " + strings.Join(where, " and ")
	}
	return fmt.Sprintf("%s order by %s limit %d", text, quoteAll(l.key, "t."), batchRows)
}

// counting returns the statement that counts the moved rows of a table.
func counting(s store, t *table) string {
	l := s.layout(t)
	text := "select count(*) from " + tableName(s, l) + " t"
	if l.only != "" {
		text += " where " + l.only
	}
	return text
}

// writes lists the columns written to a store, by their places in a row, followed by further required columns
// and their values.
func writes(s store, t *table) (places []int, names []string, made []any) {
	for i, c := range t.columns {
		if name := storedName(s, c); name != "" {
			places, names = append(places, i), append(names, name)
		}
	}
	for name, value := range s.layout(t).made {
		names, made = append(names, name), append(made, value)
	}
	return places, names, made
}
