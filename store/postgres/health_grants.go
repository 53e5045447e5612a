package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/health_grants.sql
var healthGrantsSQL string

// onlyRead are what programs only read, and onlyFunctions what only the functions for other languages look at, with the
// rights of the schema's owner.
var (
	onlyRead      = []string{"migration", "jobs"}
	onlyFunctions = []string{"queue_grant", "pace", "look_again", "function_set"}
)

type grantRow struct {
	Name      string
	Privilege string
}

// grants finds what this role may not do, though programs do it.
func (c *examination) grants(ctx context.Context) error {
	made, err := readSchema()
	if err != nil {
		return err
	}
	var written []string
	for _, table := range made.tables {
		if !slices.Contains(onlyRead, table) && !slices.Contains(onlyFunctions, table) {
			written = append(written, table)
		}
	}
	rows, err := rowsOf[grantRow](ctx, c.store.pool, healthGrantsSQL, written, onlyRead)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		c.Well("grant", "the role %s may do all that programs do", c.on.Role)
		return nil
	}
	c.Find(sluice.SeverityError, "grant", fmt.Sprintf("the role %s may not %s", c.on.Role, firstGrants(rows)),
		"calls that need it fail with «permission denied»", grantStatements(rows, c.on.Role))
	return nil
}

// firstGrants names some of what is missing.
func firstGrants(rows []grantRow) string {
	var text []string
	for _, r := range rows[:min(len(rows), maxTold)] {
		text = append(text, r.Privilege+" on "+r.Name)
	}
	out := strings.Join(text, ", ")
	if more := len(rows) - maxTold; more > 0 {
		out += fmt.Sprintf(", and %d more", more)
	}
	return out
}

// grantStatements grants exactly what is missing, in one statement for each set of privileges.
func grantStatements(rows []grantRow, role string) string {
	privileges := make(map[string][]string) // by table
	var tables []string
	for _, r := range rows {
		if privileges[r.Name] == nil {
			tables = append(tables, r.Name)
		}
		privileges[r.Name] = append(privileges[r.Name], r.Privilege)
	}
	byPrivileges := make(map[string][]string)
	var order []string
	for _, table := range tables {
		set := strings.Join(privileges[table], ", ")
		if byPrivileges[set] == nil {
			order = append(order, set)
		}
		byPrivileges[set] = append(byPrivileges[set], "sluice."+name(table))
	}
	var statements []string
	for _, set := range order {
		statements = append(statements, "grant "+set+" on "+strings.Join(byPrivileges[set], ", ")+" to "+name(role))
	}
	return strings.Join(statements, "; ")
}
