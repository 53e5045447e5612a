package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestProgramIsInstalledByItsPath makes a release of the tree with tools/release.sh, serves it as a module proxy, and
// installs the program from it.
func TestProgramIsInstalledByItsPath(t *testing.T) {
	t.Parallel()
	const root = "github.com/sluice-queue/sluice"
	version := fmt.Sprintf("v0.0.1-test.%d", time.Now().UnixNano()) // each run needs a new version, because Go's shared module cache never asks for a known one again
	tree := copyOfTree(t)
	if out, err := shell(tree, nil, "tools/release.sh", version); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	proxy := t.TempDir()
	for _, part := range []string{"", "/cmd", "/engine/temporal"} {
		publish(t, proxy, tree, module.Version{Path: root + part, Version: version}, strings.TrimPrefix(part, "/"))
	}
	cache := strings.TrimSpace(run(t, tree, nil, "go", "env", "GOMODCACHE"))
	t.Cleanup(func() { forget(t, cache, version) })

	bin := t.TempDir()
	env := []string{
		"GOBIN=" + bin, "GOWORK=", "GOFLAGS=-ldflags=-w", "CGO_ENABLED=0", "GOSUMDB=off", // no public database has the sums of these modules
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download"), // the cache has all other modules since the program was built
	}
	run(t, tree, []string{"GOWORK="}, "go", "mod", "download")
	run(t, t.TempDir(), env, "go", "install", root+"/cmd/sluice@"+version)
	if said := run(t, bin, nil, filepath.Join(bin, "sluice"), "version"); !strings.Contains(said, version) {
		t.Errorf("the installed program says %q, want version %s", said, version)
	}
	if said := run(t, bin, nil, filepath.Join(bin, "sluice"), "--db", "sqlite:"+filepath.Join(bin, "jobs.db"), "migrate"); !strings.Contains(said, "applied") {
		t.Errorf("migrate says %q", said)
	}
}

func TestReleaseRefusesATreeWithChanges(t *testing.T) {
	t.Parallel()
	tree := copyOfTree(t)
	if err := os.WriteFile(filepath.Join(tree, "README.md"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := shell(tree, nil, "tools/release.sh", "v0.0.1")
	if err == nil || !strings.Contains(out, "commit or undo them first") {
		t.Errorf("it said %q: %v", out, err)
	}
}

// copyOfTree returns a new repository with the files of this one, including changes that are not committed.
func copyOfTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	files := strings.Split(run(t, repository, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00")
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(repository, name))
		if name == "" || err != nil { // the file is deleted, but not committed yet
			continue
		}
		info, err := os.Stat(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range [][]string{
		{"init", "-q"},
		{"config", "user.name", "test"},
		{"config", "user.email", "test@localhost"},
		{"add", "."},
		{"commit", "-q", "-m", "the tree"},
	} {
		run(t, tree, nil, "git", command...)
	}
	return tree
}

// publish writes one version of a module in the file format of a module proxy.
func publish(t *testing.T, proxy, tree string, version module.Version, folder string) {
	t.Helper()
	at := filepath.Join(proxy, filepath.FromSlash(version.Path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(tree, folder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(at, version.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	tag := strings.TrimPrefix(folder+"/"+version.Version, "/")
	if err := zip.CreateFromVCS(archive, version, tree, tag, folder); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	info := fmt.Sprintf(`{"Version": %q, "Time": %q}`, version.Version, time.Now().UTC().Format(time.RFC3339))
	for name, text := range map[string]string{version.Version + ".mod": string(mod), version.Version + ".info": info, "list": version.Version + "\n"} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// forget removes a version of our modules from Go's module cache, whose files are read-only.
func forget(t *testing.T, cache, version string) {
	t.Helper()
	for _, pattern := range []string{
		"github.com/sluice-queue/sluice@" + version, "github.com/sluice-queue/sluice/*@" + version, "github.com/sluice-queue/sluice/*/*@" + version,
		"cache/download/github.com/sluice-queue/sluice/@v/*", "cache/download/github.com/sluice-queue/sluice/*/@v/*", "cache/download/github.com/sluice-queue/sluice/*/*/@v/*",
	} {
		found, err := filepath.Glob(filepath.Join(cache, pattern))
		if err != nil {
			t.Error(err)
		}
		for _, path := range found {
			if !strings.Contains(path, version) {
				continue
			}
			if err := openAndRemove(path); err != nil {
				t.Error(err)
			}
		}
	}
}

func openAndRemove(path string) error {
	if out, err := exec.Command("chmod", "-R", "u+w", path).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return os.RemoveAll(path)
}

func shell(folder string, env []string, line ...string) (string, error) {
	cmd := exec.Command(line[0], line[1:]...)
	if !filepath.IsAbs(line[0]) && strings.Contains(line[0], "/") {
		cmd.Path = filepath.Join(folder, line[0])
	}
	cmd.Dir, cmd.Env = folder, slices.Concat(os.Environ(), env)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run runs a command that must succeed.
func run(t *testing.T, folder string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := shell(folder, env, append([]string{name}, args...)...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}
