//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// served is a running `sluice serve`.
type served struct {
	*process
	url string // the address of --listen
}

// serve starts a server on a free port of loopback, and waits until it answers.
func serve(t *testing.T, db string, args ...string) *served {
	t.Helper()
	s := &served{process: start(t, db, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)}
	s.url = "http://" + s.answersAt(t)
	return s
}

// answersAt reads the address from the log line in which the process says that it answers.
func (p *process) answersAt(t *testing.T) string {
	t.Helper()
	return p.finds(t, `msg="server answers" address=(\S+)`)
}

// finds reads the log of the process until a pattern matches a line, and returns the last group of the match.
func (p *process) finds(t *testing.T, pattern string) string {
	t.Helper()
	var all strings.Builder
	for {
		line, err := p.stderr.ReadString('\n')
		all.WriteString(line)
		if found := regexp.MustCompile(pattern).FindStringSubmatch(line); found != nil {
			return found[len(found)-1]
		}
		if err != nil {
			t.Fatalf("it never said %q:\n%s", pattern, all.String())
		}
	}
}

// ask returns the status and the body of a URL.
func ask(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// becomes asks /readyz until it answers with a status and a text, and returns the answer.
func (s *served) becomes(t *testing.T, status int, because string) string {
	t.Helper()
	return s.answers(t, "/readyz", status, because)
}

// answers waits until a path has a status, and a text in its body. It returns the body.
func (s *served) answers(t *testing.T, path string, status int, because string) string {
	t.Helper()
	var got int
	var text string
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if got, text = ask(t, s.url+path); got == status && strings.Contains(text, because) {
			return text
		}
	}
	_ = s.Process.Kill()
	said, _ := io.ReadAll(s.stderr)
	t.Fatalf("%s never became %d with %q: %d\n%s\nIt said:\n%s", path, status, because, got, text, said)
	return ""
}

func (s *served) terminate(t *testing.T) {
	t.Helper()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, db string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sluice", args...)
	cmd.Env = append(os.Environ(), "SLUICE_DB="+db)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestServeTendsTheStoreAndTellsHowItDoes(t *testing.T) {
	t.Parallel()
	if err := cluster.start(); err != nil {
		t.Fatal(err)
	}
	for kind, db := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "jobs.db"), "postgres": pgtest.NewDatabase(t)} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			run(t, db, "migrate")
			s := serve(t, db)
			text := s.becomes(t, 200, "upkeep")
			for _, want := range []string{"ready\n", "✔ store      it answers in ", "✔ schema     it is up to date", "✔ upkeep     it leads"} {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q:\n%s", want, text)
				}
			}
			if status, text := ask(t, s.url+"/healthz"); status != 200 || text != "live\n" {
				t.Errorf("it lives: %d %s", status, text)
			}
			if status, text := ask(t, s.url+"/metrics"); status != 200 || !strings.Contains(text, `sluice_store_call_seconds_count{call="heartbeat"}`) {
				t.Errorf("it measures nothing: %d %s", status, text)
			}
			var report api.Report
			if err := json.Unmarshal([]byte(run(t, db, "probe", "--url", s.url, "-o", "json")), &report); err != nil || !report.Ready || len(report.Checks) != 4 {
				t.Errorf("the probe says %+v, %v", report, err)
			}
			if holders := run(t, db, "holders"); !strings.Contains(holders, " upkeep ") {
				t.Errorf("nobody tends the store:\n%s", holders)
			}
			s.terminate(t)
			rest := s.ends(t, 0)
			draining, drained := strings.Index(rest, "server draining"), strings.Index(rest, "server stopped")
			if draining < 0 || drained < draining {
				t.Errorf("it says:\n%s", rest)
			}
			if holders := run(t, db, "holders", "-o", "ids"); holders != "" {
				t.Errorf("it is still there: %s", holders)
			}
		})
	}
}

// mute is a server that accepts requests and never answers, like an engine that hangs.
func mute(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
	}()
	return listener.Addr().String()
}

// TestServeDrainsBeforeItStopsAnswering has a dispatcher that holds a job whose engine hangs. /readyz reports the
// engine, and stays ready. The signal makes the server unready at once, but it answers until the grace is over.
func TestServeDrainsBeforeItStopsAnswering(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	run(t, db, "settings", "set", "payment", "engine=temporal", "run_type=Pay", "run_task_queue=pay")
	s := serve(t, db, "--temporal", mute(t), "--grace", "20s")
	text := s.becomes(t, 200, "! engine")
	for _, want := range []string{"✔ dispatch   it runs", "✔ breaker", "✔ upkeep"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	strict := serve(t, db, "--temporal", mute(t), "--ready-needs-engine", "--no-upkeep", "--no-dispatch")
	if text := strict.becomes(t, 503, "✖ engine"); strings.Contains(text, "✔ upkeep") || strings.Contains(text, "✔ dispatch") {
		t.Errorf("it does more than it was asked for:\n%s", text)
	}
	strict.terminate(t)
	strict.ends(t, 0)
	run(t, db, "enqueue", "payment", "{}")
	eventually(t, func() bool { return strings.Contains(run(t, db, "jobs", "-o", "jsonl"), `"state":"claimed"`) })
	s.terminate(t)
	s.becomes(t, 503, "it is draining")
	if status, _ := ask(t, s.url+"/healthz"); status != 200 {
		t.Errorf("while it drains it answers %d", status)
	}
	if rest := s.ends(t, 0); !strings.Contains(rest, "server stopped") {
		t.Errorf("it says:\n%s", rest)
	}
}

// ownCluster is a PostgreSQL server that a test can stop as in a crash, without data loss. One of its users needs a
// password.
func ownCluster(t *testing.T) *pgtest.Cluster {
	t.Helper()
	file, err := os.CreateTemp("", "sluice-hba-") // the user that runs PostgreSQL must be able to read it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file.Name()) })
	if _, err := io.WriteString(file, "host all ada all scram-sha-256\nhost all all all trust\n"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Chmod(0o644), file.Close()); err != nil {
		t.Fatal(err)
	}
	own, err := pgtest.Start(pgtest.Options{Durable: true, Settings: []string{"hba_file = '" + file.Name() + "'"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Stop)
	return own
}

func TestServeWaitsForAStoreThatIsAwayAndEndsAtOneThatRefuses(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	for name, c := range map[string]struct {
		db, says string
		code     int
	}{
		"password": {strings.Replace(own.URL, "postgres@", "ada:wrong@", 1), "check the user, the password and the database", 5},
		"database": {strings.Replace(own.URL, "/postgres?", "/nothing?", 1), "check the user, the password and the database", 5},
		"tables":   {own.URL, "run `sluice migrate`", 5},
		"address":  {"postgres://%zz", "write --db", 2},
		"file":     {"sqlite:" + filepath.Join(t.TempDir(), "none.db"), "make it with `sluice migrate", 5},
	} {
		p := start(t, c.db, "serve", "--listen", "127.0.0.1:0")
		if rest := p.ends(t, c.code); !strings.Contains(rest, c.says) || strings.Contains(rest, "wrong@") {
			t.Errorf("%s: it says\n%s", name, rest)
		}
	}
	run(t, own.URL, "migrate")
	if err := own.Halt(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, own.URL, "--timeout", "5s")
	s.becomes(t, 503, "✖ store      it is not there yet, and is waited for: ")
	if status, _ := ask(t, s.url+"/healthz"); status != 200 {
		t.Errorf("it does not live while it waits: %d", status)
	}
	for _, step := range []struct {
		change       func() error
		status       int
		says, health string
	}{
		{own.Resume, 200, "✔ upkeep", `"kind":"postgres"`},
		{own.Halt, 503, "✖ store      the store does not answer: ", `"code":"store_unavailable"`},
		{own.Resume, 200, "✔ store", `"name":"connections"`},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		s.becomes(t, step.status, step.says)
		if status, text := ask(t, s.url+"/api/v1/health"); status != step.status || !strings.Contains(text, step.health) {
			t.Errorf("the health is %d %s, want %d with %s", status, text, step.status, step.health)
		}
		for _, figure := range []string{`sluice_gauges_age_seconds{source="queues"}`, `sluice_store_call_seconds_count{call="heartbeat"}`, "sluice_postgres_connections "} {
			s.answers(t, "/api/v1/metrics", 200, figure) // while the store is away, it has the figures of before, and their age
		}
	}
	s.terminate(t)
	s.ends(t, 0)
}

func TestServeThatWaitsEndsWhenItIsTold(t *testing.T) {
	t.Parallel()
	s := serve(t, "postgres://ada:hunter2@127.0.0.1:1/jobs")
	s.becomes(t, 503, "it is being opened")
	s.terminate(t)
	if rest := s.ends(t, 0); strings.Contains(rest, "hunter2") {
		t.Errorf("it shows the password:\n%s", rest)
	}
}

func TestServeSaysWhoCanReadWhat(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	run(t, db, "tokens", "create", "ci", "--role", "viewer")
	s := start(t, db, "serve", "--listen", "0.0.0.0:0", "--behind-proxy", "--monitor", "0.0.0.0:0", "--base", "/sluice")
	listen := s.finds(t, `address=\S*?:(\d+)/sluice answers="/healthz, /readyz, /api/v1" login=tokens`)
	s.says(t, `level=WARN msg="server open to others" address=[::]:`+listen+`/sluice readable="how this process and its store do"`)
	monitor := s.finds(t, `address=\S*?:(\d+) answers="/healthz, /readyz, /metrics"`)
	s.says(t, `level=WARN msg="server open to others" address=[::]:`+monitor+` readable="how this process and its store do, what it did, and the names of queues and tenants"`)
	s.says(t, "server started")
	for url, want := range map[string]int{
		listen + "/sluice/healthz": 200, listen + "/sluice/metrics": 404, listen + "/healthz": 404, listen + "/sluice/api/v1/jobs": 401, monitor + "/api/v1/jobs": 404, monitor + "/healthz": 200, monitor + "/metrics": 200, monitor + "/sluice/healthz": 404,
	} {
		if status, text := ask(t, "http://127.0.0.1:"+url); status != want {
			t.Errorf("%s: got %d %s, want %d", url, status, text, want)
		}
	}
	s.interrupt(t)
	s.ends(t, 0)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for flags, want := range map[string]struct {
		code int
		says string
	}{
		"--listen " + taken.Addr().String():   {2, "with --listen"},
		"--listen nothing":                    {2, "with --listen"},
		"--listen 0 --monitor 192.0.2.1:7401": {2, "with --monitor"}, // no machine has this address
		"--listen 0 --base ../x":              {2, "--base"},
		"--grace 0s":                          {2, "--grace"},
	} {
		p := start(t, db, append([]string{"serve"}, strings.Fields(flags)...)...)
		if rest := p.ends(t, want.code); !strings.Contains(rest, want.says) {
			t.Errorf("%s: it says\n%s", flags, rest)
		}
	}
}

// TestServeTellsSystemd listens to the notifications as systemd would.
func TestServeTellsSystemd(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "sluice") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "s"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	told := func(want string) {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		message := make([]byte, 4096)
		for {
			n, err := socket.Read(message)
			if err != nil {
				t.Fatalf("it never says %q: %v", want, err)
			}
			if strings.Contains(string(message[:n]), want) {
				return
			}
		}
	}
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	cmd := exec.CommandContext(t.Context(), "sluice", "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "SLUICE_DB="+db, "NOTIFY_SOCKET="+socket.LocalAddr().String(), "WATCHDOG_USEC=400000")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &process{cmd, bufio.NewReader(stderr)}
	told("READY=1")
	told("STATUS=runs upkeep, health, metrics")
	told("WATCHDOG=1")
	told("WATCHDOG=1")
	s.interrupt(t)
	told("STOPPING=1\nSTATUS=drains")
	s.ends(t, 0)
}

func TestAddressOfNoAPISaysWhatToCheck(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	text, code := answerOf(t, serve(t, db).url+"/elsewhere", "queues")
	if want := "do:  check --db (or SLUICE_DB): it is the address of `sluice serve --listen`, with its --base if it has one"; code != 5 || !strings.Contains(text, want) {
		t.Errorf("%d %s, want 5 and %q", code, text, want)
	}
}

func TestProbeOfWhatIsNoServer(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(other) }()
	defer func() { _ = server.Shutdown(context.WithoutCancel(t.Context())) }()
	for flags, want := range map[string]struct {
		code int
		says string
	}{
		"live --url http://" + other.Addr().String(): {1, "404 Not Found"},
		"--url http://127.0.0.1:1":                   {5, "the server does not answer"},
		"--url ://":                                  {2, "--url"},
		"alive":                                      {2, `"alive" is neither live nor ready`},
	} {
		p := start(t, "", append([]string{"probe"}, strings.Fields(flags)...)...)
		if rest := p.ends(t, want.code); !strings.Contains(rest, want.says) {
			t.Errorf("%s: it says\n%s", flags, fmt.Sprint(rest))
		}
	}
}

// TestServeDispatchesToTemporal starts a run on a real server that has no worker for it, and then terminates the run.
func TestServeDispatchesToTemporal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log("needs a Temporal server: only without -short")
		return
	}
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	queue := fmt.Sprintf("serve-%d", time.Now().UnixNano())
	run(t, db, "settings", "set", queue, "engine=temporal", "run_type=Pay", "run_task_queue="+queue)
	s := serve(t, db, "--temporal", temporaltest.Address(t))
	s.becomes(t, 200, "✔ engine     can be reached: temporal")
	run(t, db, "enqueue", queue, "{}")
	is := func(state string) func() bool {
		return func() bool { return strings.Contains(run(t, db, "jobs", "-o", "jsonl"), `"state":"`+state+`"`) }
	}
	eventually(t, is("dispatched"))
	eventually(t, func() bool {
		_, text := ask(t, s.url+"/metrics")
		return strings.Contains(text, `sluice_moves_total{event="dispatch",queue="`+queue+`"`)
	})
	run(t, db, "cancel", strings.Fields(run(t, db, "jobs", "-o", "ids"))[0])
	eventually(t, is("cancelled"))
	s.terminate(t)
	s.ends(t, 0)
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("it never became so")
		}
	}
}
