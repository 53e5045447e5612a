package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/explain"
	graph "github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/jsonscan"
	"github.com/sluice-queue/sluice/internal/room"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/schedule"
)

// FunctionsVersion is the version of the SQL functions. Each release that changes their text raises it, so that an
// older program does not replace newer functions.
const FunctionsVersion = 1

// maxHolders is how many workers per queue the function heartbeat records. Any role that may work in a queue can invent
// workers.
const maxHolders = 1000

//go:embed functions/*.sql functions/inner/*.sql
var functionFiles embed.FS

// functionsSum is the version and the checksum of the functions. Opening a store compares it, without writing the
// functions.
//
//go:embed functions.sum
var functionsSum string

func functionsChecksum() string {
	_, checksum, _ := strings.Cut(strings.TrimSpace(functionsSum), " ")
	return checksum
}

//go:embed sql/*.sql
var statementFiles embed.FS

//go:embed sql/reader_columns.sql
var readerColumnsSQL string

// Function is one of the functions that `sluice migrate` creates for programs in other languages.
type Function struct {
	// Name is the function's name in the schema sluice.
	Name string
	// Group is the kind of caller: worker, producer, operator or owner.
	Group string
	// Summary describes the function in a few sentences.
	Summary string
	// Signature is the text from the name to the return type, with a comment on each argument.
	Signature string
}

// functionGroups are the groups, each with the name of its right in the table queue_grant.
var functionGroups = []struct{ name, may string }{{"worker", "work"}, {"producer", "produce"}, {"operator", "operate"}, {"owner", ""}}

var functionHeader = regexp.MustCompile(`(?s)^-- (\w+): (.*?)\ncreate or replace function sluice\.((\w+)\(.*?)\nlanguage `)

// Functions lists the functions for programs in other languages, by group and then by name.
func Functions() ([]Function, error) {
	names, err := fs.Glob(functionFiles, "functions/*.sql")
	if err != nil {
		return nil, err
	}
	var out []Function
	for _, name := range names {
		text, err := fs.ReadFile(functionFiles, name)
		if err != nil {
			return nil, err
		}
		parts := functionHeader.FindStringSubmatch(string(text))
		if parts == nil || parts[4] != strings.TrimSuffix(path.Base(name), ".sql") || rankOf(parts[1]) < 0 {
			return nil, fmt.Errorf("%s does not begin with its group, what it does, and the function of its name", name)
		}
		out = append(out, Function{
			Name: parts[4], Group: parts[1], Summary: strings.ReplaceAll(parts[2], "\n-- ", " "), Signature: parts[3],
		})
	}
	slices.SortFunc(out, func(a, b Function) int {
		return cmp.Or(rankOf(a.Group)-rankOf(b.Group), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

func rankOf(group string) int {
	return slices.IndexFunc(functionGroups, func(g struct{ name, may string }) bool { return g.name == group })
}

// madeSet is the text that creates all functions, and its checksum.
type madeSet struct{ text, checksum string }

// functionSet builds the text that creates all functions, once.
var functionSet = sync.OnceValues(func() (madeSet, error) {
	functions, err := Functions()
	if err != nil {
		return madeSet{}, err
	}
	given := placeholders(functions)
	columns, err := readerColumns()
	if err != nil {
		return madeSet{}, err
	}
	given["reader columns"] = "$sql$select name, string_agg(format('%I', column_name), ', ' order by column_name) as columns\nfrom (" + columns +
		") c\ngroup by name\norder by name$sql$"
	var out strings.Builder
	out.WriteString("-- Makes the functions for programs in other languages.\n")
	for _, folder := range []string{"functions/inner", "functions"} {
		files, err := fs.Glob(functionFiles, folder+"/*.sql")
		if err != nil {
			return madeSet{}, err
		}
		for _, file := range files {
			template, err := fs.ReadFile(functionFiles, file)
			if err != nil {
				return madeSet{}, err
			}
			whole, err := keepPlans(string(template), folder == "functions")
			if err != nil {
				return madeSet{}, fmt.Errorf("%s: %w", file, err)
			}
			filled, err := fill(jobColumns.In(whole), given)
			if err != nil {
				return madeSet{}, fmt.Errorf("%s: %w", file, err)
			}
			out.WriteString(filled)
		}
	}
	var rows []string
	signatures := make(map[string]signature)
	for _, made := range madeFunctions(out.String()) {
		signatures[made.name] = made
		rows = append(rows, "                ('"+made.name+"', '"+made.arguments+"')")
	}
	fmt.Fprintf(&out, dropReplaced, strings.Join(rows, ",\n"))
	for _, f := range functions {
		fmt.Fprintf(&out, "comment on function %s is %s;\n", signatures[f.Name], literal(f.Summary))
	}
	out.WriteString(finishFunctions)
	sum := sha256.Sum256([]byte(out.String()))
	return madeSet{out.String(), hex.EncodeToString(sum[:8])}, nil
})

// madeFunction matches the name and the arguments of a function that the set creates.
var madeFunction = regexp.MustCompile(`(?m)^\s*(?:execute ')?create or replace function sluice\.(\w+)\(([^()]*)\)`)

// signature identifies a function.
type signature struct{ name, arguments string }

func (s signature) String() string { return "sluice." + s.name + "(" + s.arguments + ")" }

// madeFunctions lists the functions that a text creates.
func madeFunctions(text string) []signature {
	var out []signature
	for _, made := range madeFunction.FindAllStringSubmatch(schemaComment.ReplaceAllString(text, ""), -1) {
		out = append(out, signature{made[1], strings.Join(argumentTypes(made[2]), ", ")})
	}
	return out
}

// argumentTypes returns the types of the input arguments, which distinguish functions of the same name.
func argumentTypes(arguments string) []string {
	var types []string
	for argument := range strings.SplitSeq(arguments, ",") {
		declared, _, _ := strings.Cut(argument, " default ")
		words := strings.Fields(declared)
		if len(words) < 2 || words[0] == "out" {
			continue
		}
		if words[0] == "inout" {
			words = words[1:]
		}
		types = append(types, strings.Join(words[1:], " "))
	}
	return types
}

// dropReplaced drops functions of the same names with other arguments, which an older program created: calls would
// still find them. A function stays if an object of the user depends on it. The placeholder takes the names and
// arguments of the present functions, as rows of values.
const dropReplaced = `do $drop$
declare
    f record;
begin
    for f in
        with made as (
            select m.name, to_regprocedure(format('sluice.%%I(%%s)', m.name, m.arguments)) as function
            from (values
%s
            ) as m(name, arguments)
        )
        select p.oid::regprocedure::text as signature
        from pg_proc p
        where p.pronamespace = 'sluice'::regnamespace and p.prokind = 'f' and p.proname in (select m.name from made m)
          and not exists (select from made m where m.name = p.proname and (m.function is null or m.function = p.oid))
    loop
        begin
            execute 'drop function ' || f.signature;
        exception when dependent_objects_still_exist then
            raise notice 'sluice: the old function %% stays: something depends on it', f.signature;
        end;
    end loop;
end
$drop$;
`

// finishFunctions revokes the rights that PostgreSQL grants to PUBLIC, and grants roles their rights again, which
// may be more by now. PUBLIC keeps _text_of: see the step that creates it. From PostgreSQL 13 on, functions that
// walk along indexes switch incremental sorts off.
const finishFunctions = `do $finish$
declare
    f record;
begin
    for f in
        select p.oid::regprocedure::text as signature from pg_proc p
        where p.pronamespace = 'sluice'::regnamespace and p.proname <> '_text_of'
    loop
        execute 'revoke all on function ' || f.signature || ' from public';
    end loop;
    delete from sluice.queue_grant g where not exists (select from pg_roles r where r.oid = g.role);
    perform sluice._apply_grants(r.rolname) from pg_roles r where r.oid in (select g.role from sluice.queue_grant g);
    if current_setting('server_version_num')::integer >= 130000 then
        for f in
            select p.oid::regprocedure::text as signature from pg_proc p
            where p.pronamespace = 'sluice'::regnamespace and 'enable_sort=off' = any (p.proconfig)
        loop
            execute 'alter function ' || f.signature || ' set enable_incremental_sort = off';
        end loop;
    end if;
end
$finish$;
`

var placeholder = regexp.MustCompile(`\{\{([^}]+)\}\}`)

// fill replaces placeholders by statements and values. A statement that keepPlans has left becomes a quoted text
// for execute. So the server plans it each time for its arguments, as the store has it planned.
func fill(template string, given map[string]string) (string, error) {
	var missing error
	filled := placeholder.ReplaceAllStringFunc(template, func(found string) string {
		name := placeholder.FindStringSubmatch(found)[1]
		if value, ok := given[name]; ok {
			return value
		}
		text, err := statementOf(name)
		if err != nil || strings.Contains(text, "$sql$") || strings.Contains(text, "$function$") {
			missing = fmt.Errorf("%q is neither a figure nor a statement that can be quoted", name)
		}
		return "$sql$" + text + "$sql$"
	})
	return filled, missing
}

func placeholders(functions []Function) map[string]string {
	defaults := sluice.DefaultSettings()
	out := map[string]string{
		"channel":             channel,
		"max error bytes":     strconv.Itoa(sluice.MaxErrorBytes),
		"max result bytes":    strconv.Itoa(sluice.MaxResultBytes),
		"max depth":           strconv.Itoa(jsonscan.MaxDepth),
		"max tenant bytes":    strconv.Itoa(sluice.MaxTenantBytes),
		"max key bytes":       strconv.Itoa(sluice.MaxKeyBytes),
		"max labels":          strconv.Itoa(sluice.MaxLabels),
		"max label bytes":     strconv.Itoa(sluice.MaxLabelBytes),
		"unseen characters":   unseenCharacters(),
		"max holders":         strconv.Itoa(maxHolders),
		"protocol":            strconv.Itoa(presence.Protocol),
		"max after":           strconv.Itoa(sluice.MaxAfter),
		"max after read":      strconv.Itoa(explain.MaxAfterRead),
		"max after failures":  strconv.Itoa(sluice.MaxAfterFailures),
		"max count":           "10000",
		"count limit":         strconv.Itoa(explain.CountLimit),
		"payload limit":       strconv.Itoa(defaults.PayloadLimit),
		"lease ms":            strconv.FormatInt(defaults.Lease.Milliseconds(), 10),
		"max attempts":        strconv.Itoa(defaults.MaxAttempts),
		"max recoveries":      strconv.Itoa(defaults.MaxRecoveries),
		"ageing":              strconv.FormatFloat(defaults.Ageing, 'f', -1, 64),
		"backoff base ms":     strconv.FormatInt(defaults.Backoff.Base.Milliseconds(), 10),
		"backoff factor":      strconv.FormatFloat(defaults.Backoff.Factor, 'f', -1, 64),
		"backoff max ms":      strconv.FormatInt(defaults.Backoff.Max.Milliseconds(), 10),
		"backoff jitter ms":   strconv.FormatInt(defaults.Backoff.Jitter.Milliseconds(), 10),
		"backoff full jitter": strconv.FormatBool(defaults.Backoff.FullJitter),
		"unblock rounds":      strconv.Itoa(unblockRounds),
		"unblock slice":       strconv.Itoa(unblockSlice),
		"edge slice":          strconv.Itoa(unblockSlice), // the next claim reads the rest
		"max moved":           strconv.Itoa(maxMoved),
		"lanes woken":         strconv.Itoa(lanesWoken),
		"picked again":        strconv.Itoa(pickedAgain),
		"max told":            strconv.Itoa(maxTenantChanges),
		"max tenant changes":  strconv.Itoa(maxTenantChanges),
		"max tenant queues":   strconv.Itoa(flow.MaxTenantQueues),
		"first tenant queues": strconv.Itoa(flow.FirstTenantQueues),
		"jobs a tenant queue": strconv.Itoa(flow.JobsPerTenantQueue),
		"max looks":           strconv.Itoa(flow.MaxReads),
		"plenty":              strconv.Itoa(flow.Plenty),
		"moves":               movesValues(),
		"granted functions":   grantedValues(functions),
		"recent fires":        strconv.Itoa(schedule.RecentFires),
		"count again":         strconv.FormatInt(room.Every.Milliseconds()/10, 10),
		"shed reason":         room.Reason,
		"fire":                "{{fire}}",
		"date":                "{{date}}",
		"item":                "{{item}}",
		"max nodes":           strconv.Itoa(graph.MaxNodes),
	}
	maps.Copy(out, enqueuePlaceholders(functions))
	maps.Copy(out, claimPlaceholders(out["max attempts"]))
	return out
}

// unseenCharacters writes the format characters of Unicode as the inside of a bracket expression.
func unseenCharacters() string {
	var out strings.Builder
	for _, r := range unicode.Cf.R16 {
		for c := uint32(r.Lo); c <= uint32(r.Hi); c += uint32(r.Stride) {
			fmt.Fprintf(&out, `\u%04x`, c)
		}
	}
	for _, r := range unicode.Cf.R32 {
		for c := r.Lo; c <= r.Hi; c += r.Stride {
			fmt.Fprintf(&out, `\U%08x`, c)
		}
	}
	return out.String()
}

// movesValues writes the state machine as rows of values.
func movesValues() string {
	var rows []string
	for _, m := range sluice.Moves() {
		rows = append(rows, fmt.Sprintf("        ('%s', '{%s}'::text[], '%s', %t)", m.Event, strings.Join(states(m.From), ","), m.To, m.Event.Notable()))
	}
	return strings.Join(rows, ",\n")
}

// grantedValues writes the functions of each right as rows of values.
func grantedValues(functions []Function) string {
	var rows []string
	for _, f := range functions {
		if may := functionGroups[rankOf(f.Group)].may; may != "" {
			rows = append(rows, fmt.Sprintf("            ('%s', '%s')", may, f.Name))
		}
	}
	return strings.Join(rows, ",\n")
}

// missingFunctions returns the step that creates the functions. Nil: the database has these or newer ones.
func missingFunctions(ctx context.Context, db rowsQuerier) (*sluice.Migration, error) {
	rows, err := query(ctx, db, hasTable, "function_set")
	if err != nil {
		return nil, err
	}
	exists, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	if err != nil {
		return nil, err
	}
	if !exists {
		return functionsStep()
	}
	has, err := list(ctx, db, pgx.RowTo[bool],
		"select version > $1::integer or version = $1::integer and checksum = $2::text from sluice.function_set",
		FunctionsVersion, functionsChecksum())
	if err != nil {
		return nil, err
	}
	if len(has) > 0 && has[0] {
		blind, err := readersLack(ctx, db)
		if err != nil || !blind {
			return nil, err
		}
	}
	return functionsStep()
}

// functionsStep returns the step that creates the functions.
func functionsStep() (*sluice.Migration, error) {
	set, err := functionSet()
	if err != nil {
		return nil, err
	}
	return &sluice.Migration{Name: "functions for other languages", Checksum: set.checksum, SQL: set.text + fmt.Sprintf(noteFunctions, FunctionsVersion, set.checksum)}, nil
}

// readersLack reports whether readers lack rights on columns that they should see: columns of tables that were
// created later.
func readersLack(ctx context.Context, db rowsQuerier) (bool, error) {
	columns, err := readerColumns()
	if err != nil {
		return false, err
	}
	rows, err := query(ctx, db, fmt.Sprintf(lackingSQL, columns))
	if err != nil {
		return false, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
}

const lackingSQL = `select exists (
    select from sluice.queue_grant g
    join pg_roles r on r.oid = g.role
    cross join (%s) c
    where g.may = 'read'
      and not exists (select from aclexplode(c.acl) a where a.grantee = r.oid and a.privilege_type = 'SELECT'))`

// readerColumns returns the statement that lists the columns that readers may select, without arguments.
func readerColumns() (string, error) {
	made, err := readSchema()
	if err != nil {
		return "", err
	}
	relations := "'{" + strings.Join(slices.Concat(made.tables, made.views), ",") + "}'"
	return strings.ReplaceAll(schemaComment.ReplaceAllString(readerColumnsSQL, ""), "$1", relations), nil
}

// noteFunctions records the version of the functions, in the transaction that creates them.
const noteFunctions = `insert into sluice.function_set as f (version, checksum) values (%d, '%s')
on conflict (one) do update set version = excluded.version, checksum = excluded.checksum, installed = now();
`

// migrateFunctions creates the functions, or replaces older ones, and returns the step. Nil: the functions are up
// to date.
func migrateFunctions(ctx context.Context, conn *pgx.Conn) (*sluice.Migration, error) {
	var step *sluice.Migration
	err := underMigrationLock(ctx, conn, func(tx pgx.Tx) (err error) {
		if step, err = missingFunctions(ctx, tx); err != nil || step == nil {
			return err
		}
		_, err = tx.Exec(ctx, step.SQL)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("migrate: functions: %w", err)
	}
	return step, nil
}
