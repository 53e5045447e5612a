package sluice_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibraryLeavesTheVersionsOfAProgramAlone builds a program with both SQL stores and a gRPC version of its own.
func TestLibraryLeavesTheVersionsOfAProgramAlone(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module shop\n\ngo 1.26.0\n\nrequire github.com/sluice-queue/sluice v0.0.0\n\nreplace github.com/sluice-queue/sluice => " + here + "\n",
		"shop.go": `package shop

import (
	"errors"
	_ "github.com/sluice-queue/sluice"
	_ "github.com/sluice-queue/sluice/store/postgres"
	_ "github.com/sluice-queue/sluice/store/sqlite"
	_ "github.com/sluice-queue/sluice/worker"
)
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := func() []string {
		return strings.Split(strings.TrimSpace(goIn(t, folder, "list", "-m", "all")), "\n")
	}
	goIn(t, folder, "mod", "tidy")
	graph := list()
	if len(graph) > 45 {
		t.Errorf("the program has %d modules in its graph, want at most 45:\n%s", len(graph), strings.Join(graph, "\n"))
	}
	for _, module := range graph {
		for _, heavy := range []string{"google.golang.org/grpc", "charm.land/", "spf13/cobra", "go.opentelemetry.io/otel/sdk", "prometheus/", "go.temporal.io/"} {
			if strings.Contains(module, heavy) {
				t.Errorf("the library brings %s", module)
			}
		}
	}
	goIn(t, folder, "mod", "edit", "-require=google.golang.org/grpc@v1.70.0")
	for _, module := range list() {
		if path, version, _ := strings.Cut(module, " "); path == "google.golang.org/grpc" && version != "v1.70.0" {
			t.Errorf("gRPC v1.70.0 became %s", version)
		}
	}
}

// goIn runs the go command in a folder with a module of its own.
func goIn(t *testing.T, folder string, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir, command.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOSUMDB=off") // GOSUMDB: the go.sum of this tree holds for these modules
	out, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Logf("%s", exit.Stderr)
		}
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
