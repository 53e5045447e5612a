package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// patient is a store that a test damages and repairs.
type patient struct {
	*testing.T
	path  string
	store *sqlite.Store
	path3 string // the folder of the command sqlite3
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{T: t, path: filepath.Join(t.TempDir(), "it's $HOME.db"), path3: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(p.path3, "sqlite3")); err != nil {
		t.Fatal(err)
	}
	p.store = openStore(t, p.path)
	return p
}

// sqlite3 replaces the command of this name, as far as findings use it. It runs statements on a file. With `hold`, it
// leaves a transaction open until its input ends.
func sqlite3(args []string) int {
	timeout := "0"
	if args[0] == "-cmd" {
		timeout, args = strings.TrimPrefix(args[1], ".timeout "), args[2:]
	}
	db, err := sql.Open("sqlite", "file:"+strings.ReplaceAll(args[0], "?", "%3f")+"?_pragma=busy_timeout("+timeout+")")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	db.SetMaxOpenConns(1)
	for _, statement := range args[1:] {
		if statement == "hold" {
			fmt.Println("held")
			_, _ = io.Copy(io.Discard, os.Stdin)
			return 0
		}
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			fmt.Fprintln(os.Stderr, statement, err)
			return 1
		}
	}
	return 0
}

// trouble is a fault, with the finding that it causes. The command that the finding names must end it.
type trouble struct {
	check    string
	severity health.Severity
	says     string
	thorough bool
	provoke  func(p *patient)
	// relieve does what a person does besides the command; nil: nothing.
	relieve func(p *patient)
}

func TestHealthFindsWhatIsWrongAndSaysWhatMendsIt(t *testing.T) {
	t.Parallel()
	provoked := make(map[string]bool)
	for _, one := range append(findings(), systemFindings()...) {
		provoked[one.check] = true
		t.Run(one.check+"/"+strings.ReplaceAll(one.says, " ", "_"), func(t *testing.T) {
			t.Parallel()
			newPatient(t).suffer(one)
		})
	}
	for _, check := range health.Checks() {
		if len(systemFindings()) > 0 && check.Kind == "sqlite" && !provoked[check.Name] && (check.Figure != "" || check.Otherwise != "") {
			t.Errorf("nothing provokes the check %q", check.Name)
		}
	}
}

// suffer causes a trouble, and does what the finding advises until the finding is gone.
func (p *patient) suffer(one trouble) {
	if health := p.health(one.thorough); health.Ill() || health.Kind != "sqlite" {
		p.Fatalf("a new store is not well: %+v", health.Findings)
	}
	one.provoke(p)
	found, is := p.finding(one)
	if !is {
		p.Fatalf("not found: %+v", p.health(one.thorough).Findings)
	}
	if found.Severity != one.severity || found.Well != (one.severity == health.SeverityNote) || found.Why == "" || found.Repair == "" {
		p.Errorf("found %+v, want the severity %s, a reason, and what mends it", found, one.severity)
	}
	if one.relieve != nil {
		one.relieve(p)
	}
	for found, is := p.finding(one); is; found, is = p.finding(one) {
		p.repair(found.Repair)
		if again, is := p.finding(one); is && again.Repair == found.Repair {
			p.Fatalf("`%s` does not mend it: %+v", found.Repair, again)
		}
	}
	if health := p.health(one.thorough); health.Ill() {
		p.Errorf("after it was mended it is not well: %+v", health.Findings)
	}
}

func (p *patient) health(thorough bool) health.Report {
	p.Helper()
	health, err := health.Of(p.Context(), p.store, health.Options{Thorough: thorough})
	if err != nil {
		p.Fatal(err)
	}
	return health
}

func (p *patient) finding(one trouble) (health.Finding, bool) {
	p.Helper()
	for _, f := range p.health(one.thorough).Findings {
		if f.Check == one.check && f.Severity != "" && strings.Contains(f.What, one.says) {
			return f, true
		}
	}
	return health.Finding{}, false
}

// repair runs the commands of a finding, which are separated by semicolons. Text before a command is skipped.
func (p *patient) repair(mend string) {
	p.Helper()
	if strings.HasPrefix(mend, "sqlite3 ") { // one command, whose statements may have semicolons
		p.shell(mend)
		return
	}
	for command := range strings.SplitSeq(mend, "; ") {
		if _, after, found := strings.Cut(command, ": "); found {
			command = after
		}
		word, _, _ := strings.Cut(command, " ")
		if word == "sqlite3" || word == "kill" || word == "chmod" {
			p.shell(command)
		}
	}
}

// shell runs a command as a person does who has the command sqlite3.
func (p *patient) shell(command string) {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+p.path3+":"+os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		p.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// sql runs statements in another process.
func (p *patient) sql(statements ...string) {
	p.Helper()
	command := "sqlite3 " + sqlite.Quoted(p.path)
	for _, statement := range statements {
		command += " " + sqlite.Quoted(statement)
	}
	p.shell(command)
}

// hold runs statements in another process, which then stays open.
func (p *patient) hold(statements ...string) {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), filepath.Join(p.path3, "sqlite3"), append(append([]string{p.path}, statements...), "hold")...)
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if inErr != nil || outErr != nil {
		p.Fatal(inErr, outErr)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	ended := make(chan struct{})
	p.Cleanup(func() {
		_ = in.Close()
		<-ended
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		p.Fatal(line, err)
	}
	go func() {
		defer close(ended)
		_ = cmd.Wait() // Wait, so that a killed process leaves no zombie
	}()
}

// fill stores some megabytes and deletes them again.
func (p *patient) fill(megabytes int) {
	p.Helper()
	err := p.store.Transact(p.Context(), func(tx sqlite.Tx) error {
		for _, text := range []string{
			"create table filler as with recursive n(i) as (select 1 union all select i + 1 from n where i < ?) select i, randomblob(1000000) as b from n",
			"delete from filler where i <= ?",
		} {
			if _, err := tx.ExecContext(p.Context(), text, megabytes); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		p.Fatal(err)
	}
}

func (p *patient) follow() {
	p.Helper()
	p.sql("create table if not exists rows (id text, state text)")
	err := p.store.Follow(p.Context(), sluice.Follower{Name: "rows", Queue: "mail", Statement: "update rows set state = moved.state where id = moved.id"})
	if err != nil {
		p.Fatal(err)
	}
}

// findings provoke findings that no special system is needed for.
func findings() []trouble {
	return []trouble{
		{check: "index", severity: health.SeverityError, says: "is missing", provoke: func(p *patient) {
			p.sql("drop index sluice_live_claim", "drop index sluice_live_open", "drop trigger sluice_live_end", "drop view sluice_jobs")
		}},
		{check: "moved", severity: health.SeverityError, says: "a move to sqlite:/jobs.db began on 2026-11-28 12:00:00 UTC", provoke: func(p *patient) {
			p.sql("create table sluice_moved (one integer, mark text)", `insert into sluice_moved values (1, '{"To": "sqlite:/jobs.db", "At": "2026-11-28T12:00:00Z"}')`)
		}, relieve: func(p *patient) { p.sql("drop table sluice_moved") }},
		{check: "foreign", severity: health.SeverityError, says: "the trigger swallow on sluice_audit", provoke: func(p *patient) {
			p.sql("create trigger swallow before insert on sluice_audit begin select raise(ignore); end")
		}},
		{check: "foreign", severity: health.SeverityError, says: "the trigger sluice_audit_stays on sluice_audit", provoke: func(p *patient) {
			p.sql("drop trigger sluice_audit_stays", "create trigger sluice_audit_stays before update on sluice_audit when false begin select 1; end")
		}},
		{check: "follower", severity: health.SeverityError, says: "is not run with each move", provoke: func(p *patient) {
			p.follow()
			p.sql("drop trigger sluice_follow_rows_ended")
		}, relieve: (*patient).follow},
		{check: "follower", severity: health.SeverityError, says: "no such table: rows", provoke: func(p *patient) {
			p.follow()
			p.sql("drop table rows")
		}},
		{check: "schema", severity: health.SeverityNote, says: "this program knows", provoke: func(p *patient) {
			p.sql("insert into sluice_migration values (99, 'later', 'x', 1, 0)")
		}, relieve: func(p *patient) { p.sql("delete from sluice_migration where version = 99") }},
		{check: "durability", severity: health.SeverityWarning, says: "before they are on the disk", provoke: func(p *patient) {
			p.open(sqlite.Options{Relaxed: true})
		}, relieve: func(p *patient) { p.open(sqlite.Options{}) }},
		{check: "pages", severity: health.SeverityNote, says: "are free", provoke: func(p *patient) {
			p.store.JudgeHealth("pages", health.SeverityNote, 1<<20)
			p.fill(2)
		}},
		{check: "busy", severity: health.SeverityWarning, says: "of its time", provoke: func(p *patient) {
			p.store.JudgeHealth("busy", health.SeverityWarning, 5e-4)
			p.waitForLock()
			p.store.LetPass(time.Minute)
		}, relieve: func(p *patient) { p.store.LetPass(time.Hour) }}, // on a busy machine, the check itself waits a little, too
		{check: "orphan", severity: health.SeverityError, says: "1 rows of sluice_live have no job", thorough: true, provoke: func(p *patient) {
			p.sql("insert into sluice_live (seq, queue, priority, due_at) values (99, 'q', 5, 1)")
		}},
		{check: "orphan", severity: health.SeverityError, says: "1 rows of sluice_done have no job", thorough: true, provoke: func(p *patient) {
			p.sql("insert into sluice_done (seq, generation, queue, outcome, due_at, finished_at, attempts, releases, recoveries) values (99, 1, 'q', 'dead', 1, 1, 0, 0, 0)")
		}},
		{check: "orphan", severity: health.SeverityError, says: "1 rows of sluice_live have ended", thorough: true, provoke: func(p *patient) {
			p.sql("insert into sluice_job (seq, id, queue, priority, payload, created_at) values (98, x'01', 'q', 5, x'31', 1)")
			p.sql("insert into sluice_live (seq, queue, priority, due_at) values (98, 'q', 5, 1)")
			p.sql("insert into sluice_done (seq, generation, queue, outcome, due_at, finished_at, attempts, releases, recoveries) values (98, 1, 'q', 'dead', 1, 1, 0, 0, 0)")
		}},
		{check: "integrity", severity: health.SeverityError, says: "missing from index sluice_audit_act", thorough: true, provoke: func(p *patient) {
			// Another process changes the index's condition for a moment, so that the index misses a row.
			const says = "pragma writable_schema = on; update sqlite_master set sql = replace(sql, '%s', '%s') where name = 'sluice_audit_act'"
			p.sql(fmt.Sprintf(says, "act_id is not null", "act_id = 0"))
			p.sql("insert into sluice_audit (at, actor, object, event, act_id) values (1, 'ada', 'queue', 'set', x'01')")
			p.sql(fmt.Sprintf(says, "act_id = 0", "act_id is not null"))
		}},
		{check: "integrity", severity: health.SeverityError, says: "the file is damaged", thorough: true, provoke: func(p *patient) {
			page := 0
			if err := p.store.DB().QueryRowContext(p.Context(), "select rootpage from sqlite_master where name = 'sluice_audit'").Scan(&page); err != nil {
				p.Fatal(err)
			}
			p.sql("pragma wal_checkpoint(truncate)")
			p.shell("cp " + sqlite.Quoted(p.path) + " " + sqlite.Quoted(p.path+".backup"))
			p.shell(fmt.Sprintf("dd if=/dev/urandom of=%s bs=4096 seek=%d count=1 conv=notrunc 2>&1", sqlite.Quoted(p.path), page-1))
			p.open(sqlite.Options{})
		}, relieve: func(p *patient) { // restores the backup
			_ = p.store.Close()
			p.shell("cp " + sqlite.Quoted(p.path+".backup") + " " + sqlite.Quoted(p.path))
			p.open(sqlite.Options{})
		}},
	}
}

// waitForLock makes the store wait for the lock of another connection once.
func (p *patient) waitForLock() {
	p.Helper()
	before := figure(p, "busy_waits_total")
	tx, err := p.store.DB().BeginTx(p.Context(), nil) // begin immediate takes the write lock
	if err != nil {
		p.Fatal(err)
	}
	holder := presence.Holder{ID: "h:1:a", Role: presence.RoleWorker}
	for figure(p, "busy_waits_total") == before { // until a write has waited for as long as SQLite waits at a time
		ctx, cancel := context.WithTimeout(p.Context(), 20*time.Millisecond)
		if _, err := presence.Given(p.store).Heartbeat(ctx, holder); err == nil {
			p.Fatal("it has written beside another")
		}
		cancel()
	}
	if err := tx.Rollback(); err != nil {
		p.Fatal(err)
	}
	if _, err := presence.Given(p.store).Heartbeat(p.Context(), holder); err != nil {
		p.Fatal(err)
	}
	if figure(p, "busy_wait_seconds_total") <= 0 {
		p.Error("the wait took no time")
	}
}

// figure reads a metric that the store keeps in memory.
func figure(p *patient, name string) float64 {
	for _, f := range health.MetricsOf(p.store) {
		if f.Name == name {
			return f.Value
		}
	}
	p.Errorf("there is no figure %s", name)
	return math.NaN()
}

// open opens the file anew.
func (p *patient) open(options sqlite.Options) {
	p.Helper()
	_ = p.store.Close()
	store, err := sqlite.Open(p.Context(), p.path, options)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = store.Close() })
	p.store = store
}
