package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/internal/debian"
	"github.com/sluice-queue/sluice/internal/testcache"
)

// oldestNode is the oldest version of Node that the client is for.
const oldestNode = 20

// node returns the environment in which node and npm are found, and installs them if they are missing.
func node(t *testing.T) []string {
	t.Helper()
	var missing []string
	for program, packaged := range map[string]string{"node": "nodejs", "npm": "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, packaged)
		}
	}
	if len(missing) > 0 {
		if err := debian.Install(missing...); err != nil {
			t.Fatalf("there are no %v, which the test needs: %v", missing, err)
		}
	}
	version := string(run(t, os.Environ(), "node", "--version")) // such as v20.20.2
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		return append(os.Environ(), "PATH="+newerNode(t)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	return os.Environ()
}

// newerNode gets the oldest version that will do by npm, and returns its folder. Debian 12 has an older one.
func newerNode(t *testing.T) string {
	t.Helper()
	cache, err := testcache.Folder()
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := testcache.Lock("node", "installs Node")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	name := "node-linux-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	folder := filepath.Join(cache, "node-"+strconv.Itoa(oldestNode))
	bin := filepath.Join(folder, "node_modules", name, "bin")
	if _, err := os.Stat(filepath.Join(bin, "node")); err != nil {
		run(t, os.Environ(), "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", name+"@"+strconv.Itoa(oldestNode))
	}
	return bin
}

// prepareTypeScript builds the package in a folder of its own, and the test that runs its tests.
func prepareTypeScript(t *testing.T) func(t *testing.T, env []string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "typescript")
	if err := os.CopyFS(folder, os.DirFS("typescript")); err != nil {
		t.Fatal(err)
	}
	base := node(t)
	runIn(t, folder, base, "npm", "ci", "--no-audit", "--no-fund")
	runIn(t, folder, base, "npm", "pack") // builds the package first, which the tests import
	runIn(t, folder, base, "npx", "tsc", "-p", "test")
	if err := os.RemoveAll(filepath.Join(folder, "node_modules")); err != nil { // nothing is needed to run it
		t.Fatal(err)
	}
	return func(t *testing.T, env []string) {
		own := t.TempDir() // tests write files beside the package
		if err := os.CopyFS(own, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		tests, err := filepath.Glob(filepath.Join(own, "build", "test", "*.test.js"))
		if err != nil || len(tests) < 5 {
			t.Fatalf("%d tests, %v", len(tests), err)
		}
		for _, entry := range base {
			if strings.HasPrefix(entry, "PATH=") { // the last one holds
				env = append(slices.Clone(env), entry)
			}
		}
		runIn(t, own, env, "node", append([]string{"--test", "--test-concurrency=3"}, tests...)...)
	}
}
