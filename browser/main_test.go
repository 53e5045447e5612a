package browser_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sluice-queue/sluice/internal/debian"
	"github.com/sluice-queue/sluice/internal/testcache"
)

// All tests share these.
var (
	program string          // `sluice`, built from this tree
	browser context.Context // the context of the one browser
	axe     string          // the script of axe-core
	shop    *server         // has sample data, for tests that only look, or that act on things that no other test needs
)

func TestMain(m *testing.M) {
	code, err := prepareAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func prepareAndRun(m *testing.M) (code int, err error) {
	folder, err := os.MkdirTemp("", "sluice-browser-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	program = filepath.Join(folder, "sluice")
	build := exec.Command("go", "build", "-o", program, "./sluice")
	build.Dir, build.Env = "../cmd", append(os.Environ(), "GOWORK=", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	if axe, err = accessibility(); err != nil {
		return 1, err
	}
	// The shell is Chromium without windows of its own, which cost most of the CPU of its first process.
	chromium, err := installed("chromium-headless-shell", "chromium")
	if err != nil {
		return 1, err
	}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.DisableGPU, chromedp.WindowSize(1440, 900),
		chromedp.Flag("allow-pre-commit-input", true))...) // Chromium drops keys and clicks before it has painted a new page
	defer stop()
	var leave context.CancelFunc
	browser, leave = chromedp.NewContext(allocated)
	defer leave()
	if err := chromedp.Do(browser, chromedp.Navigate("about:blank")); err != nil {
		return 1, fmt.Errorf("start Chromium: %w", err)
	}
	if shop, err = start(folder, "dev", "--listen", "127.0.0.1:0", "--db", "sqlite:"+filepath.Join(folder, "shop.db")); err != nil {
		return 1, err
	}
	defer shop.stop()
	return m.Run(), nil
}

// installed returns the path of the first of some programs that is there. If none is, it installs the first that the
// system has: its package has the program's name.
func installed(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	var failed error
	for _, name := range names {
		err := debian.Install(name)
		if err == nil {
			return exec.LookPath(name)
		}
		failed = errors.Join(failed, err)
	}
	return "", fmt.Errorf("there is no %s, which the tests need: %w", strings.Join(names, " or "), failed)
}

// accessibility returns the script of axe-core, in the version of axe/package-lock.json. A cache outside the tree keeps
// it.
func accessibility() (string, error) {
	cache, err := testcache.Folder()
	if err != nil {
		return "", err
	}
	unlock, err := testcache.Lock("axe", "gets axe-core")
	if err != nil {
		return "", err
	}
	defer unlock()
	locked, err := os.ReadFile("axe/package-lock.json")
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "axe")
	script := filepath.Join(folder, "node_modules", "axe-core", "axe.min.js")
	if kept, err := os.ReadFile(filepath.Join(folder, "package-lock.json")); err != nil || string(kept) != string(locked) || !there(script) {
		npm, err := installed("npm")
		if err != nil {
			return "", err
		}
		if err := errors.Join(os.RemoveAll(folder), os.CopyFS(folder, os.DirFS("axe"))); err != nil {
			return "", err
		}
		get := exec.Command(npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts")
		get.Dir = folder
		if out, err := get.CombinedOutput(); err != nil {
			return "", fmt.Errorf("get axe-core: %w\n%s", err, out)
		}
	}
	text, err := os.ReadFile(script)
	return string(text), err
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// server is a `sluice` that serves a console.
type server struct {
	*exec.Cmd
	url string // ends with /
	db  string // the address of its store
}

// start starts `sluice dev` or `sluice serve`, and waits until it prints its address.
func start(folder string, args ...string) (*server, error) {
	s := &server{Cmd: exec.Command(program, args...)}
	s.Dir, s.Env = folder, append(os.Environ(), "SLUICE_DB=")
	s.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that times out runs no cleanup
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.Stdout, s.Stderr = in, in
	if err := s.Start(); err != nil {
		return nil, err
	}
	_ = in.Close() // the process has a copy
	said := bufio.NewReader(out)
	for all := ""; ; {
		line, err := said.ReadString('\n')
		all += line
		if _, at, found := strings.Cut(line, "console  "); found {
			s.url = strings.TrimSpace(at)
		} else if _, at, found := strings.Cut(line, `msg="server answers" address=`); found {
			at, _, _ = strings.Cut(at, " ")
			s.url = "http://" + at + "/"
		}
		if err != nil {
			return nil, fmt.Errorf("sluice %v never said where it answers: %w\n%s", args, err, all)
		}
		if s.url != "" {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() // ends with the process
	for {                                            // the server listens before the store is open
		answer, err := http.Get(s.url + "readyz")
		if err != nil {
			return nil, err
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return s, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *server) stop() {
	_ = s.Process.Signal(syscall.SIGTERM)
	_ = s.Wait() // the signal ends it
}

// port returns the server's port.
func (s *server) port() string { return s.url[strings.LastIndex(s.url, ":")+1 : len(s.url)-1] }

// serving starts `sluice serve` on a store of its own.
func serving(t *testing.T, args ...string) *server {
	t.Helper()
	return stored(t).serve(t, args...)
}

// stored makes a store. No server runs on it yet.
func stored(t *testing.T) *server {
	t.Helper()
	folder := t.TempDir()
	return storedAt(t, folder, "sqlite:"+filepath.Join(folder, "jobs.db"))
}

// storedAt makes a store at an address. No server runs on it yet.
func storedAt(t *testing.T, folder, db string) *server {
	t.Helper()
	s := &server{Cmd: &exec.Cmd{Dir: folder}, db: db}
	s.sluice(t, "migrate")
	return s
}

// serve starts `sluice serve` on the store of a server that does not run.
func (s *server) serve(t *testing.T, args ...string) *server {
	t.Helper()
	started, err := start(s.Dir, append([]string{"serve", "--db", s.db, "--listen", "127.0.0.1:0"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	started.db = s.db
	t.Cleanup(started.stop)
	return started
}

// sluice runs a command on the server's store, and returns the output.
func (s *server) sluice(t *testing.T, args ...string) string {
	t.Helper()
	return s.sluiceExits(t, 0, args...)
}

// sluiceExits runs a command that must end with an exit code.
func (s *server) sluiceExits(t *testing.T, want int, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "SLUICE_DB="+s.db)
	problems := new(strings.Builder)
	cmd.Stderr = problems
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		t.Fatalf("sluice %q: %v, want exit code %d\n%s%s", args, err, want, out, problems)
	}
	return string(out)
}
