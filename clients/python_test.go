package clients_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/internal/clienttest"
)

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

func testPython(t *testing.T, env []string, interpreter string) {
	t.Helper()
	env = append(slices.Clone(env), pythonPath(t, "python/src", "python/tests"), "PYTHONDONTWRITEBYTECODE=1")
	clienttest.Run(t, "python", env, interpreter, "-m", "unittest", "discover", "-s", "tests")
}

// TestPythonPackageIsBuilt builds the wheel as pip would, but without downloads, and imports it.
func TestPythonPackageIsBuilt(t *testing.T) {
	t.Parallel()
	interpreter := clienttest.Python(t, "setuptools, wheel", "python3", "python3-setuptools", "python3-wheel")
	folder := t.TempDir()
	source := filepath.Join(folder, "source")
	if err := os.CopyFS(source, os.DirFS("python")); err != nil {
		t.Fatal(err)
	}
	wheel := strings.TrimSpace(string(clienttest.Run(t, source, os.Environ(), interpreter, "-c",
		"import sys, contextlib\nfrom setuptools import build_meta\n"+
			"with contextlib.redirect_stdout(sys.stderr):\n    name = build_meta.build_wheel(sys.argv[1])\nprint(name)", folder)))
	env := append(os.Environ(), pythonPath(t, filepath.Join(folder, wheel)))
	clienttest.Run(t, folder, env, interpreter, "-c", "import sluice_client, sluice_client.testing; assert '.whl' in sluice_client.__file__")
}

// TestPythonIsOfItsOldestVersion parses the source with the grammar of Python 3.9.
func TestPythonIsOfItsOldestVersion(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("python/src/*/*.py")
	if err != nil || len(sources) < 8 {
		t.Fatalf("%d files, %v", len(sources), err)
	}
	clienttest.Run(t, "", os.Environ(), clienttest.Python(t, "ast", "python3"), append([]string{
		"-c",
		"import ast, sys\nfor path in sys.argv[1:]: ast.parse(open(path).read(), path, feature_version=(3, 9))",
	}, sources...)...)
}
