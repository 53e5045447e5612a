package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// patient is a database on a server of its own. Tests damage and repair it.
type patient struct {
	*testing.T
	*body
}

type body struct {
	cluster *pgtest.Cluster
	url     string
	store   *postgres.Store
}

// trouble is a fault, with the finding that it causes. The repair that the finding names must end it.
type trouble struct {
	check    string
	severity health.Severity
	says     string // a part of the finding's text
	options  health.Options
	provoke  func(p *patient)
	// relieve does what the finding advises besides its statements; nil: nothing.
	relieve func(p *patient)
	// stays says that the finding stays although its repair was done.
	stays bool
}

func TestHealthFindsWhatIsWrongAndSaysWhatMendsIt(t *testing.T) {
	t.Parallel()
	cluster, err := pgtest.Start(pgtest.Options{Settings: []string{
		"max_connections = 20", "max_prepared_transactions = 2", "autovacuum_naptime = 1000s",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	if _, err := postgres.Migrate(t.Context(), cluster.URL); err != nil {
		t.Fatal(err)
	}
	p := &patient{t, &body{cluster, cluster.URL, openStore(t, cluster.URL)}}
	if health := p.health(health.Options{}); health.Ill() || health.Kind != "postgres" {
		t.Fatalf("a new database is not well: %+v", health.Findings)
	}
	provoked := make(map[string]bool)
	for _, one := range slices.Concat(schemaFindings(), rowFindings(), holdingFindings(), serverFindings(), durabilityFindings()) {
		provoked[one.check] = true
		t.Run(one.check+"/"+strings.ReplaceAll(one.says, " ", "_"), func(t *testing.T) { p.suffer(t, one) })
	}
	if health := p.health(health.Options{}); health.Ill() {
		t.Errorf("after everything was mended it is not well: %+v", health.Findings)
	}
	for _, check := range health.Checks() {
		if check.Kind == "postgres" && !provoked[check.Name] {
			t.Errorf("nothing provokes the check %q", check.Name)
		}
	}
}

// suffer causes a trouble, and does what the finding advises until the finding is gone.
func (p *patient) suffer(t *testing.T, one trouble) {
	p = &patient{t, p.body}
	one.provoke(p)
	found, is := p.await(one, "")
	if !is {
		t.Fatalf("not found: %+v", p.health(one.options).Findings)
	}
	if found.Severity != one.severity || found.Well != (one.severity == health.SeverityNote) || found.Why == "" {
		t.Errorf("found %+v, want the severity %s and a reason", found, one.severity)
	}
	if one.relieve != nil {
		one.relieve(p)
	}
	for is && !one.stays { // findings may share a check's name
		if one.relieve != nil {
			if found, is = p.finding(one); !is {
				break
			}
		}
		if !p.repair(found.Repair) {
			t.Fatalf("what mends it cannot be done: %+v", found)
		}
		mended := found
		if found, is = p.await(one, mended.Repair); is && found.Repair == mended.Repair {
			t.Fatalf("`%s` does not mend it: %+v", mended.Repair, found)
		}
	}
}

// await waits until a finding appears, or until no finding names the repair mended any more. Ended sessions and
// reloaded settings take a moment.
func (p *patient) await(one trouble, mended string) (found health.Finding, is bool) {
	p.Helper()
	for range 200 {
		found, is = p.finding(one)
		if is != (mended != "") || is && found.Repair != mended {
			break
		}
	}
	return found, is
}

func (p *patient) health(options health.Options) health.Report {
	p.Helper()
	health, err := health.Of(p.Context(), p.store, options)
	if err != nil {
		p.Fatal(err)
	}
	return health
}

func (p *patient) finding(one trouble) (health.Finding, bool) {
	p.Helper()
	for _, f := range p.health(one.options).Findings {
		if f.Check == one.check && f.Severity != "" && strings.Contains(f.What, one.says) {
			return f, true
		}
	}
	return health.Finding{}, false
}

// repair runs the statements of a finding, which are separated by semicolons. Text before a statement is skipped.
func (p *patient) repair(mend string) bool {
	p.Helper()
	did := false
	var statements []string
	for statement := range strings.SplitSeq(mend, "; ") {
		if statement == "restart the server" {
			p.exec(statements...)
			p.restart()
			did, statements = true, nil
			continue
		}
		if _, after, found := strings.Cut(statement, ": "); found {
			statement = after
		}
		word, _, _ := strings.Cut(statement, " ")
		if slices.Contains([]string{"select", "set", "alter", "create", "drop", "reindex", "grant", "revoke", "delete", "vacuum", "analyze", "rollback"}, word) {
			did, statements = true, append(statements, statement)
		}
	}
	p.exec(statements...)
	return did
}

func (p *patient) restart() {
	p.Helper()
	p.exec("checkpoint") // the server stops as in a crash, which would lose the last commits
	if err := p.cluster.Halt(); err != nil {
		p.Fatal(err)
	}
	if err := p.cluster.Resume(); err != nil {
		p.Fatal(err)
	}
}

// connect makes a connection beside the store's.
func (p *patient) connect(url string) *pgx.Conn {
	p.Helper()
	conn, err := pgx.Connect(p.Context(), url)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = conn.Close(p.Context()) })
	return conn
}

// exec runs each statement on a connection of its own, so that the server counts it at once.
func (p *patient) exec(statements ...string) {
	p.Helper()
	conn, err := pgx.Connect(p.Context(), p.url)
	if err != nil {
		p.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := conn.Exec(p.Context(), statement); err != nil {
			p.Errorf("%s: %v", statement, err)
		}
	}
	if err := conn.Close(p.Context()); err != nil {
		p.Fatal(err)
	}
}

func (p *patient) follow() {
	p.Helper()
	p.exec("create table if not exists rows (id text, state text)")
	err := p.store.Follow(p.Context(), sluice.Follower{Name: "rows", Queue: "mail", Statement: "update rows set state = moved.state where id = moved.id"})
	if err != nil {
		p.Fatal(err)
	}
}

// does returns a provocation that runs statements.
func does(statements ...string) func(p *patient) {
	return func(p *patient) { p.exec(statements...) }
}

// schemaFindings provoke findings about objects of the schema.
func schemaFindings() []trouble {
	const missing, invalid = "is missing", "is invalid"
	return []trouble{
		{check: "index", severity: health.SeverityError, says: missing, provoke: does("drop index sluice.live_claim, sluice.live_open", "alter table sluice.holder drop constraint holder_pkey")},
		{check: "index", severity: health.SeverityError, says: invalid, provoke: does("update pg_index set indisvalid = false where indexrelid = 'sluice.live_claim'::regclass")},
		{check: "index", severity: health.SeverityNote, says: "left over", provoke: func(p *patient) {
			p.exec("insert into sluice.holder (id, role) values ('a', 'worker'), ('b', 'worker')")
			conn := p.connect(p.url)
			if _, err := conn.Exec(p.Context(), "create unique index concurrently holder_role on sluice.holder (role)"); err == nil {
				p.Error("two of one role are unique")
			}
		}},
		{check: "moved", severity: health.SeverityError, says: "a move to sqlite:/jobs.db began on 2026-11-28 12:00:00 UTC", provoke: does(
			"create table sluice.moved (one integer, mark text)",
			`insert into sluice.moved values (1, '{"To": "sqlite:/jobs.db", "At": "2026-11-28T12:00:00Z"}')`,
		), relieve: does("drop table sluice.moved")},
		{check: "foreign", severity: health.SeverityError, says: "the trigger swallow on the table audit", provoke: does(
			"create function public.swallow() returns trigger language plpgsql as 'begin return null; end'",
			"create trigger swallow before insert on sluice.audit for each row execute function public.swallow()",
		)},
		{check: "foreign", severity: health.SeverityError, says: "the rule swallow on the table audit", provoke: does(
			"create rule swallow as on insert to sluice.audit do instead nothing",
		)},
		{check: "foreign", severity: health.SeverityError, says: "the policy mine on the table live", provoke: does("create policy mine on sluice.live using (true)")},
		{check: "foreign", severity: health.SeverityNote, says: "the view late", provoke: does("create view sluice.late as select 1")},
		{check: "follower", severity: health.SeverityError, says: "is not run with each move", provoke: func(p *patient) {
			p.follow()
			p.exec("drop trigger follow_rows_ended on sluice.done")
		}, relieve: (*patient).follow},
		{check: "follower", severity: health.SeverityError, says: `relation "rows" does not exist`, provoke: func(p *patient) {
			p.follow()
			p.exec("drop table rows")
		}},
		{check: "grant", severity: health.SeverityWarning, says: "roles that are gone still have grants", provoke: does(
			"insert into sluice.queue_grant (role, may, queue) values (4000000000::oid::regrole, 'work', 'mail')",
		)},
		{check: "trigger", severity: health.SeverityError, says: "audit_stays", provoke: does("alter table sluice.audit disable trigger audit_stays")},
		{check: "trigger", severity: health.SeverityError, says: "terms_changed", provoke: does("alter table sluice.tenant disable trigger terms_changed")},
		{
			check: "schema", severity: health.SeverityNote, says: "this program knows", provoke: does("insert into sluice.migration values (99, 'later', 'x', 1)"),
			relieve: does("delete from sluice.migration where version = 99"),
		},
		{check: "schema", severity: health.SeverityNote, says: "functions", provoke: does("delete from sluice.function_set"), relieve: func(p *patient) {
			if _, err := postgres.Migrate(p.Context(), p.url); err != nil {
				p.Error(err)
			}
		}},
		{check: "integrity", severity: health.SeverityNote, says: "amcheck", options: health.Options{Thorough: true}, provoke: does()},
		{check: "integrity", severity: health.SeverityError, says: "holder_pkey", options: health.Options{Thorough: true}, provoke: does(
			"update pg_index set indisready = false where indexrelid = 'sluice.holder_pkey'::regclass",
			"insert into sluice.holder (id, role) values ('c', 'worker')",
			"update pg_index set indisready = true where indexrelid = 'sluice.holder_pkey'::regclass",
		), relieve: does()},
	}
}

// rowFindings provoke findings about rows of the tables.
func rowFindings() []trouble {
	const rows = "insert into sluice.holder (id, role) select 'holder-' || n, 'worker' from generate_series(1, 12000) n"
	judged := func(check string, warning float64, statements ...string) func(p *patient) {
		return func(p *patient) {
			p.store.JudgeHealth(check, warning)
			p.exec(statements...)
		}
	}
	thorough := health.Options{Thorough: true}
	const (
		live = "insert into sluice.live (id, queue, priority, due_at) values (md5('%s')::uuid, 'q', 5, now())"
		done = "insert into sluice.done (id, generation, queue, outcome, due_at, attempts, releases, recoveries) values (md5('%s')::uuid, 1, 'q', 'dead', now(), 0, 0, 0)"
		job  = "insert into sluice.job (id, queue, priority, payload) values (md5('%s')::uuid, 'q', 5, '1')"
	)
	return []trouble{
		{check: "orphan", severity: health.SeverityError, says: "1 rows of sluice.live have no job", options: thorough, provoke: does(fmt.Sprintf(live, "a"))},
		{check: "orphan", severity: health.SeverityError, says: "1 rows of sluice.done have no job", options: thorough, provoke: does(fmt.Sprintf(done, "b"))},
		{check: "orphan", severity: health.SeverityError, says: "1 rows of sluice.live have ended", options: thorough, provoke: does(
			fmt.Sprintf(job, "c"), fmt.Sprintf(live, "c"), fmt.Sprintf(done, "c"))},
		{check: "autovacuum", severity: health.SeverityError, says: "for the table holder", provoke: does("alter table sluice.holder set (autovacuum_enabled = off)")},
		{check: "analyze", severity: health.SeverityWarning, says: "rows of holder have changed", provoke: judged("analyze", 1e-9, rows)},
		{check: "vacuum", severity: health.SeverityWarning, says: "holder was not vacuumed", provoke: judged("vacuum", 1e-9, "delete from sluice.holder")},
		{check: "dead", severity: health.SeverityWarning, says: "dead rows in holder", provoke: judged("dead", 1000, rows, "delete from sluice.holder")},
		{check: "bloat", severity: health.SeverityWarning, says: "holder_pkey", provoke: func(p *patient) {
			p.store.EstimateIndexes(64 << 10)
			p.Cleanup(func() { p.store.EstimateIndexes(8 << 20) })
			judged("bloat", 64<<10, "vacuum analyze sluice.holder")(p)
		}},
		{check: "wraparound", severity: health.SeverityWarning, says: "transactions old", provoke: judged("wraparound", 20)},
	}
}

// TestSchemaIsReadAsTheServerMakesIt drops each index, makes it again with the statement of the finding, and compares
// both.
func TestSchemaIsReadAsTheServerMakesIt(t *testing.T) {
	t.Parallel()
	indexes, tables, err := postgres.MadeIndexes()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), migrated.Copy(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	defined := func() map[string]string {
		out := make(map[string]string)
		rows, _ := conn.Query(t.Context(), "select indexname, indexdef from pg_indexes where schemaname = 'sluice'")
		var name, text string
		if _, err := pgx.ForEachRow(rows, []any{&name, &text}, func() error { out[name] = text; return nil }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := defined()
	for name, mend := range indexes {
		drop := "drop index sluice." + name
		if table, isKey := strings.CutSuffix(name, "_pkey"); isKey {
			drop = fmt.Sprintf("alter table sluice.%s drop constraint %s", table, name)
		}
		for _, statement := range []string{drop, strings.Replace(mend, " concurrently", "", 1)} {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	}
	after := defined()
	if len(before) != len(indexes) {
		t.Errorf("the server has %d indexes, %d are read from the schema files", len(before), len(indexes))
	}
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s was %q, and is %q after it was made again", name, text, after[name])
		}
	}
	var there []string
	if err := conn.QueryRow(t.Context(), "select array_agg(tablename::text order by tablename::text) from pg_tables where schemaname = 'sluice'").Scan(&there); err != nil || !slices.Equal(there, tables) {
		t.Errorf("the server has the tables %v, %v are read from the schema files (%v)", there, tables, err)
	}
}

func TestStatementsAreShownWithoutTheirValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"select  1,\n 'it''s', 2.5 from live": "select ?, ? , ? from live",
		"":                                    "",
	} {
		if got := postgres.Statement(text); got != strings.ReplaceAll(want, "? ,", "?,") {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{
		"alter role ada password 'hunter2'", "select E'a\\'hunter2'", "select $x$hunter2$x$", "select 1 /* hunter2 */", "select 1 -- hunter2",
		"select 'hunter2", "/* hunter2", "copy t from stdin; select $$hunter2", "select X'hunter2', 4711", "select U&'hunter2'",
	} {
		if got := postgres.Statement(text); strings.Contains(got, "hunter2") || strings.Contains(got, "4711") {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	if got := postgres.Statement("select " + strings.Repeat("column, ", 100)); len([]rune(got)) > 100 {
		t.Errorf("%d characters are shown", len([]rune(got)))
	}
}
