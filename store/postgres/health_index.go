package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

//go:embed sql/health_indexes.sql
var healthIndexesSQL string

//go:embed sql/health_amcheck.sql
var healthAmcheckSQL string

// bigIndex is the size in bytes from which the empty share of an index is estimated.
const bigIndex = 8 << 20

type indexRow struct {
	Name     string
	Table    string
	Valid    bool
	Bytes    int64
	Estimate int64
}

// isCode reports whether the server refused with this code.
func isCode(err error, code string) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == code
}

// indexes compares the database's indexes with the schema's.
func (c *examination) indexes(ctx context.Context) error {
	made, err := readSchema()
	if err != nil {
		return err
	}
	rows, err := rowsOf[indexRow](ctx, c.store.pool, healthIndexesSQL, c.store.bigIndex)
	if err != nil {
		return err
	}
	before := len(c.Health.Findings)
	there := make(map[string]bool)
	for _, row := range rows {
		there[row.Name] = true
	}
	ours := make(map[string]bool)
	for _, index := range made.indexes {
		ours[index.name] = true
		if !there[index.name] {
			c.Find(health.SeverityError, "index", "the index "+index.name+" of the table "+index.table+" is missing",
				"what goes by it reads the whole table, or is not kept unique", index.repair())
		}
	}
	for _, row := range rows {
		c.index(row, ours[row.Name])
	}
	if len(c.Health.Findings) == before {
		c.Well("index", "all %d are there, valid, and not mostly empty", len(made.indexes))
	}
	return nil
}

func (c *examination) index(row indexRow, ours bool) {
	index := "sluice." + name(row.Name)
	empty := float64(row.Bytes - row.Estimate)
	c.MetricOf("index_bytes", "index", row.Name, float64(row.Bytes), "bytes")
	c.MetricOf("index_bloat_bytes", "index", row.Name, empty, "bytes")
	severity := c.judge("bloat", empty)
	switch {
	case !row.Valid && ours:
		c.Find(health.SeverityError, "index", "the index "+row.Name+" of the table "+row.Table+" is invalid",
			"what goes by it reads the whole table, or is not kept unique", "reindex index concurrently "+index)
	case !row.Valid:
		c.Find(health.SeverityNote, "index", "the index "+row.Name+" of the table "+row.Table+" is left over from a statement that failed",
			"each change of the table keeps it up to date, and nothing reads it", "drop index concurrently "+index)
	case severity != "" && empty > 0.75*float64(row.Bytes):
		c.Find(severity, "bloat", fmt.Sprintf("of %s of the index %s, about %s are empty", checkup.Bytes(float64(row.Bytes)), row.Name, checkup.Bytes(empty)),
			"claims and look-ups read pages with nothing in them", "reindex index concurrently "+index)
	}
}

//go:embed sql/health_orphans.sql
var healthOrphansSQL string

// orphans finds lives without a job.
func (c *examination) orphans(ctx context.Context) error {
	rows, err := rowsOf[checkup.Orphans](ctx, c.store.pool, healthOrphansSQL)
	if err != nil {
		return err
	}
	c.Add(rows[0], "sluice.", func(statement string) string { return statement })
	return nil
}

// integrity has the server check each index, which needs the extension amcheck.
func (c *examination) integrity(ctx context.Context) error {
	extension, err := c.extension(ctx, "amcheck")
	if err != nil {
		return err
	}
	const check = "integrity"
	if extension.Schema == nil {
		c.Find(health.SeverityNote, check, "the extension amcheck is not there", "without it the server cannot compare indexes with their tables", extension.repair("amcheck"))
		return nil
	}
	rows, err := rowsOf[indexRow](ctx, c.store.pool, healthIndexesSQL, c.store.bigIndex)
	if err != nil {
		return err
	}
	before := len(c.Health.Findings)
	for _, row := range rows {
		if !row.Valid {
			continue
		}
		err := exec(ctx, c.store.pool, strings.ReplaceAll(healthAmcheckSQL, "{schema}", name(*extension.Schema)), row.Name)
		switch {
		case err == nil:
		case isCode(err, "42501"):
			c.Find(health.SeverityNote, check, "the role "+c.on.Role+" may not compare indexes with their tables", "only superusers may, and who is granted it",
				"grant execute on function "+name(*extension.Schema)+".bt_index_check(regclass, boolean) to "+name(c.on.Role))
			return nil
		case isCode(err, "XX001"), isCode(err, "XX002"):
			c.Find(health.SeverityError, check, "the index "+row.Name+" of the table "+row.Table+": "+err.Error(), "what goes by it finds the wrong rows, or none",
				"reindex index concurrently sluice."+name(row.Name)+"; if that fails, the table is damaged: restore a backup; and look for what damaged it (disk, memory, fsync)")
		default:
			return err
		}
	}
	if len(c.Health.Findings) == before {
		c.Well(check, "each of %d indexes agrees with its table", len(rows))
	}
	return nil
}
