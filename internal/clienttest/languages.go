package clienttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/internal/debian"
	"github.com/sluice-queue/sluice/internal/testcache"
)

// Python finds an interpreter that has modules, or installs it with the packages.
func Python(t testing.TB, modules string, packages ...string) string {
	t.Helper()
	look := func() string {
		for _, name := range []string{"python3", "/usr/bin/python3"} {
			if exec.CommandContext(t.Context(), name, "-c", "import "+modules).Run() == nil {
				return name
			}
		}
		return ""
	}
	if found := look(); found != "" {
		return found
	}
	if err := debian.Install(packages...); err != nil {
		t.Fatalf("there is no python3 with %s, which the test needs: %v", modules, err)
	}
	found := look()
	if found == "" {
		t.Fatalf("%v were installed, and yet no python3 has %s", packages, modules)
	}
	return found
}

// oldPython is a Debian package with an interpreter of its own, which is behind Debian's python3: it is Python 3.9 in Debian 12.
const oldPython = "pypy3"

// OldPython finds an older interpreter than python3, or installs it.
func OldPython(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath(oldPython); err == nil {
		return oldPython
	}
	if err := debian.Install(oldPython); err != nil {
		t.Fatalf("there is no %s, which the test needs: %v", oldPython, err)
	}
	return oldPython
}

// oldestNode is the oldest version of Node that the client is for.
const oldestNode = 20

// Node returns the PATH on which node and npm are found, and installs them if they are missing.
func Node(t testing.TB) string {
	t.Helper()
	if err := debian.InstallNode(); err != nil {
		t.Fatalf("there is no Node with npm, which the test needs: %v", err)
	}
	version := string(Run(t, "", os.Environ(), "node", "--version")) // such as v20.20.2
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		return newerNode(t) + string(filepath.ListSeparator) + os.Getenv("PATH")
	}
	return os.Getenv("PATH")
}

// newerNode gets the oldest version that will do by npm, and returns its folder. Debian 12 has an older one.
func newerNode(t testing.TB) string {
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
		Run(t, "", os.Environ(), "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", name+"@"+strconv.Itoa(oldestNode))
	}
	return bin
}

// TypeScript builds the client's package in a folder of its own, which it returns, for the node on a PATH.
func TypeScript(t testing.TB, path string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "typescript")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(Root(t), "clients", "typescript"))); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+path)
	Run(t, folder, env, "npm", "ci", "--no-audit", "--no-fund")
	Run(t, folder, env, "npm", "pack") // builds the package first, which programs import
	return folder
}
