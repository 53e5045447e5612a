package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/postgres"
)

// The secrets of the jobs that secretJobs stores. No other column has these texts.
const (
	secretToken  = "feedf00d-cafe-4abc-8def-0123456789ab"
	secretResult = "result-of-olive-oil"
	secretText   = "payload-of-olive-oil"
	secretStep   = "checkpoint-of-olive-oil"
)

// secretJobs stores a claimed, a completed and a waiting job with secrets, in a queue with a rate.
func secretJobs(r *roles) {
	r.Helper()
	r.exec("update sluice.queue set rate = 100, rate_per_ms = 60000, concurrency = 50, audit = 'full' where name = 'scraper'")
	for _, id := range []string{mine, foreign, "01890000-0000-7000-8000-000000000003"} {
		r.exec(`select sluice.enqueue(queue => 'scraper', payload => '{"name":"`+secretText+`"}', key => 'k-' || $1::text, job_id => $1::text::uuid, tenant => 'acme')`, id)
	}
	r.exec(`select sluice.claim(queues => '{scraper}', holder => 'w1', batch => 2, claim_token => $1::text::uuid)`, secretToken)
	r.exec(`select sluice.checkpoint(id => $1::text::uuid, token => $2::text::uuid, checkpoint => '{"at":"`+secretStep+`"}')`, mine, secretToken)
	r.exec(`select sluice.complete(id => $1::text::uuid, token => $2::text::uuid, result => '{"canonical":"`+secretResult+`"}')`, foreign, secretToken)
}

// newReader makes a role that may only read.
func newReader(r *roles) string {
	r.Helper()
	reader := r.role("reader")
	r.exec("select sluice.grant_reader($1)", reader)
	return reader
}

// columnOf is a column of a table or view of the schema.
type columnOf struct{ Relation, Column, Type string }

func (c columnOf) isSecret() bool {
	if slices.Contains([]string{"payload", "payload_text", "result", "result_text", "checkpoint", "token"}, c.Column) {
		return true
	}
	return c.Type == "bytea" && c.Relation != "audit_seal" && c.Relation != "audit_batch"
}

func columnsOf(r *roles) []columnOf {
	r.Helper()
	rows, err := r.owner.Pool().Query(r.Context(), `select c.relname::text as relation, a.attname::text as column, a.atttypid::regtype::text as type
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		where c.relnamespace = 'sluice'::regnamespace and c.relkind not in ('i', 'S') order by 1, a.attnum`)
	if err != nil {
		r.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[columnOf])
	if err != nil || len(all) < 200 {
		r.Fatalf("%d columns, %v", len(all), err)
	}
	return all
}

// TestReaderSeesNoSecretInAnyColumn reads all columns of all tables and views as a reader.
func TestReaderSeesNoSecretInAnyColumn(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	secretJobs(r)
	conn := r.as(newReader(r))
	hidden := make(map[string]bool)
	for _, c := range columnsOf(r) {
		text := fmt.Sprintf("select string_agg(%s::text, ' ') from sluice.%s", pgx.Identifier{c.Column}.Sanitize(), pgx.Identifier{c.Relation}.Sanitize())
		if c.isSecret() {
			hidden[c.Relation+"."+c.Column] = true
			r.refused(conn, "42501", text)
			continue
		}
		seen := value[*string](r, conn, text)
		if seen == nil {
			continue
		}
		for _, secret := range []string{secretToken, strings.ReplaceAll(secretToken, "-", ""), secretText, secretResult, secretStep} {
			if strings.Contains(*seen, secret) {
				t.Errorf("%s shows %s", c, secret)
			}
		}
	}
	for _, known := range []string{"job.payload", "live.token", "live.checkpoint", "done.token", "done.result", "permit.token", "jobs.payload", "jobs.payload_text"} {
		if !hidden[known] {
			t.Errorf("%s is not there, or is seen", known)
		}
	}
	if jobs := value[int](r, conn, "select count(*) from (select * from sluice.job_status) s where state in ('queued', 'claimed', 'completed')"); jobs != 3 {
		t.Errorf("job_status shows %d jobs, want 3", jobs)
	}
	r.onlyOf(conn, "reader")
	for _, sql := range []string{"delete from sluice.job", "update sluice.queue set paused = true", "insert into sluice.holder (id, role) values ('a', 'worker')", "truncate sluice.audit", "select * from sluice.job"} {
		r.refused(conn, "42501", sql)
	}
}

// TestReaderIsServedByTheStore calls every reading verb of the store as a reader.
func TestReaderIsServedByTheStore(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	secretJobs(r)
	r.exec("insert into sluice.permit (queue, claimed_at, token, jobs, check_at) values ('scraper', now(), $1::text::uuid, 3, now() + interval '1 minute')", secretToken)
	store := openStore(t, asRole(r.url, newReader(r)))
	ctx := t.Context()
	id := mustID(t, mine)
	for name, look := range map[string]func() error{
		"queues":   func() error { _, err := store.Queues(ctx, sluice.QueueFilter{}); return err },
		"attempts": func() error { _, err := store.Attempts(ctx, id); return err },
		"why": func() error {
			_, err := explain.Job(ctx, store, mustID(t, "01890000-0000-7000-8000-000000000003"))
			return err
		},
		"jobs":    func() error { _, err := store.Jobs(ctx, sluice.JobFilter{Limit: 10}); return err },
		"glance":  func() error { _, err := store.Depth(ctx, "scraper", 10); return err },
		"flows":   func() error { _, err := store.Flows(ctx, 10); return err },
		"waves":   func() error { _, err := store.Waves(ctx, forecast.Filter{}); return err },
		"audit":   func() error { _, err := store.Audit(ctx, sluice.AuditFilter{Limit: 10}); return err },
		"holders": func() error { _, err := presence.Holders(ctx, store); return err },
		"tasks":   func() error { _, err := presence.Tasks(ctx, store); return err },
		"tenants": func() error { _, err := store.Tenants(ctx, "", 10); return err },
		"tiers":   func() error { _, err := store.Tiers(ctx); return err },
		"alerts":  func() error { _, err := alert.Read(ctx, store); return err },
		"orphan runs": func() error {
			_, err := engine.Given(store).OrphanRuns(ctx, "scraper", engine.OrphanRun{}, 10)
			return err
		},
	} {
		if err := look(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	job, err := store.Job(ctx, id)
	if err != nil || !job.Withheld || job.Payload != nil || job.Checkpoint != nil || job.State != sluice.StateClaimed || job.KeyScope == "" {
		t.Errorf("the job is %+v, %v; want it without its payload", job, err)
	}
	whole, err := r.owner.Job(ctx, id)
	if err != nil || whole.Withheld || whole.Payload == nil {
		t.Errorf("the owner sees %+v, %v", whole, err)
	}
	whole.Payload, whole.Checkpoint, whole.Withheld = nil, nil, true
	if a, b := asJSON(t, job), asJSON(t, whole); a != b {
		t.Errorf("a reader sees\n%s\nthe owner\n%s", a, b)
	}
	_, err = store.Cancel(ctx, []sluice.ID{id}, sluice.Act{By: "ada", Reason: "test"})
	if !errors.Is(err, sluice.ErrReader) || !strings.Contains(err.Error(), "_reader may neither write") {
		t.Errorf("cancelling as a reader: %v", err)
	}
	if _, err := store.Claim(ctx, sluice.ClaimRequest{Queue: "scraper", Limit: 1, Holder: "w1", Token: sluice.NewToken(), Lease: time.Minute}); !errors.Is(err, sluice.ErrReader) {
		t.Errorf("claiming as a reader: %v", err)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGrantReaderTakesBackWhatTheRoleSawBefore begins with a role that has the rights of older docs.
func TestGrantReaderTakesBackWhatTheRoleSawBefore(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	before := r.role("before")
	r.exec("grant usage on schema sluice to " + before)
	r.exec("grant select on all tables in schema sluice to " + before)
	found := r.grantFindings(r.owner)
	if len(found) != 1 || found[0].Severity != health.SeverityWarning || !strings.Contains(found[0].What, before) {
		t.Fatalf("doctor finds %+v, want the role that sees payloads", found)
	}
	for statement := range strings.SplitSeq(found[0].Repair, "; ") {
		r.exec(statement)
	}
	if found = r.grantFindings(r.owner); len(found) != 0 {
		t.Errorf("after that doctor finds %+v", found)
	}
	conn := r.as(before)
	r.refused(conn, "42501", "select token from sluice.live")
	value[int](r, conn, "select count(*) from sluice.live")
	store := openStore(t, asRole(r.url, before))
	if found = r.grantFindings(store); len(found) != 1 || found[0].Severity != health.SeverityNote || !strings.HasSuffix(found[0].What, "only reads") {
		t.Errorf("of itself the reader is told %+v", found)
	}
	r.exec("select sluice.revoke_grants($1)", before)
	r.refused(conn, "42501", "select id from sluice.live")
	// public is a role like others here, and has a name.
	r.exec("grant select (token) on sluice.done to public")
	if found = r.grantFindings(r.owner); len(found) != 1 || found[0].Repair != "revoke select on all tables in schema sluice from public" {
		t.Errorf("doctor finds %+v, want public", found)
	}
}

// grantFindings returns the findings of doctor about rights, without those that report no fault.
func (r *roles) grantFindings(store *postgres.Store) []health.Finding {
	r.Helper()
	report, err := store.Health(r.Context(), health.Options{})
	if err != nil {
		r.Fatal(err)
	}
	return slices.DeleteFunc(report.Findings, func(f health.Finding) bool { return f.Check != "grant" || f.Severity == "" })
}

// TestRoleOfProgramsIsNoReaderAndKeepsItsRights tries to make a role of programs a reader, and revokes other grants of
// the role.
func TestRoleOfProgramsIsNoReaderAndKeepsItsRights(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	app := r.role("app")
	for _, statement := range documentedGrants(t) {
		r.exec(strings.ReplaceAll(statement, "sluice_app", app))
	}
	owner, err := pgx.Connect(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(t.Context()) }()
	r.refused(owner, "SL004", "select sluice.grant_reader('"+app+"')")
	// A reader that later gets the rights of programs keeps them when its reader grants are revoked.
	late := newReader(r)
	for _, statement := range documentedGrants(t) {
		r.exec(strings.ReplaceAll(statement, "sluice_app", late))
	}
	r.exec("select sluice.grant_worker($1, '{scraper}')", app)
	for _, role := range []string{app, late} {
		r.exec("select sluice.revoke_grants($1)", role)
		conn := r.as(role)
		value[int](r, conn, "select count(token) from sluice.live")
		if found := r.grantFindings(openStore(t, asRole(r.url, role))); len(found) != 0 {
			t.Errorf("%s lacks rights: %+v", role, found)
		}
	}
}

// TestMigrateLetsReadersSeeWhatIsNew adds columns that a reader may not see yet, as a schema step does.
func TestMigrateLetsReadersSeeWhatIsNew(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	reader := newReader(r)
	conn := r.as(reader)
	r.exec("alter table sluice.holder add column zone text, add column key_of_it bytea")
	r.refused(conn, "42501", "select zone from sluice.holder")
	if found := r.grantFindings(openStore(t, asRole(r.url, reader))); !slices.ContainsFunc(found, func(f health.Finding) bool {
		return strings.Contains(f.What, "may not read all of holder") && strings.HasSuffix(f.Repair, "select sluice.grant_reader('"+reader+"')")
	}) {
		t.Errorf("the reader is told %+v", found)
	}
	for _, want := range []int{1, 0} {
		steps, err := postgres.Migrate(t.Context(), r.url)
		if err != nil || len(steps) != want {
			t.Errorf("migrating ran %d steps, %v; want %d", len(steps), err, want)
		}
	}
	value[int](r, conn, "select count(zone) from sluice.holder")
	r.refused(conn, "42501", "select key_of_it from sluice.holder")
}

// TestMigrateDropsFunctionsOfOtherArguments begins with functions of an older program and a function of the user. A
// user's view needs one of the old functions.
func TestMigrateDropsFunctionsOfOtherArguments(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	made, err := postgres.FunctionSignatures()
	if err != nil || len(made) < 80 {
		t.Fatalf("%d functions, %v", len(made), err)
	}
	for _, signature := range made {
		if !value[bool](r, r.as(r.worker), "select exists (select from pg_proc where oid = to_regprocedure($1))", signature) {
			t.Errorf("%s is not there", signature)
		}
	}
	before := value[int](r, r.as(r.worker), "select count(*) from pg_proc where pronamespace = 'sluice'::regnamespace")
	r.exec("create function sluice.requeue(ids uuid[], reason text, act text, act_id uuid) returns int language sql as 'select 1'")
	r.exec("create function sluice.leave(of_holder text, why text) returns int language sql as 'select 1'")
	r.exec("create view public.leaving as select sluice.leave('a', 'b')")
	r.exec("create function sluice.mine(of_holder text) returns int language sql as 'select 1'")
	r.exec("update sluice.function_set set version = 0")
	if _, err := postgres.Migrate(t.Context(), r.url); err != nil {
		t.Fatal(err)
	}
	after := value[int](r, r.as(r.worker), "select count(*) from pg_proc where pronamespace = 'sluice'::regnamespace")
	if after != before+2 { // the function that a view needs, and the user's function
		t.Errorf("there are %d functions, there were %d", after, before)
	}
	if !value[bool](r, r.as(r.worker), "select to_regprocedure('sluice.requeue(uuid[], text, text, uuid)') is null and exists (select from pg_proc where proname = 'mine')") {
		t.Error("the old requeue is still there, or the user's function is gone")
	}
}

// TestJobsShowTextsBesideBytes stores payloads that are not valid text.
func TestJobsShowTextsBesideBytes(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	secretJobs(r)
	r.exec(`update sluice.job set payload = '\xff00' where id = $1::text::uuid`, mine)
	owner, err := pgx.Connect(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(t.Context()) }()
	if got := value[string](r, owner, "select payload_text || result_text from sluice.jobs where id = $1::text::uuid", foreign); got != `{"name":"`+secretText+`"}{"canonical":"`+secretResult+`"}` {
		t.Errorf("the texts are %s", got)
	}
	if got := value[*string](r, owner, "select payload_text from sluice.jobs where id = $1::text::uuid", mine); got != nil {
		t.Errorf("bytes are the text %q", *got)
	}
}
