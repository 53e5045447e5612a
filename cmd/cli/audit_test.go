package cli_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// ledger is a store with three seals over nine entries, and a connection that may change anything in it.
type ledger struct {
	*testing.T
	address string
	server  string // URL of an HTTP server of the store
	// prefix stands before the names of tables.
	prefix string
	exec   func(sql string)
	heads  []string // the digest of each seal
	seqs   []int64  // the seq of each entry
}

// fill adds nine entries and seals them, three per seal.
func (l *ledger) fill(store sluice.Store) {
	l.Helper()
	server := httptest.NewServer(httpapi.New(store, httpapi.Options{NoLogin: true}))
	l.Cleanup(server.Close)
	l.server = server.URL
	chain, err := audit.Of(store)
	if err != nil {
		l.Fatal(err)
	}
	for n := range 3 {
		var entries []sluice.AuditEntry
		for m := range 3 {
			entries = append(entries, sluice.AuditEntry{
				Object: audit.ObjectQueue, Name: "mail", Event: audit.EventBreaker, Actor: "ada@bank", Reason: fmt.Sprintf("act %d", 3*n+m), After: []byte(`{"n":1}`),
			})
		}
		if err := store.AppendAudit(l.Context(), entries); err != nil {
			l.Fatal(err)
		}
		sealed, err := audit.SealSettled(l.Context(), chain, audit.SealOptions{})
		if err != nil || sealed.Entries != 3 {
			l.Fatalf("sealed %+v: %v", sealed, err)
		}
		l.heads = append(l.heads, sealed.Last.Head().String())
	}
	told, err := store.Audit(l.Context(), sluice.AuditFilter{Object: audit.ObjectQueue, Limit: 100})
	if err != nil {
		l.Fatal(err)
	}
	for _, e := range told {
		l.seqs = append([]int64{e.Seq}, l.seqs...)
	}
}

func sqliteLedger(t *testing.T) *ledger {
	path := filepath.Join(t.TempDir(), "jobs.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)") // this connection may drop triggers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	l := &ledger{T: t, address: "sqlite:" + path, prefix: "sluice_"}
	l.exec = func(statement string) {
		l.Helper()
		err := func() error {
			tx, err := db.Begin()
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			for _, table := range []string{"audit", "audit_seal", "audit_batch"} {
				for _, trigger := range []string{"stays", "goes"} {
					if _, err := tx.ExecContext(l.Context(), "drop trigger if exists sluice_"+table+"_"+trigger); err != nil {
						return err
					}
				}
			}
			if _, err := tx.ExecContext(l.Context(), statement); err != nil {
				return err
			}
			return tx.Commit()
		}()
		if err != nil {
			l.Fatalf("%s: %v", statement, err)
		}
	}
	l.fill(store)
	return l
}

func postgresLedger(t *testing.T) *ledger {
	if err := cluster.start(); err != nil {
		t.Fatal(err)
	}
	address := pgtest.NewDatabase(t)
	store, err := postgres.Open(t.Context(), address, postgres.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	l := &ledger{T: t, address: address, prefix: "sluice."}
	l.exec = func(sql string) {
		l.Helper()
		if _, err := store.Pool().Exec(context.WithoutCancel(l.Context()), "begin; set local session_replication_role = replica; "+sql+"; commit"); err != nil {
			l.Fatalf("%s: %v", sql, err)
		}
	}
	l.fill(store)
	return l
}

// verify runs `audit verify` on the database and through a server, and compares the two. It returns the output and the
// exit code.
func (l *ledger) verify(args ...string) (says string, code int) {
	l.Helper()
	args = append([]string{"audit", "verify"}, args...)
	says, code = answerOf(l.T, l.address, args...)
	if there, other := answerOf(l.T, l.server, args...); there != says || other != code {
		l.Errorf("%v over HTTP: %d\n%s\non the database: %d\n%s", args, other, there, code, says)
	}
	return says, code
}

// TestVerifyNamesTheFirstEntryThatWasTamperedWith changes the store by plain SQL with every right, as somebody with
// something to hide would.
func TestVerifyNamesTheFirstEntryThatWasTamperedWith(t *testing.T) {
	t.Parallel()
	put := "insert into {audit} (seq, at, actor, object, name, event) values (%d, %s, 'eve', 'queue', 'mail', 'change')"
	for name, c := range map[string]struct {
		// do holds the statements; each %d stands for the seq of an entry, chosen by at.
		do    string
		at    []int
		says  string
		heads bool
	}{
		"an actor is another":                {"update {audit} set actor = 'nobody@else' where seq = %d", []int{4}, "entry {seq} was changed", false},
		"every actor is another":             {"update {audit} set actor = 'nobody@else' where seq >= %d", []int{0}, "entry {seq} was changed", false},
		"a payload is another":               {`update {audit} set after = '{"n":2}' where seq = %d`, []int{8}, "entry {seq} was changed", false},
		"an entry is gone":                   {"delete from {audit} where seq = %d", []int{4}, "entry {seq} was removed", false},
		"the first entry is gone":            {"delete from {audit} where seq = %d", []int{0}, "entry {seq} was removed", false},
		"an entry was put in":                {put, []int{-1}, "entry {seq} was put in", false},
		"two have changed places":            {"update {audit} set reason = 'act 0' where seq = %d", []int{1}, "entry {seq} was changed", false},
		"an entry and its batch":             {"delete from {audit} where seq = %d; delete from {audit_batch} where seal = 2", []int{4}, "so was the list that would tell which", false},
		"a seal says something else":         {"update {audit_seal} set upto = upto + 1 where no = 2", nil, "seal 2 was changed", false},
		"a seal is gone":                     {"delete from {audit_seal} where no = 2", nil, "seal 2 was removed", false},
		"the beginning is gone":              {"delete from {audit_seal} where no = 1", nil, "the seals before seal 2 were removed", false},
		"the end is gone, seals and entries": {"delete from {audit} where seq >= %d; delete from {audit_seal} where no >= 3; delete from {audit_batch} where seal >= 3", []int{6}, "its end was cut off", true},
		"all of the chain is gone":           {"delete from {audit}; delete from {audit_seal}; delete from {audit_batch}", nil, "its end was cut off", true},
	} {
		for kind, open := range map[string]func(*testing.T) *ledger{"sqlite": sqliteLedger, "postgres": postgresLedger} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				l := open(t)
				if says, code := l.verify("--head", l.heads[0], "--head", l.heads[2]); code != 0 || !strings.Contains(says, "9 entries are as they were sealed, in 3 seals") {
					t.Fatalf("before: exit code %d:\n%s", code, says)
				}
				says := c.says
				statement := strings.NewReplacer("{audit}", l.prefix+"audit", "{audit_seal}", l.prefix+"audit_seal", "{audit_batch}", l.prefix+"audit_batch").Replace(c.do)
				if c.do == put {
					statement = l.putIn(statement)
					says = strings.ReplaceAll(says, "{seq}", fmt.Sprint(l.seqs[0]-1))
				} else if len(c.at) > 0 {
					statement = fmt.Sprintf(statement, l.seqs[c.at[0]])
					says = strings.ReplaceAll(says, "{seq}", fmt.Sprint(l.seqs[c.at[0]]))
				}
				l.exec(statement)
				var args []string
				if c.heads {
					if said, code := l.verify(); code != 0 {
						t.Errorf("without the head it shows: exit code %d:\n%s", code, said)
					}
					args = []string{"--head", l.heads[2]}
				}
				said, code := l.verify(args...)
				if code != 7 || !strings.Contains(said, says) {
					t.Errorf("exit code %d, want 7 and %q:\n%s", code, says, said)
				}
			})
		}
	}
}

// putIn completes a statement that adds an entry before the first one.
func (l *ledger) putIn(statement string) string {
	at := "1700000000000000"
	if l.prefix == "sluice." {
		at = "now()"
		statement = strings.Replace(statement, ") values", ") overriding system value values", 1)
	}
	return fmt.Sprintf(statement, l.seqs[0]-1, at)
}

// TestVerifyKnowsARewrittenChainByItsHead changes entries and seals them anew, as somebody with every right can.
func TestVerifyKnowsARewrittenChainByItsHead(t *testing.T) {
	t.Parallel()
	l := sqliteLedger(t)
	l.exec(fmt.Sprintf("update sluice_audit set actor = 'nobody@else' where seq = %d", l.seqs[4]))
	l.exec("delete from sluice_audit_batch")
	l.exec("delete from sluice_audit_seal")
	path := strings.TrimPrefix(l.address, "sqlite:")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for range 3 {
		if _, err := audit.Keep(t.Context(), store, nil, sluice.Act{By: "eve"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := audit.SealSettled(t.Context(), store, audit.SealOptions{}); err != nil {
		t.Fatal(err)
	}
	if said, code := l.verify(); code != 0 {
		t.Errorf("a chain that was made anew is whole in itself, exit code %d:\n%s", code, said)
	}
	if said, code := l.verify("--head", l.heads[1]); code != 7 || !strings.Contains(said, "seal 2 is not the one whose hash was told") {
		t.Errorf("exit code %d, want 7:\n%s", code, said)
	}
}
