package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/apps/conversations/demo"
	"github.com/sluice-queue/sluice/apps/conversations/hook"
)

// asProgram names the variable that makes the test program the application itself.
const asProgram = "CONVERSATIONS_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	_ = os.Setenv(asProgram, "yes") // for the processes that the tests start
	os.Exit(m.Run())
}

// TestDemoHolds runs a small demo with real parts: processes of the hook, a worker that is killed, an IPFS node and a
// chain.
func TestDemoHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs an IPFS node")
	}
	t.Parallel()
	if err := demo.Run(t.Context(), demo.Options{Conversations: 12, Folder: t.TempDir(), Out: t.Output()}); err != nil {
		t.Error(err)
	}
}

func TestHookNeverFailsItsCallerUnlessAsked(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(folder, "caches"))
	db, log := filepath.Join(folder, "c.db"), filepath.Join(folder, "hook.log")
	good := `{"event":"UserPromptSubmit","conversation_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","content":"mail ann@example.com"}`
	for _, c := range []struct {
		name, event string
		more        []string
		code        int
	}{
		{"a good event", good, nil, 0},
		{"garbage", "ann@example.com", nil, 0},
		{"garbage, and the caller wants to know", "ann@example.com", []string{"-fail-exit", "3"}, 3},
		{"a folder that cannot be made", good, []string{"-db", "/dev/null/x/c.db", "-fail-exit", "4"}, 0},
		{"a key that cannot be read", good, []string{"-hash-key", "env:CONVERSATIONS_NO_KEY", "-fail-exit", "4"}, 0},
		{"an unknown flag", good, []string{"-nonsense"}, 0},
	} {
		var out bytes.Buffer
		code := run(context.Background(), append([]string{"hook", "-db", db, "-log", log}, c.more...), strings.NewReader(c.event), &out)
		if code != c.code || out.Len() > 0 {
			t.Errorf("%s: exit code %d, want %d; it said %q", c.name, code, c.code, out.String())
		}
	}
	if waiting, err := hook.SpoolOf("/dev/null/x/c.db").Waiting(); err != nil || waiting != 1 {
		t.Errorf("%d events wait for a file that cannot be there, %v", waiting, err)
	}
	t.Setenv("XDG_CACHE_HOME", "/dev/null")
	t.Setenv("TMPDIR", "/dev/null")
	if code := run(context.Background(), []string{"hook", "-db", "/dev/null/x/c.db", "-log", log, "-fail-exit", "4"}, strings.NewReader(good), io.Discard); code != 4 {
		t.Errorf("exit code %d where there is no place for the event", code)
	}
	text, err := os.ReadFile(log)
	if err != nil || !bytes.Contains(text, []byte("event refused")) || !bytes.Contains(text, []byte("malformed event: it is not JSON")) {
		t.Errorf("the log says %q, %v", text, err)
	}
	if bytes.Contains(text, []byte("ann@")) {
		t.Errorf("raw text is in the log: %q", text)
	}
}

func TestCheckThatDoesNotHoldHasItsExitCode(t *testing.T) {
	t.Parallel()
	if code := run(t.Context(), []string{"bench", "-events", "0"}, nil, t.Output()); code != exitCheck {
		t.Errorf("exit code %d of a measurement of nothing", code)
	}
}
