package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/health"
)

//go:embed sql/health_grants.sql
var healthGrantsSQL string

//go:embed sql/health_exposed.sql
var healthExposedSQL string

//go:embed sql/health_gone.sql
var healthGoneSQL string

//go:embed sql/health_unread.sql
var healthUnreadSQL string

// onlyAdded are tables that programs read and add to, and onlyRead are tables that they only read. onlyFunctions
// are tables that only the functions for other languages use, with the rights of the schema's owner.
var (
	onlyAdded     = []string{"audit", "audit_batch", "audit_seal"}
	onlyRead      = []string{"migration", "jobs", "follower"}
	onlyFunctions = []string{"queue_grant", "pace", "recheck", "function_set", "stat_call"}
)

// grantRow is a privilege on a table or function that this role lacks or, if Excess is set, must not have.
type grantRow struct {
	Name      string
	Privilege string
	Excess    bool
}

// grants checks the rights of this role, and which roles can see secrets that only programs need.
func (c *examination) grants(ctx context.Context) error {
	reader, err := list(ctx, c.store.pool, pgx.RowTo[string], readerSQL)
	if err != nil {
		return err
	}
	if len(reader) > 0 {
		err = c.reads(ctx)
	} else {
		err = c.writes(ctx)
	}
	if err != nil {
		return err
	}
	if err := c.exposed(ctx); err != nil {
		return err
	}
	return c.gone(ctx)
}

// gone finds grants of roles that are gone. Most roles may not read grants.
func (c *examination) gone(ctx context.Context) error {
	may, err := list(ctx, c.store.pool, pgx.RowTo[bool], "select has_table_privilege('sluice.queue_grant', 'select')")
	if err != nil || !slices.Contains(may, true) {
		return err
	}
	roles, err := list(ctx, c.store.pool, pgx.RowTo[string], healthGoneSQL)
	if err != nil {
		return err
	}
	if len(roles) > 0 {
		c.Find(health.SeverityWarning, "grant", "roles that are gone still have grants: numbers "+strings.Join(roles, ", "),
			"a dump keeps the number, and where it is restored another role may have that number, and with it the grant",
			"delete from sluice.queue_grant g where not exists (select from pg_roles r where r.oid = g.role)")
	}
	return nil
}

// reads reports a role that only reads, and finds columns that the role cannot read although readers may.
func (c *examination) reads(ctx context.Context) error {
	columns, err := readerColumns()
	if err != nil {
		return err
	}
	unread, err := list(ctx, c.store.pool, pgx.RowTo[string], strings.ReplaceAll(healthUnreadSQL, "{reader columns}", columns))
	if err != nil {
		return err
	}
	c.Find(health.SeverityNote, "grant", "the role "+c.on.Role+" only reads", "commands that change something are refused", "")
	if len(unread) > 0 {
		c.Find(health.SeverityError, "grant", fmt.Sprintf("the role %s may not read all of %s", c.on.Role, strings.Join(unread, ", ")),
			"commands that need it fail with `permission denied`", "as the owner of the schema: "+grantReader(c.on.Role))
	}
	return nil
}

func grantReader(role string) string { return "select sluice.grant_reader(" + literal(role) + ")" }

// exposedRow is a role that can see secrets and writes nothing. Everybody: the role is PUBLIC.
type exposedRow struct {
	Role, Sees string
	Everybody  bool
}

// exposed finds roles that may select payloads or tokens without need.
func (c *examination) exposed(ctx context.Context) error {
	made, err := readSchema()
	if err != nil {
		return err
	}
	columns, err := readerColumns()
	if err != nil {
		return err
	}
	rows, err := rowsOf[exposedRow](ctx, c.store.pool, strings.ReplaceAll(healthExposedSQL, "{reader columns}", columns), slices.Concat(made.tables, made.views))
	if err != nil {
		return err
	}
	for _, row := range rows {
		who, mend := name(row.Role), "; "+grantReader(row.Role)
		if row.Everybody {
			who, mend = "public", ""
		}
		c.Find(health.SeverityWarning, "grant", fmt.Sprintf("the role %s may select %s, and only reads", row.Role, row.Sees),
			"payloads, results and the tokens of claims are for programs; with a token anybody who may write can finish a job that another holds",
			"revoke select on all tables in schema sluice from "+who+mend)
	}
	return nil
}

// writes finds rights that programs need and this role lacks, and rights to change tables that are only added to.
func (c *examination) writes(ctx context.Context) error {
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
		c.Find(health.SeverityError, "grant", fmt.Sprintf("the role %s may not %s", c.on.Role, firstGrants(missing)),
			"calls that need it fail with `permission denied`", grantStatements(missing, "grant", "to "+name(c.on.Role)))
	}
	if len(excess) > 0 {
		c.Find(health.SeverityWarning, "grant", fmt.Sprintf("the role %s may %s", c.on.Role, firstGrants(excess)),
			"the audit is only added to: with this right its entries can be changed, which only `sluice audit verify` notices",
			grantStatements(excess, "revoke", "from "+name(c.on.Role)))
	}
	if len(rows) == 0 {
		c.Well("grant", "the role %s may do all that programs do", c.on.Role)
	}
	return nil
}

// firstGrants names some of the missing rights.
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

// grantStatements grants exactly the missing rights, or revokes the excess ones. Each set of privileges makes one
// statement.
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
