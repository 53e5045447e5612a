package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

//go:embed sql/health_extension.sql
var healthExtensionSQL string

//go:embed sql/health_statements.sql
var healthStatementsSQL string

type extensionRow struct {
	Schema    *string
	Available bool
	Libraries *string
}

// loaded reports whether the server has loaded a library. If this role must not know, loaded assumes it.
func (e extensionRow) loaded(library string) bool {
	return e.Libraries == nil || slices.Contains(e.libraries(), library)
}

func (e extensionRow) libraries() []string {
	if e.Libraries == nil {
		return nil
	}
	return strings.FieldsFunc(*e.Libraries, func(r rune) bool { return r == ',' || r == ' ' })
}

// load returns the statements that load one more library at the server's next start.
func (e extensionRow) load(library string) []string {
	if e.Libraries == nil { // a statement would remove the libraries that are loaded now
		return []string{"add " + library + " to shared_preload_libraries in the server's configuration", "restart the server"}
	}
	var names []string
	for _, one := range append(e.libraries(), library) {
		names = append(names, literal(one))
	}
	return []string{"alter system set shared_preload_libraries = " + strings.Join(names, ", "), "restart the server"}
}

func (c *examination) extension(ctx context.Context, extension string) (extensionRow, error) {
	rows, err := rowsOf[extensionRow](ctx, c.store.pool, healthExtensionSQL, extension)
	if err != nil {
		return extensionRow{}, err
	}
	return rows[0], nil
}

// repair returns the way to get an extension.
func (e extensionRow) repair(extension string) string {
	if !e.Available {
		return "install PostgreSQL's contrib package on the server; create extension " + extension
	}
	return "create extension " + extension
}

// slowest is how many statements are named.
const slowest = 10

type statementRow struct {
	Calls int64
	Total float64
	Mean  float64
	Query string
}

// statements names the slowest statements, or the way to find them. The result is never a fault.
func (c *examination) statements(ctx context.Context) error {
	const check, extension = "statements", "pg_stat_statements"
	found, err := c.extension(ctx, extension)
	if err != nil {
		return err
	}
	var mend []string
	if !found.loaded(extension) {
		mend = found.load(extension)
	}
	if found.Schema == nil {
		mend = append(mend, found.repair(extension))
	}
	if len(mend) > 0 {
		c.Find(health.SeverityNote, check, "the extension "+extension+" is not there", "it counts which statements are slow", strings.Join(mend, "; "))
		return nil
	}
	rows, err := rowsOf[statementRow](ctx, c.store.pool, strings.ReplaceAll(healthStatementsSQL, "{schema}", name(*found.Schema)), slowest)
	if isCode(err, "55000") { // the library must be loaded when the server starts
		c.Find(health.SeverityNote, check, "the extension "+extension+" is not loaded", "it counts which statements are slow", strings.Join(found.load(extension), "; "))
		return nil
	}
	if err != nil {
		return err
	}
	for _, row := range rows {
		c.Find(health.SeverityNote, check, fmt.Sprintf("%s in all, %d calls of %s: %s", checkup.Span(row.Total/1000), row.Calls, milliseconds(row.Mean), statement(row.Query)),
			"it took the server the most time", "")
	}
	if len(rows) == 0 {
		c.Well(check, "none was counted yet")
	}
	return nil
}

func milliseconds(value float64) string { return fmt.Sprintf("%.3g ms", value) }
