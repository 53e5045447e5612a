package sluice_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goBlocks are the pieces of Go in a guide.
var goBlocks = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestGuidesShowTestsThatRun: each test that a guide shows is one of package sluicetest.
func TestGuidesShowTestsThatRun(t *testing.T) {
	t.Parallel()
	tests, err := os.ReadFile("sluicetest/guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	guides, err := filepath.Glob("docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, path := range guides {
		guide, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range goBlocks.FindAllSubmatch(guide, -1) {
			if !bytes.HasPrefix(block[1], []byte("func Test")) {
				continue
			}
			if shown++; !bytes.Contains(tests, block[1]) {
				t.Errorf("sluicetest/guide_test.go does not have this test of %s:\n%s", path, block[1])
			}
		}
	}
	if want := bytes.Count(tests, []byte("\nfunc Test")); shown != want {
		t.Errorf("the guides show %d of the %d tests", shown, want)
	}
}

// TestFirstProgramOfTheGuideRuns builds the program that docs/guide/start.md shows, in a module of its
// own, and runs it twice.
func TestFirstProgramOfTheGuideRuns(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("docs/guide/start.md")
	if err != nil {
		t.Fatal(err)
	}
	var program strings.Builder
	for _, block := range goBlocks.FindAllSubmatch(guide, -1) {
		program.Write(block[1])
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	// The module that a reader's `go get` would make, without asking a server for it.
	required := regexp.MustCompile(`(?m)^module .*\n`).ReplaceAllString(string(ours), "module shop\n")
	module := required + "\nrequire github.com/sluice-queue/sluice v0.0.0\nreplace github.com/sluice-queue/sluice => " + here + "\n"
	folder := t.TempDir()
	for name, text := range map[string]string{"main.go": program.String(), "go.mod": module, "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "shop", ".")
	build.Dir, build.Env = folder, append(os.Environ(), "CGO_ENABLED=0") // only the race detector needs cgo
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, run := range []struct {
		name string
		says []string
	}{
		{"first", []string{"duplicate: false", "paid 100 cents", "paid 200 cents"}},
		{"second", []string{"duplicate: true"}},
	} {
		shop := exec.Command(filepath.Join(folder, "shop"))
		shop.Dir = folder
		out, err := shop.CombinedOutput()
		if err != nil {
			t.Fatalf("%s run: %v\n%s", run.name, err, out)
		}
		for _, want := range run.says {
			if !strings.Contains(string(out), want) {
				t.Errorf("the %s run does not say %q:\n%s", run.name, want, out)
			}
		}
	}
}
