package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/internal/debian"
)

// python finds an interpreter that has a module, or installs it with the packages.
func python(t *testing.T, module string, packages ...string) string {
	t.Helper()
	look := func() string {
		for _, name := range []string{"python3", "/usr/bin/python3"} {
			if exec.CommandContext(t.Context(), name, "-c", "import "+module).Run() == nil {
				return name
			}
		}
		return ""
	}
	if found := look(); found != "" {
		return found
	}
	if err := debian.Install(packages...); err != nil {
		t.Fatalf("there is no python3 with %s, which the test needs: %v", module, err)
	}
	found := look()
	if found == "" {
		t.Fatalf("%v were installed, and yet no python3 has %s", packages, module)
	}
	return found
}

func pythonPath(t *testing.T, parts ...string) string {
	t.Helper()
	for i, part := range parts {
		path, err := filepath.Abs(part)
		if err != nil {
			t.Fatal(err)
		}
		parts[i] = path
	}
	return "PYTHONPATH=" + strings.Join(parts, string(filepath.ListSeparator))
}

func preparePython(t *testing.T) func(t *testing.T, env []string) {
	t.Helper()
	interpreter := python(t, "unittest", "python3")
	return func(t *testing.T, env []string) {
		env = append(slices.Clone(env), pythonPath(t, "python/src", "python/tests"), "PYTHONDONTWRITEBYTECODE=1")
		runIn(t, "python", env, interpreter, "-m", "unittest", "discover", "-s", "tests")
	}
}

// TestPythonPackageIsBuilt builds the wheel as pip would, without what pip fetches, and imports it.
func TestPythonPackageIsBuilt(t *testing.T) {
	t.Parallel()
	interpreter := python(t, "setuptools, wheel", "python3", "python3-setuptools", "python3-wheel")
	folder := t.TempDir()
	source := filepath.Join(folder, "source")
	if err := os.CopyFS(source, os.DirFS("python")); err != nil {
		t.Fatal(err)
	}
	wheel := strings.TrimSpace(string(runIn(t, source, os.Environ(), interpreter, "-c",
		"import sys, contextlib\nfrom setuptools import build_meta\n"+
			"with contextlib.redirect_stdout(sys.stderr):\n    name = build_meta.build_wheel(sys.argv[1])\nprint(name)", folder)))
	env := append(os.Environ(), pythonPath(t, filepath.Join(folder, wheel)))
	runIn(t, folder, env, interpreter, "-c", "import sluice_client, sluice_client.testing; assert '.whl' in sluice_client.__file__")
}

// TestPythonIsOfItsOldestVersion reads the source by the grammar of Python 3.9.
func TestPythonIsOfItsOldestVersion(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("python/src/*/*.py")
	if err != nil || len(sources) < 8 {
		t.Fatalf("%d files, %v", len(sources), err)
	}
	run(t, os.Environ(), python(t, "ast", "python3"), append([]string{
		"-c",
		"import ast, sys\nfor path in sys.argv[1:]: ast.parse(open(path).read(), path, feature_version=(3, 9))",
	}, sources...)...)
}
