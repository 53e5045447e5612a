package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/store/postgres"
)

// holdingFindings provoke findings about things that hold back vacuum.
func holdingFindings() []trouble {
	var far link
	return []trouble{
		{check: "transaction", severity: health.SeverityWarning, says: "of postgres (report) at 127.0.0.1, idle in transaction: select ?, txid_current()", provoke: func(p *patient) {
			p.store.JudgeHealth("transaction", 1e-9)
			conn := p.connect(p.url + "&application_name=report")
			for _, statement := range []string{"begin", "select 'hunter2', txid_current()"} {
				if _, err := conn.Exec(p.Context(), statement); err != nil {
					p.Fatal(err)
				}
			}
		}},
		{check: "prepared", severity: health.SeverityWarning, says: "it's of postgres", provoke: func(p *patient) {
			p.store.JudgeHealth("prepared", 1e-9)
			p.exec("begin", "select txid_current()", "prepare transaction 'it''s'")
		}},
		{check: "slot", severity: health.SeverityWarning, says: "keeps", provoke: func(p *patient) {
			p.store.JudgeHealth("slot", 1)
			p.exec("select pg_create_physical_replication_slot('backup', true)", "create table filler as select generate_series(1, 1000)", "drop table filler")
		}},
		{check: "slot", severity: health.SeverityWarning, says: "is not read by anybody", provoke: func(p *patient) {
			p.store.JudgeHealth("slot", 1<<40)
			p.exec("select pg_create_physical_replication_slot('standby')")
			standby(p, "standby").Close()
			p.exec("select txid_current()", "select txid_current()")
		}},
		{check: "standby", severity: health.SeverityWarning, says: "the standby far_away still reads", provoke: func(p *patient) {
			p.store.JudgeHealth("standby", 2)
			far = standby(p, "")
			p.exec("select txid_current()", "select txid_current()", "select txid_current()")
		}, relieve: func(*patient) { far.reads(0) }}, // as a standby does once hot_standby_feedback is turned off
	}
}

// link is a replication connection, as a standby has it.
type link struct {
	conn *pgx.Conn
	p    *patient
}

// Close ends the link, and waits until the server has noticed it.
func (l link) Close() {
	_ = l.conn.PgConn().Close(l.p.Context())
	for there := true; there; {
		if err := l.p.store.Pool().QueryRow(context.Background(), "select exists (select from pg_stat_replication)").Scan(&there); err != nil {
			l.p.Error(err)
			return
		}
	}
}

// standby follows the server's log as a standby does, and tells the server that it still reads the current rows.
func standby(p *patient, slot string) link {
	p.Helper()
	conn := p.connect(p.url + "&application_name=far_away&replication=true&client_encoding=UTF8&default_query_exec_mode=simple_protocol")
	var id, line, at string
	var database *string
	if err := conn.QueryRow(p.Context(), "IDENTIFY_SYSTEM").Scan(&id, &line, &at, &database); err != nil {
		p.Fatal(err)
	}
	start := "START_REPLICATION PHYSICAL " + at
	if slot != "" {
		start = "START_REPLICATION SLOT " + slot + " PHYSICAL " + at
	}
	var xid uint64
	if err := p.store.Pool().QueryRow(p.Context(), "select txid_current()").Scan(&xid); err != nil {
		p.Fatal(err)
	}
	conn.PgConn().Frontend().SendQuery(&pgproto3.Query{String: start})
	l := link{conn, p}
	l.reads(xid)
	return l
}

// reads tells the server the oldest transaction that the standby still reads, as hot_standby_feedback does; 0: none.
func (l link) reads(xid uint64) {
	l.p.Helper()
	front := l.conn.PgConn().Frontend()
	feedback := binary.BigEndian.AppendUint64([]byte{'h'}, 0)
	feedback = binary.BigEndian.AppendUint32(feedback, uint32(xid))
	feedback = binary.BigEndian.AppendUint32(feedback, uint32(xid>>32)) // the epoch of xid
	front.Send(&pgproto3.CopyData{Data: append(feedback, make([]byte, 8)...)})
	status := append([]byte{'r'}, make([]byte, 32)...)
	front.Send(&pgproto3.CopyData{Data: append(status, 1)}) // it must answer once it has read this
	if err := front.Flush(); err != nil {
		l.p.Fatal(err)
	}
	for {
		message, err := front.Receive()
		if err != nil {
			l.p.Fatal(err)
		}
		if refused, is := message.(*pgproto3.ErrorResponse); is {
			l.p.Fatal(refused.Message)
		}
		if data, is := message.(*pgproto3.CopyData); is && data.Data[0] == 'k' {
			return
		}
	}
}

// reload changes a setting of the whole server.
func reload(setting string) func(p *patient) {
	return does("alter system set "+setting, "select pg_reload_conf()")
}

// durabilityFindings provoke findings about durability. They come last, because until then the server runs without
// fsync and is quicker.
func durabilityFindings() []trouble {
	const commits = "synchronous_commit is off"
	return []trouble{
		{check: "durability", severity: health.SeverityNote, says: "fsync is off, as the server's configuration means it to be", stays: true, provoke: does()},
		{check: "durability", severity: health.SeverityError, says: "fsync is off", provoke: func(p *patient) {
			p.exec("alter database postgres set sluice.throwaway = off")
			p.store.Pool().Reset()
		}},
		{check: "durability", severity: health.SeverityError, says: "full_page_writes is off", provoke: does()},
		{check: "durability", severity: health.SeverityWarning, says: commits, provoke: does()},
		{check: "durability", severity: health.SeverityWarning, says: commits, provoke: func(p *patient) {
			p.exec("alter database postgres set synchronous_commit = off")
			p.store.Pool().Reset()
		}, relieve: func(p *patient) { p.repairAndReset("durability") }},
		{check: "durability", severity: health.SeverityWarning, says: commits, provoke: func(p *patient) {
			p.exec("alter role postgres set synchronous_commit = off")
			p.store.Pool().Reset()
		}, relieve: func(p *patient) { p.repairAndReset("durability") }},
	}
}

// serverFindings provoke findings about the server's configuration.
func serverFindings() []trouble {
	return []trouble{
		{check: "autovacuum", severity: health.SeverityError, says: "autovacuum is off on this server", provoke: reload("autovacuum = off")},
		{check: "autovacuum", severity: health.SeverityError, says: "track_counts is off", provoke: reload("track_counts = off")},
		{check: "server", severity: health.SeverityError, says: "read-only", provoke: func(p *patient) {
			p.exec("alter database postgres set default_transaction_read_only = on")
			p.store.Pool().Reset()
		}, relieve: func(p *patient) { p.repairAndReset("server") }},
		{
			check: "clock", severity: health.SeverityWarning, says: "off the server's", provoke: func(p *patient) { p.store.JudgeHealth("clock", 1e-12) },
			relieve: func(p *patient) { p.store.JudgeHealth("clock", 2) },
		},
		notifyFinding(),
		{check: "grant", severity: health.SeverityError, says: "the role app may not execute on _forget_audit(text, bigint, bigint), insert on audit, delete on live, insert on live, delete on queue, and", provoke: func(p *patient) {
			p.exec("create role app login", "grant usage on schema sluice to app", "grant select on all tables in schema sluice to app",
				"grant insert, update, delete on all tables in schema sluice to app", "revoke insert on sluice.audit, sluice.live from app",
				"revoke delete on sluice.live from app", "revoke insert, update, delete on sluice.queue from app")
			p.as("app")
		}},
		{check: "grant", severity: health.SeverityWarning, says: "may delete on audit, update on audit", provoke: does("grant update, delete on sluice.audit to app")},
		{check: "sight", severity: health.SeverityNote, says: "may not see what other roles do", provoke: func(*patient) {}},
		{check: "integrity", severity: health.SeverityNote, says: "may not compare", options: health.Options{Thorough: true}, provoke: does()},
		{check: "statements", severity: health.SeverityNote, says: "is not there", options: health.Options{Statements: true}, provoke: does(), stays: true},
		{check: "connections", severity: health.SeverityWarning, says: "of the role app", provoke: func(p *patient) {
			p.exec("alter role app connection limit 5")
			for range 3 {
				p.connect(asRole(p.url, "app"))
			}
		}},
		{check: "statements", severity: health.SeverityNote, says: "is not there", options: health.Options{Statements: true}, stays: true, provoke: func(p *patient) {
			p.as("postgres")
			found, _ := p.finding(trouble{check: "statements", options: health.Options{Statements: true}})
			before, after, restarts := strings.Cut(found.Repair, "; restart the server; ")
			if !restarts || after != "create extension pg_stat_statements" {
				p.Errorf("want a restart before the extension: %q", found.Repair)
			}
			p.exec(before) // the steps below restart the server
		}},
		{check: "connections", severity: health.SeverityWarning, says: "(max_connections)", provoke: func(p *patient) {
			p.store.JudgeHealth("connections", 0.8)
			for range 15 {
				p.connect(p.url)
			}
		}},
		{check: "statements", severity: health.SeverityNote, says: "is not there", options: health.Options{Statements: true}, provoke: does()},
		{check: "statements", severity: health.SeverityNote, says: "calls of", options: health.Options{Statements: true}, stays: true, provoke: func(p *patient) {
			if _, err := p.store.Queues(p.Context(), sluice.QueueFilter{}); err != nil {
				p.Error(err)
			}
		}},
	}
}

// notifyFinding opens a session that listens and stays in a transaction, so the server must keep all notifications.
func notifyFinding() trouble {
	return trouble{check: "notify", severity: health.SeverityWarning, says: "full", provoke: func(p *patient) {
		p.store.JudgeHealth("notify", 1e-9)
		conn := p.connect(p.url)
		for _, statement := range []string{"listen sluice", "begin", "select 1"} {
			if _, err := conn.Exec(p.Context(), statement); err != nil {
				p.Fatal(err)
			}
		}
		for n := range 20 {
			p.exec(fmt.Sprintf("select pg_notify('sluice', repeat('%d', 3000))", n%10))
		}
	}}
}

// repairAndReset does what a finding advises, and opens new connections, because only they see the change.
func (p *patient) repairAndReset(check string) {
	p.Helper()
	for _, f := range p.health(health.Options{}).Findings {
		if f.Check == check && !f.Well {
			p.repair(f.Repair)
		}
	}
	p.store.Pool().Reset()
}

// as opens the store anew with a role.
func (p *patient) as(role string) {
	p.Helper()
	_ = p.store.Close()
	store, err := postgres.Open(p.Context(), asRole(p.url, role)+"&pool_max_conns=2", postgres.Options{})
	if err != nil {
		p.Fatal(err)
	}
	p.store = store
}

func asRole(to, role string) string {
	at, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	at.User = url.User(role)
	return at.String()
}

// TestHealthTellsOfAPooler uses a shared server, because only the option TransactionPooler matters.
func TestHealthTellsOfAPooler(t *testing.T) {
	t.Parallel()
	store, err := postgres.Open(t.Context(), migrated.Copy(t), postgres.Options{TransactionPooler: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	report, err := health.Of(t.Context(), store, health.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if on, known := report.Metric("notifications", ""); on != 0 || !known {
		t.Errorf("notifications are %v, want 0", on)
	}
	noted := false
	for _, f := range report.Findings {
		noted = noted || f.Check == "notify" && f.Severity == health.SeverityNote && strings.HasPrefix(f.What, "off")
	}
	if !noted {
		t.Errorf("no note says that notification is off: %+v", report.Findings)
	}
}

// TestHealthGoesOnWhereATableIsLocked locks a table. The check of this table must time out, and the other checks must
// run.
func TestHealthGoesOnWhereATableIsLocked(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	store.LookFor(50 * time.Millisecond)
	tx, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "lock table sluice.holder in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	report, err := store.Health(t.Context(), health.Options{})
	if err != nil {
		t.Fatal(err)
	}
	unseen, seen := false, false
	for _, f := range report.Findings {
		unseen = unseen || f.Check == "vacuum" && f.Severity == health.SeverityWarning && strings.Contains(f.What, "could not be looked at")
		seen = seen || f.Check == "grant" // this finding comes last
	}
	if !unseen || !seen {
		t.Errorf("want a warning that the tables could not be looked at, and the looks after that: %+v", report.Findings)
	}
}
