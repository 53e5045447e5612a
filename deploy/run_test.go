package deploy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/pgtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if root, _ := built(); root != "" {
		_ = os.RemoveAll(root)
	}
	os.Exit(code)
}

// asUser makes a command run as the user of the image. With a root, it runs in that folder and sees nothing else, as in
// a container. A user other than root does this in a new user namespace.
func asUser(cmd *exec.Cmd, root string) {
	const user = 65532
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user, NoSetGroups: os.Geteuid() != 0}}
	if root != "" {
		cmd.Dir = "/"
	}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getgid(), Size: 1}}
	}
}

// start prepares a command of the image's program, as a container runtime would.
func (i image) start(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	line := append(append([]string{}, i.entrypoint...), args...)
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Env = env
	asUser(cmd, i.root)
	return cmd
}

// world is a PostgreSQL server with two roles that have passwords, owner and application, made as the documents say.
type world struct{ owner, app *url.URL }

const password = "p/w d"

func newWorld(t *testing.T) world {
	t.Helper()
	rules, err := os.CreateTemp("", "sluice-hba-") // the user that runs PostgreSQL must be able to read it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(rules.Name()) })
	_, err = io.WriteString(rules, "host all postgres all trust\nhost all all all scram-sha-256\n")
	if err := errors.Join(err, rules.Chmod(0o644), rules.Close()); err != nil {
		t.Fatal(err)
	}
	cluster, err := pgtest.Start(pgtest.Options{Settings: []string{"hba_file = '" + rules.Name() + "'"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	psql(t, cluster.URL, "create database jobs")
	as := func(role string) *url.URL {
		at, err := url.Parse(cluster.URL)
		if err != nil {
			t.Fatal(err)
		}
		at.Path = "/jobs"
		at.User = url.UserPassword(role, password)
		if role == "postgres" {
			at.User = url.User(role)
		}
		return at
	}
	psql(t, as("postgres").String(), strings.ReplaceAll(documented(t, "create role sluice_owner"), "'…'", "'"+password+"'"))
	return world{as("sluice_owner"), as("sluice_app")}
}

// documented returns the SQL in docs/operate.md that begins with a text.
func documented(t *testing.T, begins string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repository, "docs/operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllSubmatch(page, -1) {
		if text := regexp.MustCompile(`(?m)^ +`).ReplaceAllString(string(block[1]), ""); strings.HasPrefix(text, begins) {
			return text
		}
	}
	t.Fatalf("docs/operate.md has no SQL that begins with %q", begins)
	return ""
}

func psql(t *testing.T, at, statements string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", statements, at).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", statements, err, out)
	}
}

func succeeds(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

// server is a running command that serves.
type server struct {
	*exec.Cmd
	stderr *bufio.Reader
}

// serves starts a command that serves, on free ports of loopback, because the ports in its command line may be taken.
func serves(t *testing.T, cmd *exec.Cmd) *server {
	t.Helper()
	cmd.Args = append(cmd.Args, "--listen=127.0.0.1:0", "--monitor=127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &server{cmd, bufio.NewReader(stderr)}
}

// address reads the address from the log.
func (s *server) address(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for {
		line, err := s.stderr.ReadString('\n')
		all.WriteString(line)
		if found := regexp.MustCompile(`server answers.*?(127\.0\.0\.1:\d+)`).FindStringSubmatch(line); found != nil {
			return "http://" + found[1]
		}
		if err != nil {
			t.Fatalf("%v never said where it answers:\n%s", s.Args, all.String())
		}
	}
}

// answers asks a URL until the status is 200.
func answers(t *testing.T, at string) {
	t.Helper()
	said := ""
	for until := time.Now().Add(10 * time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode == http.StatusOK {
			return
		}
		said = string(text)
	}
	t.Fatalf("%s says\n%s", at, said)
}

// ends terminates the command, which must exit without an error.
func (s *server) ends(t *testing.T) {
	t.Helper()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(s.stderr)
	if err := errors.Join(err, s.Wait()); err != nil {
		t.Errorf("%v: %v\n%s", s.Args, err, said)
	}
}

// TestWhatIsShippedRuns walks through an installation. It makes the roles of the documents and runs the job that
// migrates. Then two servers of the manifest and the service of the unit run on one store.
func TestWhatIsShippedRuns(t *testing.T) {
	t.Parallel()
	shipped, all, w := theImage(t), readManifests(t), newWorld(t)
	// A secret made from a file ends with a line end.
	environment := func(env []string) []string {
		for i, pair := range env {
			env[i] = strings.NewReplacer("$owner", w.owner.String()+"\n", "$app", w.app.String()+"\n").Replace(pair)
		}
		return env
	}
	migrate := all.migrate.Spec.Template.Spec.Containers[0]
	succeeds(t, shipped.start(t, environment(variables(t, migrate.Env)), migrate.Args...))
	psql(t, w.owner.String(), documented(t, "grant usage on schema sluice to sluice_app"))

	pod := all.server.Spec.Template.Spec.Containers[0]
	env := environment(variables(t, pod.Env))
	var servers []*server
	for range *all.server.Spec.Replicas {
		s := serves(t, shipped.start(t, env, pod.Args...))
		own, monitor := s.address(t), s.address(t)
		answers(t, monitor+pod.LivenessProbe.HTTPGet.Path)
		answers(t, monitor+pod.ReadinessProbe.HTTPGet.Path)
		succeeds(t, shipped.start(t, nil, append(shipped.check[1:], "--url", own)...))
		servers = append(servers, s)
	}
	service, program := readUnit(t), filepath.Join(shipped.root, "sluice")
	cmd := exec.CommandContext(t.Context(), program, service.command(t)[1:]...)
	cmd.Env = service.environment(t, w.app)
	asUser(cmd, "")
	unit := serves(t, cmd)
	answers(t, unit.address(t)+"/readyz")

	// The application's role can do all work, and no more.
	succeeds(t, shipped.start(t, env, "enqueue", "mail", "{}"))
	succeeds(t, shipped.start(t, env, "settings", "schedule", "mail", "rate=10/s", "--from", "16:00", "--to", "18:00", "--tz", "Europe/Berlin"))
	if out, err := exec.CommandContext(t.Context(), "psql", "-X", "-c", "drop table sluice.live", w.app.String()).CombinedOutput(); err == nil {
		t.Errorf("the application's role may drop a table: %s", out)
	}
	holders := succeeds(t, shipped.start(t, env, "holders", "-o", "ids"))
	if found := strings.Count(holders, "\n"); found != len(servers)+1 {
		t.Errorf("%d servers are there:\n%s", found, holders)
	}
	for _, s := range append(servers, unit) {
		s.ends(t)
	}
	works(t, shipped, w)
}

// works runs the example of workers with another program, until the waiting job is done.
func works(t *testing.T, shipped image, w world) {
	t.Helper()
	c := exampleWorker(t).Spec.Template.Spec.Containers[0]
	args := c.Args[:slices.Index(c.Args, "--")]
	for i, arg := range args {
		if strings.HasPrefix(arg, "--metrics=") { // the port may be taken
			args[i] = "--metrics=127.0.0.1:0"
		}
	}
	env := variables(t, c.Env)
	for i, pair := range env {
		env[i] = strings.ReplaceAll(pair, "$app", w.app.String())
	}
	if c.Command[0] != "/sluice" {
		t.Errorf("the example runs %q", c.Command)
	}
	succeeds(t, shipped.start(t, env, append(args, "--until-empty", "--", "/sluice", "version")...))
	if jobs := succeeds(t, shipped.start(t, env, "jobs", "--queue", "mail", "--state", "completed", "-o", "ids")); strings.Count(jobs, "\n") != 1 {
		t.Errorf("completed are %q", jobs)
	}
}

// TestImageDoesWhatItsCommandSays starts the image as Docker would, without the address of a store.
func TestImageRefusesToStartWithoutAStore(t *testing.T) {
	t.Parallel()
	shipped := theImage(t)
	out, err := shipped.start(t, nil, shipped.command...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "no store is named") {
		t.Errorf("it says %s, %v", out, fmt.Sprint(err))
	}
}
