package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// secretErrors pairs errors, as drivers and servers write them, with the text that must not be left. Keys of vendors
// are joined from parts, so that no scanner takes them for real ones.
var secretErrors = [][2]string{
	{"dial tcp 10.20.30.40:5432: connect: connection refused", "10.20.30.40"},
	{"dial tcp [2001:db8::7:1]:5432: i/o timeout", "2001:db8"},
	{"open db password=s3cr3tXYZ: no such host", "s3cr3tXYZ"},
	{"open db password=correcthorse host=x", "correcthorse"},
	{"token=abcDEF123456789: invalid", "abcDEF123456789"},
	{"parse \"postgres://app:s3cr3tXYZ@db:54x/jobs\": invalid port", "s3cr3tXYZ"},
	{"app:s3cr3tXYZ@tcp(db:3306)/x: refused", "s3cr3tXYZ"},
	{`{"client_secret":"abc def 123","x":1}`, "def 123"},
	{`{"body":"{\"api_key\":\"q9w8e7r6\"}"}`, "q9w8e7r6"},
	{"aws_secret_access_key: wJalrXUtnFEMI/K7MDENG123", "wJalrXUtnFEMI"},
	{"the password is s3cr3t-Pa55", "s3cr3t-Pa55"},
	{"password='a''b1234567' refused", "a''b"},
	{"ALTER ROLE app PASSWORD 'hunter2x'", "hunter2x"},
	{"CREATE USER a IDENTIFIED WITH x BY 'hunter2x'", "hunter2x"},
	{"<password>hunter2x</password>", "hunter2x"},
	{"run --api-key abcDEF123456 failed", "abcDEF123456"},
	{"Authorization: Bearer abcDEF123456789", "abcDEF123456789"},
	{"Cookie: sid=abcDEF; theme=dark", "abcDEF"},
	{"https://x.blob.example.com/c?sv=1&sig=abcDEF123456789012%3D", "abcDEF123456789012"},
	{"Post \"https://hooks.slack.com/services/T0AB/B0AB/abcDEF123456\": EOF", "abcDEF123456"},
	{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fw", "SflKxwRJSMeKKF2QT4fw"},
	{"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIB\n-----END RSA PRIVATE KEY-----\nend", "MIIEpAIB"},
	{"key AKI" + "AQYLPMN5HHHFPZAM2 refused", "QYLPMN5HHHFPZAM2"},
	{"gh" + "p_" + strings.Repeat("aB3", 12), "aB3aB3"},
	{"sk_" + "live_" + strings.Repeat("aB3", 8), "aB3aB3"},
	{"no user ann.smith@example.com", "ann.smith"},
	{"open /home/alice/x: permission denied", "alice"},
	{"card 4111 1111 1111 1111 declined", "1111 1111"},
}

var harmlessErrors = []string{
	"connection refused", "context deadline exceeded", "dial tcp 127.0.0.1:5432: connect: connection refused", "GET /users/12345/orders: 404", "total_tokens=1234567", "PWD=/srv/app1", "git@github.com:x/y",
	"unexpected token \"}\" at line 12", "password authentication failed for user \"app\"", "password is required", "password=$PASSWORD", "token := next()", "job 550e8400-e29b-41d4-a716-446655440000 failed",
	"2026-07-01T12:34:56.789Z main.go:12: exit status 1", "goroutine 1 [running]:\nmain.main()\n\t/app/main.go:12 +0x1d", "version 1.2.3", "http://localhost:8080/x@y", "relation \"secret\" does not exist", "std::vector<int>",
	"48:65:6c:6c:6f:20:57:6f", "duplicate key value violates unique constraint \"job_pkey\"", "key (id)=(42) already exists",
}

func TestFunctionsKeepSecretsOutOfWhatTheyStore(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	worker, owner := r.as(r.worker), r.as("postgres")
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '{}', job_id => '` + mine + `')`)
	claim := func() string {
		return value[string](r, worker, `select token::text from sluice.claim(queues => '{scraper}', holder => 'w1')`)
	}
	const fault = "open db password=s3cr3tXYZ: no such host"
	value[string](r, worker, `select sluice.fail(id => $1::text::uuid, token => $2::text::uuid, error => $3, retry_seconds => 0, stack => $3)`, mine, claim(), fault)
	value[string](r, worker, `select sluice.release(id => $1::text::uuid, token => $2::text::uuid, reason => $3)::text`, mine, claim(), fault)
	if kept := value[string](r, owner, "select error from sluice.attempt"); kept != "open db password=[redacted:password]: no such host" {
		t.Errorf("kept is %q", kept)
	}
	keepsNone(t, r, owner, "s3cr3tXYZ")
	for _, e := range secretErrors {
		clean := value[string](r, owner, "select sluice._scrubbed($1)", e[0])
		if strings.Contains(clean, e[1]) {
			t.Errorf("of %q is left %q", e[0], clean)
		}
		if again := value[string](r, owner, "select sluice._scrubbed($1)", clean); again != clean {
			t.Errorf("%q becomes %q", clean, again)
		}
	}
	for _, e := range harmlessErrors {
		if clean := value[string](r, owner, "select sluice._scrubbed($1)", e); clean != e {
			t.Errorf("%q became %q", e, clean)
		}
	}
	long := strings.Repeat("a word ", 1<<16)
	if kept := value[int](r, owner, "select octet_length(sluice._stored_text($1))", long+fault); kept > 8<<10 {
		t.Errorf("of a long text %d bytes are stored", kept)
	}
	if kept := value[string](r, owner, "select sluice._stored_text($1)", long+fault); strings.Contains(kept, "s3cr3t") || !strings.HasSuffix(kept, ": no such host") {
		t.Error("the end of a long text is kept as it was, or not at all")
	}
}

// keepsNone looks for secrets in every row of every table.
func keepsNone(t *testing.T, r *roles, owner *pgx.Conn, secrets ...string) {
	t.Helper()
	const tables = `select string_agg(format('select %1$L || t::text as line from sluice.%1$I t', tablename), ' union all ') from pg_tables where schemaname = 'sluice'`
	all := value[string](r, owner, "select string_agg(line, E'\\n') from ("+value[string](r, owner, tables)+") every")
	if !strings.Contains(all, "[redacted:") {
		t.Error("no table has what was left of the errors")
	}
	for _, secret := range secrets {
		if at := strings.Index(all, secret); at >= 0 {
			t.Errorf("a table has %q: %s", secret, all[max(0, at-200):at+len(secret)])
		}
	}
}

// TestFunctionsForManyKeepSecretsOutOfWhatTheyStore fails and releases jobs with all of the errors in one call.
func TestFunctionsForManyKeepSecretsOutOfWhatTheyStore(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	worker, owner := r.as(r.worker), r.as("postgres")
	r.exec("update sluice.queue set audit = 'full' where name = 'scraper'")
	var errs, secrets []string
	for _, e := range secretErrors {
		errs, secrets = append(errs, e[0]), append(secrets, e[1])
		r.exec("select sluice.enqueue(queue => 'scraper', payload => '{}')")
	}
	const claimed = "with c as (select id, token from sluice.claim(queues => '{scraper}', holder => 'w1', batch => 1000)) "
	for _, call := range []string{
		"sluice.release_many(ids => array_agg(c.id), tokens => array_agg(c.token), reason => $1)",
		"sluice.fail_many(ids => array_agg(c.id), tokens => array_agg(c.token), errors => $1, retry_seconds => array_agg(0), stacks => $1)",
		"sluice.fail_many(ids => array_agg(c.id), tokens => array_agg(c.token), errors => $1, retryable => array_agg(false), stacks => $1)",
	} {
		var argument any = errs
		if strings.Contains(call, "reason") {
			argument = strings.Join(errs, "\n")
		}
		if done := value[int](r, worker, claimed+"select count(*) from (select "+call+" from c) done", argument); done != len(errs) {
			t.Errorf("%s was of %d jobs, want %d", call, done, len(errs))
		}
	}
	keepsNone(t, r, owner, secrets...)
}
