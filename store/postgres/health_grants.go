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

// onlyRead are what programs only read, onlyAdded what they only read and add to, and onlyFunctions what only the functions
// for other languages look at, with the rights of the schema's owner.
var (
	onlyAdded     = []string{"audit", "audit_batch", "audit_seal"}
	onlyRead      = []string{"migration", "jobs"}
	onlyFunctions = []string{"queue_grant", "pace", "look_again", "function_set"}
)

// grantRow is a privilege on a table, or on a function, that this role lacks; or has and must not have.
type grantRow struct {
	Name      string
	Privilege string
	Excess    bool
}

// grants finds what this role may not do, though programs do it, and where it may change what is only added to.
func (c *examination) grants(ctx context.Context) error {
	made, err := readSchema()
	if err != nil {
		return err
	}
	var written []string
	for _, table := range made.tables {
		if !slices.Contains(slices.Concat(onlyRead, onlyAdded, onlyFunctions), table) {
			written = append(written, table)
		}
	}
	rows, err := rowsOf[grantRow](ctx, c.store.pool, healthGrantsSQL, written, onlyRead, onlyAdded)
	if err != nil {
		return err
	}
	isExcess := func(r grantRow) bool { return r.Excess }
	missing := slices.DeleteFunc(slices.Clone(rows), isExcess)
	excess := slices.DeleteFunc(slices.Clone(rows), func(r grantRow) bool { return !isExcess(r) })
	if len(missing) > 0 {
		c.Find(sluice.SeverityError, "grant", fmt.Sprintf("the role %s may not %s", c.on.Role, firstGrants(missing)),
			"calls that need it fail with «permission denied»", grantStatements(missing, "grant", "to "+name(c.on.Role)))
	}
	if len(excess) > 0 {
		c.Find(sluice.SeverityWarning, "grant", fmt.Sprintf("the role %s may %s", c.on.Role, firstGrants(excess)),
			"the audit is only added to: with this right its entries can be changed, which only «sluice audit verify» notices",
			grantStatements(excess, "revoke", "from "+name(c.on.Role)))
	}
	if len(rows) == 0 {
		c.Well("grant", "the role %s may do all that programs do", c.on.Role)
	}
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

// grantStatements grants exactly what is missing, or revokes what is too much, in one statement for each set of privileges.
func grantStatements(rows []grantRow, verb, role string) string {
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
		byPrivileges[set] = append(byPrivileges[set], qualified(table))
	}
	var statements []string
	for _, set := range order {
		statements = append(statements, verb+" "+set+" on "+strings.Join(byPrivileges[set], ", ")+" "+role)
	}
	return strings.Join(statements, "; ")
}

// qualified names a table or, with its arguments, a function.
func qualified(object string) string {
	if strings.HasSuffix(object, ")") {
		return "function sluice." + object
	}
	return "sluice." + name(object)
}
