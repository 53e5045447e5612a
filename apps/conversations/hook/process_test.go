package hook_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/hook"
	"github.com/sluice-queue/sluice/apps/conversations/logs"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/schema"
)

// asProcess names the variable that makes the test program a hook, a locker of the file, or a taker of spooled events.
const asProcess = "CONVERSATIONS_TEST_PROCESS"

func TestMain(m *testing.M) {
	ctx := context.Background()
	switch os.Getenv(asProcess) {
	case "hook":
		os.Exit(hook.Main(ctx, os.Args[1:], os.Stdin, os.Stdout))
	case "lock":
		exit(lock(ctx, os.Args[1], os.Args[2]))
	case "take in":
		exit(takeIn(ctx, os.Args[1]))
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// lock locks the file until its input ends.
func lock(ctx context.Context, file, how string) error {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	for _, statement := range strings.Split(how, ";") {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func takeIn(ctx context.Context, file string) error {
	db, err := records.Open(ctx, file, schema.New())
	if err != nil {
		return err
	}
	return errors.Join(hook.SpoolOf(file).TakeIn(ctx, db, logs.New(os.Stderr), nil), db.Close())
}

// patience is far longer than a hook takes on a busy machine, and far shorter than a wait for the store.
const patience = 3 * time.Second

// place is a prepared file, and starts processes on it.
type place struct {
	*testing.T
	program, file, caches string
	// as changes a process before its start.
	as func(cmd *exec.Cmd)
	n  int
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{T: t, program: os.Args[0], file: filepath.Join(t.TempDir(), "c.db"), caches: t.TempDir(), as: func(*exec.Cmd) {}}
	p.prepare()
	return p
}

func (p *place) prepare() {
	p.Helper()
	db, err := records.Prepare(p.Context(), p.file, schema.New())
	if err == nil {
		err = errors.Join(stages.Ensure(p.Context(), db.Client, stages.Presets()), db.Close())
	}
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) process(role string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.Context(), p.program, args...)
	cmd.Env = append(os.Environ(), asProcess+"="+role, "XDG_CACHE_HOME="+p.caches, "HOME="+p.caches, "TMPDIR="+p.caches)
	p.as(cmd)
	return cmd
}

// secret is in every event, and no file may contain it.
const secret = "ann.secret@example.com"

// say sends the next event to a hook process, as its caller does, and returns the output.
func (p *place) say() string {
	p.Helper()
	p.n++
	out, err := p.sayNumber(p.n)
	if err != nil {
		p.Error(err)
	}
	return out
}

func (p *place) sayNumber(n int) (string, error) {
	cmd := p.process("hook", "-db", p.file, "-tell", "-fail-exit", "9")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"event":"Stop","conversation_id":%q,"content":"number %d of %s"}`, conversation, n, secret))
	var errors bytes.Buffer
	cmd.Stderr = &errors
	began := time.Now()
	out, err := cmd.Output()
	if took := time.Since(began); took > patience {
		return "", fmt.Errorf("hook %d kept its caller waiting for %s", n, took)
	}
	if err != nil {
		return "", fmt.Errorf("hook %d: %w: %s", n, err, errors.String())
	}
	return string(out), nil
}

func TestHookPrintsNothingForItsCaller(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for n := range 3 { // the first event makes the job, and the others find it
		cmd := p.process("hook", "-db", p.file)
		cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"event":"Stop","conversation_id":%q,"content":"number %d"}`, conversation, n))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("hook %d: %v, printed %q", n, err, out)
		}
	}
}

// locked runs do while another process locks the file.
func (p *place) locked(how string, do func()) {
	p.Helper()
	cmd := p.process("lock", p.file, how)
	in, err := cmd.StdinPipe()
	if err != nil {
		p.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		p.Fatal("the file was not locked: ", err)
	}
	do()
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		p.Error(err)
	}
}

func (p *place) takeIn() {
	p.Helper()
	if out, err := p.process("take in", p.file).CombinedOutput(); err != nil {
		p.Errorf("take in: %v: %s", err, out)
	}
}

// isWhole checks that each event is in the store once, in the order of the callers, and that all share one job.
func (p *place) isWhole() {
	p.Helper()
	db, err := records.Open(p.Context(), p.file, schema.New())
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	messages, err := db.ToValidate(p.Context(), conversation)
	if err != nil || len(messages) != p.n {
		p.Errorf("%d of %d messages are stored, %v", len(messages), p.n, err)
	}
	for i, m := range messages {
		if want := fmt.Sprintf("number %d of [redacted:email]", i+1); m.Content != want {
			p.Errorf("message %d is %q, want %q", i+1, m.Content, want)
		}
	}
	page, err := db.Client.Jobs(p.Context(), sluice.JobFilter{Queue: stages.Validation.Name()})
	if err != nil || len(page.Jobs) != 1 {
		p.Errorf("%d jobs, %v", len(page.Jobs), err)
	}
	if left := p.spooled(); len(left) > 0 {
		p.Errorf("still in the spool: %q", left)
	}
}

// spooled lists the spooled events in all folders, and checks that none contains the secret.
func (p *place) spooled() (files []string) {
	p.Helper()
	for _, pattern := range []string{p.file + ".spool/*.json", p.caches + "/*/*.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			p.Fatal(err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if errors.Is(err, os.ErrNotExist) { // another process has just taken it in
				continue
			}
			if err != nil || bytes.Contains(text, []byte(secret)) {
				p.Errorf("%s: %s, %v", file, text, err)
			}
			files = append(files, file)
		}
	}
	return files
}

func TestHookDoesNotWaitForALockedFile(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{
		"a writer":            "begin immediate",
		"one that is all its": "pragma locking_mode = exclusive;begin exclusive;create table mine (x)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.say()
			before := len(p.spooled()) // on a busy machine the first hook may have run out of time and spooled its event, too
			p.locked(how, func() {
				for range 5 {
					if out := p.say(); !strings.Contains(out, `"spooled":true`) {
						t.Errorf("it said %s", out)
					}
				}
				if n := len(p.spooled()); n != before+5 {
					t.Errorf("%d events wait, and %d did before", n, before)
				}
			})
			waited := p.spooled()
			left := func() bool {
				return slices.ContainsFunc(p.spooled(), func(file string) bool { return slices.Contains(waited, file) })
			}
			for end := time.Now().Add(time.Minute); left() && time.Now().Before(end); {
				p.say() // a hook takes in spooled events until its time is over, the oldest first; on a busy machine these may be few
			}
			if left() {
				t.Errorf("hooks left what waited while the file was locked: %q", p.spooled())
			}
			p.takeIn() // takes in the last events
			p.isWhole()
		})
	}
}

func TestHookDoesNotWaitForAMigration(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	newer := func(statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", p.file)
		if err == nil {
			_, err = db.ExecContext(t.Context(), statement)
			err = errors.Join(err, db.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	newer("insert into sluice_migration (version, name, checksum, works_from, applied_at) values (9999, 'later', 'x', 9999, 0)")
	for range 3 {
		p.say()
	}
	if n := len(p.spooled()); n != 3 {
		t.Errorf("%d events wait", n)
	}
	newer("delete from sluice_migration where version = 9999")
	p.takeIn()
	p.isWhole()
}

func TestHookBeforeTheFileIsPrepared(t *testing.T) {
	t.Parallel()
	p := &place{T: t, program: os.Args[0], file: filepath.Join(t.TempDir(), "c.db"), caches: t.TempDir(), as: func(*exec.Cmd) {}}
	p.say()
	p.say()
	if _, err := os.Stat(p.file); err == nil || len(p.spooled()) != 2 {
		t.Errorf("%q wait, the file: %v", p.spooled(), err)
	}
	p.prepare()
	p.takeIn()
	p.isWhole()
}

func TestManyHooksAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.sayAtOnce(20)
	p.takeIn()
	p.isWholeInAnyOrder()
}

// While the file is locked, 20 hooks at once spool their events, twice. The events are taken in by the order of the
// files' names. Each event of the first wave comes before those of the second.
func TestManyHooksAtOnceDoNotWaitForALockedFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var names []string
	p.locked("begin immediate", func() {
		for wave := 1; wave <= 2; wave++ {
			for _, out := range p.sayAtOnce(20) {
				if !strings.Contains(out, `"spooled":true`) {
					t.Errorf("a hook said %s", out)
				}
			}
			if names = p.spooled(); len(names) != wave*20 {
				t.Fatalf("after wave %d %d events wait", wave, len(names))
			}
		}
	})
	slices.Sort(names)
	var want []string
	for i, name := range names {
		event := p.event(name)
		want = append(want, event.Content)
		var number int
		if _, err := fmt.Sscanf(event.Content, "number %d", &number); err != nil || (number > 20) != (i >= 20) {
			t.Errorf("event %d by name is %q, %v", i, event.Content, err)
		}
	}
	p.takeIn()
	var got []string
	for _, m := range p.isWholeInAnyOrder() {
		got = append(got, m.Content)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the events were taken in as %q, and their files' names say %q", got, want)
	}
}

// sayAtOnce sends the next events to as many hooks, which start together, and returns their outputs.
func (p *place) sayAtOnce(hooks int) []string {
	p.Helper()
	type said struct {
		out string
		err error
	}
	all := make(chan said, hooks)
	for range hooks {
		p.n++
		n := p.n
		go func() {
			out, err := p.sayNumber(n)
			all <- said{out, err}
		}()
	}
	var outs []string
	for range hooks {
		s := <-all
		if s.err != nil {
			p.Error(s.err)
		}
		outs = append(outs, s.out)
	}
	return outs
}

// isWholeInAnyOrder checks that each event is in the store once, and returns the messages in the order of the store.
func (p *place) isWholeInAnyOrder() []records.Message {
	p.Helper()
	db, err := records.Open(p.Context(), p.file, schema.New())
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	messages, err := db.ToValidate(p.Context(), conversation)
	seen := make(map[string]bool)
	for _, m := range messages {
		seen[m.Content] = true
	}
	if err != nil || len(messages) != p.n || len(seen) != p.n {
		p.Errorf("%d messages of %d, %d different ones, %v", len(messages), p.n, len(seen), err)
	}
	return messages
}

// event reads a spooled event.
func (p *place) event(file string) (event struct{ Content string }) {
	p.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &event)
	}
	if err != nil {
		p.Fatal(err)
	}
	return event
}

// TestTakersThatAreKilledLoseNothing kills processes that take in spooled events, until no event is left.
func TestTakersThatAreKilledLoseNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.locked("begin immediate", func() {
		for range 20 {
			p.say()
		}
	})
	kills := 0
	for ; len(p.spooled()) > 0; kills++ {
		cmd := p.process("take in", p.file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		before := len(p.spooled())
		for end := time.Now().Add(patience); len(p.spooled()) == before && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Logf("%d takers were killed", kills)
	p.isWhole()
}
